"""The words of changes: code is quoted as a whole, or not at all, and settings have their names."""

from __future__ import annotations

import ast

import numpy as np
import pytest

from nn_manual.exercises.causes.change import LONGEST, in_place, text
from nn_manual.exercises.causes.changes_of_names import of_whole
from nn_manual.exercises.causes.code_statements import of_conditions
from nn_manual.optim import Muon

SHORT = ast.parse("grad_output * 2", mode="eval").body
FITS, LONG = (ast.parse("x" * number, mode="eval").body for number in (LONGEST, LONGEST + 1))


def test_code_is_never_cut() -> None:
    assert text(FITS) == f"`{'x' * LONGEST}`"
    assert text(LONG) == "a long formula"


@pytest.mark.parametrize(
    ("wrong", "node", "said"),
    [
        (SHORT, FITS, f"with `grad_output * 2` in the place of `{'x' * LONGEST}`"),
        (LONG, SHORT, "with another formula in the place of `grad_output * 2`"),
        (LONG, LONG, "with another formula in the place of a long formula"),
    ],
)
def test_a_formula_in_the_place_of_another_one(wrong: ast.expr, node: ast.expr, said: str) -> None:
    assert in_place(wrong, node) == said


def test_one_array_in_the_place_of_a_formula() -> None:
    words = [change.words for change in of_whole(SHORT, {"weight": np.ones(3)}, [])]
    assert "with `weight` alone in the place of `grad_output * 2`" in words


@pytest.mark.parametrize(
    ("test", "said"),
    [
        ("self.nesterov", ("with nesterov=True on every input", "with nesterov=False on every input")),
        ("self.momentum", ("with `self.momentum` always true", "with `self.momentum` always false")),
        ("is_better", ("with `is_better` always true", "with `is_better` always false")),
    ],
)
def test_a_condition_that_is_decided(test: str, said: tuple[str, str]) -> None:
    (unit,) = ast.parse(f"def move(self):\n    if {test}:\n        return 1\n    return 2").body
    assert isinstance(unit, ast.FunctionDef)
    assert tuple(candidate.edits[0][1].words for candidate in of_conditions(0, unit, Muon)) == said
