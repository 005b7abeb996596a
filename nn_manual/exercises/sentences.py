"""What is said of a change that explains a reader's numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nn_manual.exercises.candidates import Candidate
from nn_manual.exercises.exercise import Exercise, Results


def sentence(exercise: Exercise, found: Candidate, wrong: str) -> str:
    """The change, in the words of the formula, and the exercise's own words for it."""
    parts = list(dict.fromkeys(_part(change.words, line, wrong) for (_, change), line in zip(found.edits, found.lines, strict=True)))
    return f"This is the right {wrong} {', and '.join(parts)}."


def _part(words: str, line: str, wrong: str) -> str:
    name, mark, _ = line.partition(" = ")
    if not line or name == wrong:
        return words
    return f"{words} in `{line}`"


#: Said of numbers that nobody wrote.
NEVER_WRITTEN = (
    "{0} is {1}: it was never written, or added with `+=` to what was there. The memory is not 0 before backward runs: "
    "write into it with `self.grad.{2}[...] = `."
)


def seen_without_formula(expected: Sequence[Results], theirs: Sequence[Results], wrong: str) -> str:
    """What shows without a formula: memory that was never written, right values in another shape."""
    both = [(own[wrong], right[wrong]) for own, right in zip(theirs, expected, strict=True) if wrong in own and wrong in right]
    arrays = [(np.asarray(own), np.asarray(right)) for own, right in both if own is not None]
    if not arrays:
        return ""
    nothing = [np.isnan(own).all() and not np.isnan(right).any() for own, right in arrays if own.dtype.kind == "f" and own.size]
    if nothing and all(nothing) and wrong.startswith("grad_") and wrong not in ("grad_input", "grad_prediction", "grad_target"):
        return NEVER_WRITTEN.format(wrong, "not a number everywhere", wrong.removeprefix("grad_"))
    return ""
