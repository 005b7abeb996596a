"""Common mistakes: what each exercise itself says of them, chapter by chapter."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from nn_manual.exercises.causes.candidates import Candidate, Text
from nn_manual.exercises.causes.change import Change, in_place
from nn_manual.exercises.causes.common_mistakes import (
    calculus,
    classes,
    composites,
    elementwise,
    images,
    normalizations,
    schedules,
    sequences,
    updates,
)
from nn_manual.exercises.kinds.exercise import Exercise

#: Of each exercise, the sentence for a change. The change is named by its words, "without `* input`", if need be with
#: what its line computes behind them, "with its sign turned, in grad_b"; two changes by those of both. Or it is written
#: as "formula => wrong formula", which holds wherever the formula stands: so a mistake that no rule makes has a
#: sentence, too.
MISTAKES: Mapping[str, Mapping[str, str]] = {
    **calculus.MISTAKES,
    **classes.MISTAKES,
    **composites.MISTAKES,
    **elementwise.MISTAKES,
    **images.MISTAKES,
    **normalizations.MISTAKES,
    **schedules.MISTAKES,
    **sequences.MISTAKES,
    **updates.MISTAKES,
}
ARROW = " => "
#: Between the words of several changes, as a sentence has them.
TOGETHER = ", and "


def reason_for(exercise: Exercise, candidate: Candidate) -> str:
    """The exercise's sentence for a change; empty where it has none."""
    own = MISTAKES.get(exercise.name, {})
    words = TOGETHER.join(dict.fromkeys(change.words for _, change in candidate.edits))
    return own.get(words) or own.get(f"{words}, in {candidate.name}", "")


def written_mistakes(exercise: Exercise, formulas: Text) -> Iterator[Candidate]:
    """The mistakes that are written as formulas, at all places of a text where they can be made."""
    for written, reason in MISTAKES.get(exercise.name, {}).items():
        right, arrow, wrong = written.partition(ARROW)
        if arrow:
            units = enumerate(formulas.units)
            edits = tuple((index, change) for index, unit in units for change in _changes(unit, right, wrong))
            if edits:
                yield Candidate(edits, ("",) * len(edits), "", 0, reason)


def _changes(unit: ast.AST, right: str, wrong: str) -> Iterator[Change]:
    formula, other = (ast.parse(code, mode="eval").body for code in (right, wrong))
    words = in_place(other, formula)
    for node in ast.walk(unit):
        if isinstance(node, ast.expr) and ast.dump(node) == ast.dump(formula):
            yield Change(node, other, words, 0)
