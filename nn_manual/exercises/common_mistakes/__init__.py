"""Common mistakes: what each exercise itself says of them, chapter by chapter."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from nn_manual.exercises.candidates import Candidate, Text
from nn_manual.exercises.changes import Change
from nn_manual.exercises.common_mistakes import calculus, classes, normalizations, sequences, updates
from nn_manual.exercises.exercise import Exercise

#: Of each exercise, the sentence for a change. The change is named by its words, "without `* input`", or written as
#: "formula => wrong formula", which holds at each place where the formula stands: so a mistake that no rule makes has a
#: sentence, too.
MISTAKES: Mapping[str, Mapping[str, str]] = {
    **calculus.MISTAKES,
    **classes.MISTAKES,
    **normalizations.MISTAKES,
    **sequences.MISTAKES,
    **updates.MISTAKES,
}
ARROW = " => "


def reason_for(exercise: Exercise, candidate: Candidate) -> str:
    """The exercise's sentence for a change; empty where it has none."""
    own = MISTAKES.get(exercise.name, {})
    words = {change.words for _, change in candidate.edits}
    return own.get(words.pop(), "") if len(words) == 1 else ""


def written_mistakes(exercise: Exercise, text: Text) -> Iterator[Candidate]:
    """The mistakes that are written as formulas, at all places of a text where they can be made."""
    for written, reason in MISTAKES.get(exercise.name, {}).items():
        right, arrow, wrong = written.partition(ARROW)
        if arrow:
            edits = tuple((index, change) for index, unit in enumerate(text.units) for change in _changes(unit, right, wrong))
            if edits:
                yield Candidate(edits, ("",) * len(edits), "", 0, reason)


def _changes(unit: ast.AST, right: str, wrong: str) -> Iterator[Change]:
    formula, other = (ast.parse(code, mode="eval").body for code in (right, wrong))
    for node in ast.walk(unit):
        if isinstance(node, ast.expr) and ast.dump(node) == ast.dump(formula):
            yield Change(node, other, f"with `{wrong}` in the place of `{right}`", 0)
