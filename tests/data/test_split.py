"""The split and standardising."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nn_manual.data import Examples, Split
from nn_manual.data.split import split_examples, standardized

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
    train, validation, _ = numbered(num_examples, validation_fraction, seed)
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


def test_standardized_by_the_training_part() -> None:
    train = np.array([[1.0, 10.0], [3.0, 30.0]])
    train_standardized, validation_standardized = standardized(train, np.array([[2.0, 50.0]]))
    # mean 2 and 20, population std 1 and 10
    assert train_standardized.tolist() == [[-1, -1], [1, 1]]
    assert validation_standardized.tolist() == [[0, 3]]


def test_constant_column_is_divided_by_1() -> None:
    # Ten times 0.1, summed down a column and divided by 10, is not 0.1: the std is 1.4e-17 and not 0.
    train = np.full((10, 2), 0.1)
    assert (train.std(axis=0) > 0).all()
    train_standardized, validation_standardized = standardized(train, np.array([[2.1, 0.1]]))
    assert abs(train_standardized).max() < 1e-16  # the rounding of the mean, a few units in the last place of 0.1
    np.testing.assert_allclose(validation_standardized, [[2, 0]], rtol=0, atol=1e-15)  # the rounding of 2.1 - 0.1


def test_class_targets_are_left_alone_and_int64() -> None:
    examples = Examples(np.arange(6.0).reshape(6, 1), np.array([0, 1, 2, 0, 1, 2], dtype=np.uint8))
    split = split_examples(examples, 3, 0.0, 0, np.dtype(np.float32), standardize=True)
    assert split.train.target.dtype == np.int64
    assert split.train.target.tolist() == [0, 1, 2, 0, 1, 2]
    assert split.train.input.dtype == np.float32


def test_arrays_are_contiguous() -> None:
    rotated = np.arange(60.0).reshape(10, 3, 2).transpose(0, 2, 1)  # numpy keeps this layout where it selects rows
    train, validation, _ = split_examples(Examples(rotated, rotated), None, 0.3, 0, FLOAT64, standardize=False)
    assert all(part.flags.c_contiguous for part in (*train, *validation))
