"""The split and standardising."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nn_manual.data import Examples, Split
from nn_manual.data import split as split_module
from nn_manual.data.split import split_examples
from nn_manual.data.transform import Names, Standardization, Transform
from nn_manual.streams import Stream, generator

FLOAT64 = np.dtype(np.float64)


def numbered(num_examples: int, validation_fraction: float, seed: int = 0) -> Split:
    """Examples whose input and target are their own number."""
    number = np.arange(float(num_examples)).reshape(-1, 1)
    return split_examples(
        Examples(number, number), None, validation_fraction, seed, FLOAT64, standardize=False
    )


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(1, 200), st.floats(0, 1, exclude_max=True), st.integers(0, 2**40))
def test_parts_are_disjoint_complete_and_in_the_order_of_the_source(
    num_examples: int, validation_fraction: float, seed: int
) -> None:
    train, validation, *_ = numbered(num_examples, validation_fraction, seed)
    train_numbers, validation_numbers = train.input[:, 0].tolist(), validation.input[:, 0].tolist()
    assert len(train_numbers) >= 1
    assert sorted(train_numbers + validation_numbers) == list(range(num_examples))
    assert train_numbers == sorted(train_numbers)
    assert validation_numbers == sorted(validation_numbers)
    assert np.array_equal(train.input, train.target)
    assert np.array_equal(validation.input, validation.target)


@pytest.mark.parametrize(
    ("num_examples", "validation_fraction", "num_validation"),
    [(1797, 0.2, 359), (10, 0.0, 0), (10, 0.25, 2), (10, 0.26, 3), (10, 0.99, 9), (1, 0.9, 0)],
)
def test_number_held_out(num_examples: int, validation_fraction: float, num_validation: int) -> None:
    split = numbered(num_examples, validation_fraction)
    assert len(split.validation.input) == num_validation
    assert len(split.validation.target) == num_validation
    assert split.validation.input.shape == (num_validation, 1)


@pytest.mark.parametrize("fraction", [-0.2, 1.0, 1.5, float("nan")])
def test_a_share_that_is_none_is_refused(fraction: float) -> None:
    with pytest.raises(ValueError, match=f"^validation_fraction must be at least 0 and less than 1, not {fraction}$"):
        numbered(10, fraction)


def test_split_is_determined_by_the_seed() -> None:
    assert np.array_equal(numbered(100, 0.3, seed=7).validation.input, numbered(100, 0.3, seed=7).validation.input)
    assert not np.array_equal(
        numbered(100, 0.3, seed=7).validation.input, numbered(100, 0.3, seed=8).validation.input
    )


def test_every_example_is_held_out_equally_often() -> None:
    held_out = np.zeros(10)
    for seed in range(400):
        held_out[numbered(10, 0.3, seed).validation.input.astype(int)] += 1
    # Binomial(400, 0.3): mean 120, standard deviation 9.2; five of these on either side, and the seeds are fixed.
    assert held_out.sum() == 1200
    assert (abs(held_out - 120) < 46).all()


def test_what_was_standardised_is_kept() -> None:
    number = np.arange(20.0).reshape(10, 2)
    names = Names(input=("a", "b"), target=("c", "d"))
    split = split_examples(
        Examples(number, 3 * number), None, 0.3, 0, np.dtype(np.float32), standardize=True, names=names
    )
    plain = split_examples(Examples(number, 3 * number), None, 0.3, 0, FLOAT64, standardize=False)
    assert (plain.transform.input, plain.transform.target) == (None, None)
    for name, standardization in (("input", split.transform.input), ("target", split.transform.target)):
        assert standardization is not None
        source = getattr(plain.train, name)
        assert np.array_equal(standardization.mean, source.mean(axis=0))
        assert np.array_equal(standardization.std, source.std(axis=0))
        for part, plain_part in ((split.train, plain.train), (split.validation, plain.validation)):
            expected = standardization.apply(getattr(plain_part, name)).astype(np.float32)
            assert np.array_equal(getattr(part, name), expected)
    assert split.transform.names == names


def test_integer_inputs_stay_as_they_are() -> None:
    indices = np.arange(12).reshape(6, 2)
    split = split_examples(Examples(indices, 1.0 * indices), None, 0.5, 0, np.dtype(np.float32), standardize=True)
    assert split.transform.input is None
    assert split.transform.target is not None
    for part in (split.train, split.validation):
        assert part.input.dtype == np.int64
        assert part.target.dtype == np.float32
    assert sorted([*split.train.input.ravel(), *split.validation.input.ravel()]) == list(range(12))


def test_class_targets_are_left_alone_and_int64() -> None:
    examples = Examples(np.arange(6.0).reshape(6, 1), np.array([0, 1, 2, 0, 1, 2], dtype=np.uint8))
    split = split_examples(examples, 3, 0.0, 0, np.dtype(np.float32), standardize=True)
    assert split.train.target.dtype == np.int64
    assert split.train.target.tolist() == [0, 1, 2, 0, 1, 2]
    assert split.train.input.dtype == np.float32


def test_a_class_between_two_is_refused() -> None:
    target = np.array([0, 1, 1.5, 2])
    with pytest.raises(ValueError, match=r"^a class must be a whole number, not 1\.5$"):
        split_examples(Examples(np.ones((4, 1)), target), 3, 0.0, 0, FLOAT64, standardize=False)
    split = split_examples(Examples(np.ones((4, 1)), np.floor(target)), 3, 0.0, 0, FLOAT64, standardize=False)
    assert split.train.target.tolist() == [0, 1, 1, 2]


def test_arrays_are_contiguous() -> None:
    rotated = np.arange(60.0).reshape(10, 3, 2).transpose(0, 2, 1)  # numpy keeps this layout where it selects rows
    train, validation, *_ = split_examples(Examples(rotated, rotated), None, 0.3, 0, FLOAT64, standardize=False)
    assert all(part.flags.c_contiguous for part in (*train, *validation))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("standardize", [False, True])
def test_slices_and_what_is_used_up(monkeypatch: pytest.MonkeyPatch, dtype: str, standardize: bool) -> None:
    random = np.random.default_rng(0)
    input, target = random.normal(5, 3, (50, 2, 3)), random.integers(4, size=50)

    def load(examples: Examples, *, use_up: bool) -> Split:
        return split_examples(examples, 4, 0.3, 0, np.dtype(dtype), standardize=standardize, use_up=use_up)

    whole = load(Examples(input, target), use_up=False)
    monkeypatch.setattr(split_module, "SLICE_SIZE", 20)  # three rows
    sliced = load(Examples(input, target), use_up=False)
    assert input.shape == (50, 2, 3)
    own = Examples(input.copy(), target.copy())
    used = load(own, use_up=True)
    assert (own.input.shape, own.target.shape) == ((0, 2, 3), (0,))
    for split in (sliced, used):
        for part, whole_part in ((split.train, whole.train), (split.validation, whole.validation)):
            # The mean and the std are sums in another order: of 35 numbers up to 14, divided by some 3.
            np.testing.assert_allclose(part.input, whole_part.input, rtol=0, atol=8 * float(np.finfo(dtype).eps))
            assert np.array_equal(part.target, whole_part.target)
            assert part.input.dtype == np.dtype(dtype)


def test_a_seed_holds_out_the_same_examples_as_ever() -> None:
    for num_examples in (2, 200, 300, 70_000):
        order = generator(3, Stream.SPLIT).permutation(num_examples)
        expected = np.sort(order[: round(0.2 * num_examples)])
        assert np.array_equal(numbered(num_examples, 0.2, seed=3).validation.input[:, 0], expected)


class TestOfAnotherTraining:
    """A transform that is given is applied, whatever this data would have made of itself."""

    NAMES = Names(input=("a",))

    @staticmethod
    def split(transform: Transform, names: Names = NAMES) -> Split:
        number = np.arange(4.0).reshape(-1, 1)
        examples = Examples(number, number)
        return split_examples(
            examples, None, 0.5, 0, FLOAT64, standardize=True, names=names, transform=transform
        )

    def test_is_applied_to_both_parts(self) -> None:
        of_input = Standardization(np.array([1.0]), np.array([2.0]))
        given = Transform(of_input, Standardization(np.array([0.0]), np.array([4.0])))
        split, plain = self.split(given), self.split(Transform())
        for part, as_it_is in zip(split[:2], plain[:2], strict=True):
            assert np.array_equal(part.input, (as_it_is.input - 1) / 2)
            assert np.array_equal(part.target, as_it_is.target / 4)
        assert sorted(plain.train.input.ravel().tolist() + plain.validation.input.ravel().tolist()) == [0, 1, 2, 3]
        assert split.transform == given._replace(names=self.NAMES)
        assert plain.transform == Transform(names=self.NAMES)

    @pytest.mark.parametrize(
        ("of_training", "message"),
        [
            (("a", "b"), "has 1 column, training had 2"),
            (("b",), "column 0, counted from 0, is 'a', in training it was 'b'"),
        ],
    )
    def test_other_columns(self, of_training: tuple[str, ...], message: str) -> None:
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            self.split(Transform(names=Names(input=of_training)))
        assert self.split(Transform(names=Names(input=of_training)), Names()).train.input.shape == (2, 1)


def test_another_number_of_targets_is_refused() -> None:
    examples = Examples(np.ones((5, 2)), np.ones((4, 1)))
    with pytest.raises(ValueError, match=r"^there are 5 inputs, and 4 targets for them$"):
        split_examples(examples, None, 0.2, 0, FLOAT64, standardize=False)
