"""On which inputs something is wrong, in a sentence."""

from __future__ import annotations

import pytest

from nn_manual.exercises.kinds_of_input import where_wrong

INPUTS = [
    (setting, kind)
    for setting in ("A()", "A(2)")
    for kind in ("random input", "tied input", "zero input", "random input, a batch of 1", "random input, shape 3x4")
]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (range(10), "It is wrong on every input."),
        ([1, 6], "It is wrong on tied input; right on random input and zero input."),
        ([3, 8], "It is wrong on random input, a batch of 1; right on random input, tied input, zero input and random "
         "input, other sizes."),
        (range(5, 10), "It is wrong on A(2); right on A()."),
        ([0, 1, 3, 4, 5, 6, 8, 9], "It is wrong on every input but zero input."),
        ([1], "It is wrong on tied input (1 of 2); right on random input and zero input."),
    ],
)
def test_where_wrong(wrong: list[int], said: str) -> None:
    assert where_wrong(INPUTS, [*wrong], range(10), "It is wrong") == said


def test_parts_of_a_kind_tell_it() -> None:
    kinds = [f"{first} prediction, {second} target" for first in ("random", "tied") for second in ("random", "zero")]
    inputs = [("L()", kind) for kind in kinds]
    assert where_wrong(inputs, [1, 3], range(4), "It fails") == "It fails on zero target; right on random target."
