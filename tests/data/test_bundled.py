"""The sets in scikit-learn's wheel."""

import subprocess
import sys

import numpy as np
import pytest

from nn_manual.arrays import DTYPES
from nn_manual.data import Dataset, Diabetes, Digits, Iris

BUNDLED = [
    pytest.param(Digits, 1797, 10, id="Digits"),
    pytest.param(Iris, 150, 3, id="Iris"),
    pytest.param(Diabetes, 442, None, id="Diabetes"),
]


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
@pytest.mark.parametrize(("dataset", "num_examples", "num_classes"), BUNDLED)
def test_shapes_and_standardised_numbers(
    dataset: type[Dataset], num_examples: int, num_classes: int | None, dtype: np.dtype
) -> None:
    description = dataset()
    train, validation, loaded_num_classes, transform = description.load(0, dtype)
    assert transform.names.input is not None
    assert (len(transform.names.input),) == description.example_shape
    assert (transform.names.classes is None) == (num_classes is None)
    assert (transform.target is None) == (num_classes is not None)
    assert len(transform.names.classes or range(num_classes or 0)) == (num_classes or 0)
    assert num_classes == loaded_num_classes == description.num_classes
    if num_classes is not None:
        assert set(train.target.tolist()) == set(range(num_classes))
    assert len(validation.input) == round(0.2 * num_examples)
    assert len(train.input) + len(validation.input) == num_examples
    assert train.input.shape[1:] == validation.input.shape[1:] == description.example_shape
    assert train.input.dtype == validation.input.dtype == dtype
    # Each number is rounded to the dtype, and a float64 sum rounds at most once for each example.
    rounding = np.finfo(dtype).eps + num_examples * np.finfo(np.float64).eps
    assert abs(train.input.mean(axis=0, dtype=np.float64)).max() < rounding
    std = train.input.std(axis=0, dtype=np.float64)
    is_constant = (train.input == train.input[0]).all(axis=0)
    assert abs(std[~is_constant] - 1).max() < rounding
    assert (std[is_constant] < rounding).all()


def test_digits() -> None:
    train, validation, _, transform = Digits().load(0, np.dtype(np.float32))
    assert transform.names.classes == tuple("0123456789")
    assert (np.bincount(train.target, minlength=10) + np.bincount(validation.target, minlength=10)).tolist() == [
        178, 182, 177, 183, 181, 182, 181, 179, 174, 180,  # as UCI's description counts them
    ]  # fmt: skip
    assert train.target.dtype == np.int64


def test_iris() -> None:
    split = Iris(validation_fraction=0.0).load(0, np.dtype(np.float64))
    assert split.transform.names.classes == ("setosa", "versicolor", "virginica")
    assert np.bincount(split.train.target).tolist() == [50, 50, 50]
    # The first flower of Fisher's table is 5.1, 3.5, 1.4, 0.2; the second 4.9, 3.0, 1.4, 0.2: equal petals.
    first, second = split.train.input[:2]
    assert split.transform.input is not None
    centimetres = first * split.transform.input.std + split.transform.input.mean
    assert centimetres == pytest.approx([5.1, 3.5, 1.4, 0.2], rel=1e-14)
    assert first[0] > second[0]
    assert first[1] > second[1]
    assert first[2:].tolist() == second[2:].tolist()


def test_the_target_of_diabetes_is_standardised() -> None:
    train, validation, num_classes, transform = Diabetes().load(0, np.dtype(np.float64))
    assert transform.target is not None
    assert train.target * transform.target.std + transform.target.mean == pytest.approx(
        np.rint(train.target * transform.target.std + transform.target.mean), abs=1e-10
    )  # the progression is a whole number
    assert num_classes is None
    assert train.target.shape == (354, 1)
    assert validation.target.shape == (88, 1)
    rounding = 354 * np.finfo(np.float64).eps  # a sum rounds at most once for each example
    assert train.target.mean() == pytest.approx(0, abs=rounding)
    assert train.target.std() == pytest.approx(1, abs=rounding)


@pytest.mark.parametrize("dataset", [Digits, Iris, Diabetes])
def test_split_is_determined_by_the_seed(dataset: type[Dataset]) -> None:
    dtype = np.dtype(np.float32)
    first, again, other = dataset().load(3, dtype), dataset().load(3, dtype), dataset().load(4, dtype)
    for part, same in zip((*first.train, *first.validation), (*again.train, *again.validation), strict=True):
        assert np.array_equal(part, same)
    assert not np.array_equal(first.validation.input, other.validation.input)


@pytest.mark.parametrize("validation_fraction", [-0.1, 1.0, 1.5, float("nan")])
def test_validation_fraction_out_of_range(validation_fraction: float) -> None:
    with pytest.raises(ValueError, match=rf"^validation_fraction must be .*, not {validation_fraction}$"):
        Digits(validation_fraction=validation_fraction)


def test_importing_data_imports_neither_sklearn_nor_torch() -> None:
    program = "import sys, nn_manual.data; print(sorted({'sklearn', 'torch', 'pandas', 'scipy'} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"
