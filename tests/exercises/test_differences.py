"""What a wrong result looks like: what is read into it holds on all inputs on which it is wrong."""

from __future__ import annotations

import numpy as np

from nn_manual.exercises.verdicts.differences import MULTIPLE, looks_like

ROW, COLUMN = np.array([[1.0, 2.0, 4.0]]), np.array([[1.0], [2.0], [5.0]])
SQUARE = np.array([[1.0, 2.0], [5.0, 7.0]])


def test_a_factor_is_that_of_all_inputs() -> None:
    assert looks_like(ROW / 3, ROW) == (
        "1/3 of the reference: divided by the size of axis 1 or the number of entries"
    )
    assert looks_like(ROW / 3, ROW, [(COLUMN / 3, COLUMN)]) == (
        "1/3 of the reference: divided by the number of entries"
    )


def test_two_names_of_a_factor_with_an_or_in_them() -> None:
    assert looks_like(2 * SQUARE, SQUARE, [(2 * ROW, ROW)]) == (
        "2 times the reference: counted twice, or the slope of a square"
    )


def test_a_factor_that_is_another_one_elsewhere_has_no_reading() -> None:
    assert looks_like(ROW / 3, ROW, [(SQUARE / 7, SQUARE)]) == MULTIPLE
    assert looks_like(ROW / 3, ROW, [(SQUARE / 7, SQUARE), (ROW / 3, ROW)]) == MULTIPLE


def test_an_unnamed_factor_of_all_inputs() -> None:
    assert looks_like(0.7 * ROW, ROW, [(0.7 * SQUARE, SQUARE)]) == "0.7 times the reference"


def test_a_transpose_by_chance_is_not_told() -> None:
    transposed = "the transpose of the reference"
    assert looks_like(SQUARE.T, SQUARE, [(SQUARE.T + 0, SQUARE)]) == transposed
    assert looks_like(SQUARE.T, SQUARE, [(SQUARE * [[1, 3], [5, 1]], SQUARE)]) == "2 of 4 positions: (0, 1), (1, 0)"


def test_an_axis_has_another_number_in_another_shape() -> None:
    wide, high = np.ones((2, 3)), np.ones((3, 2))
    words = looks_like(wide, 3 * np.ones((2, 1)), [(high, 3 * np.ones((1, 2)))])
    assert words.endswith("summed over axis (1,), the values are right; the operand was broadcast along it")
    assert looks_like(wide, 3 * np.ones((2, 1)), [(high, np.ones((1, 2)))]) == "shape (2, 3), the reference has (2, 1)"


def test_what_is_no_array_elsewhere_doesnt_count() -> None:
    assert looks_like(-ROW, ROW, [("None", ROW)]) == "the wrong sign"
