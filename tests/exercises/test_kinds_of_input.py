"""On which inputs something is wrong, in a sentence."""

from __future__ import annotations

import pytest

from nn_manual.exercises.verdicts.kinds_of_input import Sayings, where_wrong

INPUTS = [
    (setting, kind)
    for setting in ("A()", "A(2)")
    for kind in ("random input", "tied input", "zero input", "random input, a batch of 1", "random input, shape (3, 4)")
]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (range(10), "It is wrong on every input."),
        ([1, 6], "It is wrong on tied input. It is right on random input and zero input."),
        ([3, 8], "It is wrong on random input (a batch of 1). It is right on random input, tied input, zero input and "
         "random input (other sizes)."),
        (range(5, 10), "It is wrong on A(2). It is right on A()."),
        ([0, 1, 3, 4, 5, 6, 8, 9], "It is wrong on every input but zero input."),
        ([1], "It is wrong on A() alone. There it is wrong on tied input. It is right on random input and zero input."),
        ([0, 1, 5], "It is wrong on random input (2 of 6) and tied input (1 of 2). It is right on zero input."),
    ],
)
def test_where_wrong(wrong: list[int], said: str) -> None:
    assert where_wrong(INPUTS, [*wrong], range(10), Sayings()) == said


def test_parts_of_a_kind_tell_it() -> None:
    kinds = [f"{first} prediction, {second} target" for first in ("random", "tied") for second in ("random", "zero")]
    inputs = [("L()", kind) for kind in kinds]
    said = where_wrong(inputs, [1, 3], range(4), Sayings("It fails", "It runs"))
    assert said == "It fails on zero target. It runs on random target."


SETTINGS = [
    (setting, kind)
    for setting in ("P(2)", "P(2, stride=1, size=(2, 3))", "P(3, stride=2)", "P(3, pad=1)")
    for kind in ("random input", "tied input", "zero input")
]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ([3, 4, 5], "It is wrong on inputs with stride=1 and size=(2, 3). It is right on inputs without stride=1 and "
         "size=(2, 3)."),
        ([3, 4], "It is wrong with stride=1 and size=(2, 3) alone. There it is wrong on every input but zero input."),
        ([3, 4, 5, 6, 7, 8],
         "It is wrong on inputs with a given stride. It is right on inputs without a given stride."),
        ([3, 4, 6], "It is wrong with a given stride alone. There it is wrong on random input and tied input (1 of "
         "2). It is right on zero input."),
        ([0, 3, 4, 7], "It is right with pad=1. Elsewhere it is wrong on random input (2 of 3) and tied input (2 of "
         "3). It is right on zero input."),
    ],
)
def test_a_setting_that_is_to_blame_is_told(wrong: list[int], said: str) -> None:
    assert where_wrong(SETTINGS, wrong, range(12), Sayings()) == said


def test_commas_in_brackets_need_no_semicolons() -> None:
    inputs = [(f"P({number}, 2)", "random input") for number in range(4)]
    assert where_wrong(inputs, [0, 1], range(4), Sayings()) == (
        "It is wrong on P(0, 2) and P(1, 2). It is right on P(2, 2) and P(3, 2)."
    )


def test_names_with_commas_are_listed_with_semicolons() -> None:
    inputs = [(f"sum of 3, axis=({axis}, {axis})", "random input") for axis in range(4)]
    assert where_wrong(inputs, [0, 1], range(4), Sayings()).startswith(
        "It is wrong on sum of 3, axis=(0, 0); and sum of 3, axis=(1, 1). It is right on"
    )
