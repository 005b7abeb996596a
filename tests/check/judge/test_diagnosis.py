"""describe_difference: each mistake planted in a gradient is named, in both dtypes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from nn_manual.arrays import DTYPES, Array
from nn_manual.check.compare.tolerances import SUM_OF_PRODUCTS
from nn_manual.check.judge.diagnosis import describe_difference, describe_kinks

SHAPE = (3, 4)

MISTAKES: dict[str, tuple[Callable[[Array], Array], str]] = {
    "nothing": (lambda right: right, "equal up to rounding"),
    "sign": (lambda right: -right, "the wrong sign"),
    "square": (
        lambda right: right * 2,
        "2 times the reference: counted twice, or the slope of a square or the root of the size of axis 1",
    ),
    "half": (
        lambda right: right / 2,
        "1/2 of the reference: lost once of twice, or the slope of a square or divided by the root of the size of "
        "axis 1",
    ),
    "root": (lambda right: right * 3**0.5, "1.73205 times the reference: the root of the size of axis 0"),
    "inverse root": (
        lambda right: right / 3**0.5,
        "1/1.73205 of the reference: divided by the root of the size of axis 0",
    ),
    "shifted": (
        lambda right: np.concatenate([right[:, 1:], right[:, :1] + 7], axis=1),
        "shifted by one along axis 1: at i it is the reference at i + 1",
    ),
    "shifted back": (
        lambda right: np.concatenate([0 * right[:, :1], right[:, :-1]], axis=1),
        "shifted by one along axis 1: at i it is the reference at i - 1",
    ),
    "clipped above": (lambda right: right.clip(max=0.2), "never above 0.2: clipped"),
    "clipped below": (lambda right: right.clip(min=-0.25), "never below -0.25: clipped"),
    "clipped": (lambda right: right.clip(-0.25, 0.25), "never beyond 0.25 and -0.25: clipped"),
    "clipped elsewhere": (lambda right: right.clip(-0.25, 0.3), "never beyond 0.3 and -0.25: clipped"),
    "rows": (lambda right: right * 3, "3 times the reference: the size of axis 0"),
    "mean": (lambda right: right / 12, "1/12 of the reference: divided by the number of entries"),
    "sign and factor": (lambda right: right * -4, "the wrong sign, and 4 times the reference: the size of axis 1"),
    "factor": (lambda right: right * 1.7, "1.7 times the reference"),
    "zero": (lambda right: right * 0, "zero everywhere: the gradient was not passed on"),
    "constant": (lambda right: right + 2.5, "the reference plus 2.5 everywhere"),
    "term": (
        lambda right: right + right.sum(axis=1, keepdims=True),
        "the reference plus a term that is constant along axis (1,): a bias or a mean, extra or missing",
    ),
    "lost axis": (
        lambda right: right * 0 + right.sum(axis=0),
        "constant along axis (0,), along which the reference varies: summed or broadcast too early",
    ),
    "sums": (
        lambda right: right[:1] + right[:, :1],
        "a term for each row plus one for each column: sums, where the reference has a product",
    ),
    "transposed": (lambda right: right.T, "shape (4, 3), the reference has (3, 4): transposed, the values are right"),
    "flat": (lambda right: right.reshape(-1), "shape (12,), the reference has (3, 4): reshaped, the values are right"),
    "shape": (lambda right: right[:2], "shape (2, 4), the reference has (3, 4)"),
    "row": (
        lambda right: right * np.array([[1], [2], [1]], right.dtype),
        "only index 1 of axis 0 differs; there: "
        "2 times the reference: counted twice, or the slope of a square or the root of the size of axis 1",
    ),
    "column": (
        lambda right: right * np.array([1, 1, 1, -1], right.dtype),
        "only index 3 of axis 1 differs; there: the wrong sign",
    ),
    "nan": (lambda right: np.where(right == right[2, 3], np.nan, right), "not finite at 1 of 12 positions: (2, 3)"),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mistake", MISTAKES)
def test_names_the_mistake(mistake: str, dtype: str) -> None:
    plant, words = MISTAKES[mistake]
    right = np.random.default_rng(0).normal(size=SHAPE).astype(dtype)
    assert describe_difference(plant(right).astype(dtype), right) == words


def test_transpose_of_a_square_matrix() -> None:
    right = np.random.default_rng(0).normal(size=(3, 3))
    assert describe_difference(right.T, right) == "the transpose of the reference"


def test_a_broadcast_gradient_that_was_not_summed() -> None:
    grad = np.random.default_rng(0).normal(size=(5, 3, 4))
    assert describe_difference(grad, grad.sum(axis=(0, 2)).reshape(3, 1)) == (
        "shape (5, 3, 4), the reference has (3, 1): summed over axis (0, 2), the values are right; "
        "the operand was broadcast along it"
    )


def test_kinks() -> None:
    """relu's slope at 0 taken as 1: every wrong position is a kink. Without the mask, the positions are listed."""
    input = np.array([[0.0, 1.0, -2.0], [3.0, 0.0, 0.0]])
    grad = np.array([[1.5, -2.0, 0.5], [0.3, 4.0, -1.0]])
    right, wrong = grad * (input > 0), grad * (input >= 0)
    assert describe_difference(wrong, right, kinks=input == 0) == (
        "differs at ties or kinks only, 3 of 6 positions: (0, 0), (1, 1), (1, 2)"
    )
    wrong[0, 2] = 1
    assert describe_difference(wrong, right, kinks=input == 0) == (
        "4 of 6 positions: (0, 0), (0, 2), (1, 1), (1, 2); worst 4, the reference has 0"
    )


def test_the_distance_to_the_nearest_kink() -> None:
    distance = np.array([[0.5, 0.25], [1e-9, 3.0]])
    assert describe_kinks(distance, (0, 1)) == ("the input is 0.25 from a kink there; the nearest is 1e-09, at (1, 0)")


def test_the_batch_size_is_a_factor_to_be_named() -> None:
    right = np.random.default_rng(0).normal(size=SHAPE)
    assert describe_difference(right / 7, right, batch_size=7) == "1/7 of the reference: divided by the batch size"
    assert describe_difference(right * 7, right, batch_size=7) == "7 times the reference: the batch size"
    assert describe_difference(right * 7, right) == "7 times the reference"


def test_nothing_but_nan_was_never_written() -> None:
    right = np.random.default_rng(0).normal(size=2)
    assert describe_difference(right * np.nan, right) == (
        "not finite at 2 of 2 positions: (0,), (1,); 0 / 0, or it was never written, or added to what was there"
    )


def test_many_rows_are_not_listed() -> None:
    right = np.random.default_rng(0).normal(size=(9, 2))
    wrong = right.copy()
    wrong[:5] += np.arange(1.0, 11.0).reshape(5, 2)
    assert describe_difference(wrong, right).startswith("10 of 18 positions: (0, 0), (0, 1), (1, 0), (1, 1), ...; ")


def test_a_reference_that_is_not_finite_proves_nothing() -> None:
    right = np.array([1.0, np.inf])
    assert describe_difference(np.ones(2), right) == "the reference is not finite at 1 of 2 positions: (1,)"


def test_many_positions_are_cut_short() -> None:
    right = np.random.default_rng(0).normal(size=(2, 3))
    wrong = right + np.array([[1, 2, 3], [4, 50, 6]])
    assert describe_difference(wrong, right) == (
        "6 of 6 positions: (0, 0), (0, 1), (0, 2), (1, 0), ...; "
        f"worst {wrong[1, 1]:.6g}, the reference has {right[1, 1]:.6g}"
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_difference_ten_times_the_tolerance_is_no_rounding(dtype: str) -> None:
    """2.001 for 2, as an approximate constant in a formula would give; and nothing at all in an empty gradient."""
    right = np.random.default_rng(0).normal(size=SHAPE).astype(dtype)
    assert describe_difference((right * 1.0005).astype(dtype), right) == "1.0005 times the reference"
    assert describe_difference(right[:0], right[:0]) == "equal up to rounding"


def test_an_axis_along_which_both_are_constant_is_not_blamed() -> None:
    """The gradient of a matrix in a sum is the same in every row: a wrong one is wrong for another reason."""
    right = np.tile([1.0, 2.0, 3.0], (4, 1))
    wrong = np.tile([1.0, 2.5, 2.0], (4, 1))
    assert describe_difference(wrong, right) == (
        "only indices 1, 2 of axis 1 differ; there: "
        "8 of 8 positions: (0, 1), (0, 2), (1, 1), (1, 2), ...; worst 2, the reference has 3"
    )


def test_positions_of_a_part_are_those_of_the_tensor() -> None:
    right = np.arange(30.0).reshape(6, 5)
    wrong = right.copy()
    for place in ((3, 2), (4, 2), (5, 3)):
        wrong[place] += 1 + place[1]
    assert describe_difference(wrong, right) == (
        "only indices 3, 4, 5 of axis 0 differ; there: only indices 2, 3 of axis 1 differ; there: "
        "3 of 6 positions: (3, 2), (4, 2), (5, 3); worst 32, the reference has 28"
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_fails_the_comparison_is_never_called_equal(dtype: str) -> None:
    """A difference of three tolerances of the norm, and each explanation is as exact as that asks for."""
    right = np.random.default_rng(0).normal(size=SHAPE).astype(dtype)
    right[0, 0] = 4
    small = 3 * SUM_OF_PRODUCTS[dtype]
    for wrong, words in [
        (right * (1 + small), {"float32": "1.00003 times", "float64": "(1 + 3e-12) times"}[dtype]),
        (right * (1 - small), {"float32": "0.99997 times", "float64": "(1 - 3e-12) times"}[dtype]),
        (right + 4 * small, "the reference plus"),
        (right + 4 * small * (np.arange(12) == 5).reshape(SHAPE), "only index 1 of axis 0 differs; there: only"),
        (right + 4 * small * np.random.default_rng(1).choice([-1, 1], SHAPE), "12 of 12 positions"),
    ]:
        assert describe_difference(wrong.astype(dtype), right).startswith(words)
    assert describe_difference((right * (1 + small / 10)).astype(dtype), right) == "equal up to rounding"


@pytest.mark.parametrize("magnitude", [1e-30, 1e30])
def test_values_whose_squares_float32_cannot_hold(magnitude: float) -> None:
    right, other = (magnitude * np.random.default_rng(seed).normal(size=SHAPE) for seed in (0, 1))
    right, other = right.astype(np.float32), other.astype(np.float32)
    assert describe_difference(3 * right, right) == "3 times the reference: the size of axis 0"
    assert describe_difference(other, right).startswith("12 of 12 positions")
    assert describe_difference(other, 0 * right).startswith("12 of 12 positions")


def test_of_a_single_number_nothing_is_reported_but_what_has_a_name() -> None:
    right = np.array(0.3)
    assert describe_difference(1.7 * right, right) == "0.51, the reference has 0.3"
    assert describe_difference(right + 1e-9, right) == "0.30000000100000002, the reference has 0.29999999999999999"
    assert describe_difference(-right, right) == "the wrong sign"
    assert describe_difference(right / 7, right, batch_size=7) == "1/7 of the reference: divided by the batch size"
    assert describe_difference(np.array([[0.0, 0.51]]), np.array([[0.0, 0.3]])) == (
        "only index 1 of axis 1 differs; there: 0.51, the reference has 0.3"
    )


def test_a_size_of_one_is_no_factor() -> None:
    right = np.random.default_rng(0).normal(size=(1, 5))
    assert describe_difference(right * (1 + 5e-12), right, batch_size=1) == "(1 + 5e-12) times the reference"


def test_the_largest_number_alone_is_not_called_clipped() -> None:
    right = np.random.default_rng(0).normal(size=SHAPE)
    largest = right == right.max()
    words = describe_difference(np.where(largest, right.max() - 1e-3, right), right)
    assert "clipped" not in words
    assert words.startswith("only index")


def test_signs_of_one_size_are_called_clipped() -> None:
    right = np.random.default_rng(0).normal(size=SHAPE)
    assert describe_difference(5 * np.sign(right), 1e4 * right) == "never beyond 5 and -5: clipped"


def test_the_batch_size_is_named_in_a_part() -> None:
    right = np.random.default_rng(0).normal(size=SHAPE)
    wrong = right * np.array([1, 1, 1, 1 / 7])
    assert describe_difference(wrong, right, batch_size=7) == (
        "only index 3 of axis 1 differs; there: 1/7 of the reference: divided by the batch size"
    )


def test_integers_as_an_embedding_in_a_branch_gets_them() -> None:
    reference = np.arange(12).reshape(3, 4)
    words = "2 times the reference: counted twice, or the slope of a square or the root of the size of axis 1"
    assert describe_difference(2 * reference, reference) == words
    assert describe_difference(reference.astype(np.float32), reference) == "equal up to rounding"


def test_digits_of_float32_are_seen() -> None:
    right = np.random.default_rng(0).standard_normal((4, 5))
    words = describe_difference(right.astype(np.float32).astype(np.float64), right)
    assert words == "right to the digits of float32: is something inside float32?"


def test_values_that_were_lost_are_not_called_clipped() -> None:
    right = -np.random.default_rng(0).uniform(0.1, 1, (4, 5))
    assert "clipped" not in describe_difference(np.where(right < -0.5, 0.0, right), right)
