"""On which inputs something is wrong, in a sentence."""

from __future__ import annotations

import pytest
from exercise_files import some_cases

from nn_manual.exercises.running.answer import Answer
from nn_manual.exercises.verdicts.judging import judge
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


class Pool:
    """A component whose examples have a size and a stride by their places, too."""

    def __init__(self, size: int, stride: int | None = None, *, pad: int = 0) -> None:
        """The tests read its parameters alone."""


SETTINGS = [
    (setting, kind)
    for setting in ("P(2)", "P(3, 1)", "P(4, stride=[1])", "P(5, stride=2)", "P(2, pad=1)", "P(6, pad=1, mode='max')")
    for kind in ("random input", "tied input", "zero input")
]
STRIDE_1, STRIDE_2, PAD = [*range(3, 9)], [*range(9, 12)], [*range(12, 18)]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (STRIDE_1, "It is wrong on inputs with stride=1. It is right on inputs without stride=1."),
        ([3, 4, 6], "It is wrong with stride=1 alone. There it is wrong on random input and tied input (1 of 2). It is "
         "right on zero input."),
        (STRIDE_1 + STRIDE_2, "It is wrong on inputs with a given stride. It is right on inputs without a given "
         "stride."),
        ([*range(12)], "It is wrong on inputs without pad=1. It is right on inputs with pad=1."),
        ([0, 3, 4, 7, 9], "It is right with pad=1. Elsewhere it is wrong on random input (3 of 4) and tied input (2 of "
         "4). It is right on zero input."),
        # What one example has may come from any of its settings.
        (STRIDE_2, "It is wrong on P(5, stride=2). It is right on P(2), P(3, 1), P(4, stride=[1]), P(2, pad=1) and "
         "P(6, pad=1, mode='max')."),
        ([9, 10], "It is wrong on P(5, stride=2) alone. There it is wrong on every input but zero input."),
        # No setting is that of exactly these examples.
        ([*STRIDE_2, *PAD], "It is wrong on P(5, stride=2), P(2, pad=1) and P(6, pad=1, mode='max'). It is right on "
         "P(2), P(3, 1) and P(4, stride=[1])."),
        ([0, 1, *STRIDE_2, 12], "It is wrong on P(2), P(5, stride=2) and P(2, pad=1) alone. There it is wrong on "
         "random input, tied input (2 of 3) and zero input (1 of 3)."),
        ([0, 1, 2, 12, 13, 14], "It is wrong on inputs with size=2. It is right on inputs without size=2."),
    ],
)
def test_a_setting_that_is_to_blame_is_told(wrong: list[int], said: str) -> None:
    assert where_wrong(SETTINGS, wrong, range(18), Sayings(), Pool) == said


def test_two_settings_that_tell_the_same_are_not_told_apart() -> None:
    inputs = [(f"P({size}, pad=1)" if size > 3 else f"P({size})", "random input") for size in (1, 2, 3, 4, 4)]
    assert where_wrong(inputs, [3, 4], range(5), Sayings(), Pool) == (
        "It is wrong on P(4, pad=1). It is right on P(1), P(2) and P(3)."
    )
    inputs = [("P(3)", ""), ("P(3, pad=1)", ""), ("P(3, pad=2)", "")]
    assert where_wrong(inputs, [0], range(3), Sayings(), Pool) == (
        "It is wrong on P(3). It is right on P(3, pad=1) and P(3, pad=2)."
    )
    inputs = [("P(3)", ""), ("P(4, pad=1)", ""), ("P(4, 2, pad=1)", "")]
    assert where_wrong(inputs, [1, 2], range(3), Sayings(), Pool) == "It is wrong on every input but P(3)."


def test_settings_of_inner_layers_are_not_those_of_the_layer() -> None:
    inputs = [
        ("Sum([Linear(2, bias=True)])", "random input"),
        ("Sum([Linear(3, bias=False), Norm(affine=True)])", "random input"),
        ("Sum([Linear(4, bias=False)])", "random input"),
        ("Sum([Linear(5, bias=True)])", "random input"),
    ]
    assert where_wrong(inputs, [1, 2], range(4), Sayings()) == (
        "It is wrong on Sum([Linear(3, bias=False), Norm(affine=True)]); and Sum([Linear(4, bias=False)]). It is "
        "right on Sum([Linear(2, bias=True)]) and Sum([Linear(5, bias=True)])."
    )


def test_of_long_examples_the_wrong_or_the_right_ones_are_told() -> None:
    inputs = [(f"Sum([{'a' * size}])", "random input") for size in (200, 190)]
    assert where_wrong(inputs, [0], range(2), Sayings()) == f"It is wrong on every input but {inputs[1][0]}."
    assert where_wrong(inputs, [1], range(2), Sayings()) == f"It is wrong on {inputs[1][0]} alone."


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


def test_the_row_of_an_optimizer_and_the_sentence_are_about_all_steps() -> None:
    right = some_cases("adagrad")
    name, later = "sum after step 1", "sum after step 2"
    theirs = [{**each, later: each[later] + 1} for each in right.expected]
    theirs[0] |= {name: theirs[0][name] + 1}
    verdict = judge(right, Answer(theirs), "file")
    assert verdict.first_words.startswith("sum after step 1 is wrong")
    assert [row.words for row in verdict.rows if row.name == "sum"] == [f"WRONG on all {len(theirs)} inputs"]
    assert verdict.explanation[-1] == "It is wrong on every input."
