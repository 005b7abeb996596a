"""What is said of a change that explains a reader's numbers, and of mistakes that no change of a formula shows."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from nn_manual.arrays import Array
from nn_manual.exercises.causes.candidates import Candidate
from nn_manual.exercises.causes.changes_of_names import SCALED
from nn_manual.exercises.causes.common_mistakes import TOGETHER, reason_for
from nn_manual.exercises.kinds.exercise import Case, Exercise, Results
from nn_manual.exercises.kinds.of_schedules import ScheduleExercise
from nn_manual.exercises.running.memory import NO_NUMBER, is_memory, kept_as_it_was, never_written

NOT_SPREAD = "{0} has the right numbers in another shape, {1} for {2}: they must be spread over all of it."
#: So many lines are quoted.
MOST_LINES = 2


def sentence(exercise: Exercise, found: Candidate, wrong: str) -> str:
    """The change in the words of the formula, and behind it the exercise's own words for it."""
    lines: dict[str, list[str]] = {}
    for (_, change), line in zip(found.edits, found.lines, strict=True):
        lines.setdefault(change.words, []).append(line)
    parts = [_told(words, list(dict.fromkeys(of_words)), wrong) for words, of_words in lines.items()]
    reason = found.reason or reason_for(exercise, found)
    return f"{_start(exercise, wrong)} {TOGETHER.join(parts)}.{reason and ' '}{reason}"


def _start(exercise: Exercise, wrong: str) -> str:
    if isinstance(exercise, ScheduleExercise):  # its counts are few: another formula may give the same there
        return f"At these counts this is the {wrong} of the right formula"
    if " after step " in wrong:
        return "This is the right step"
    name = "derivative" if "derivative" in exercise.taken_out and wrong not in ("grad_target", "output") else wrong
    return f"This is the right {name}"


def _told(words: str, lines: list[str], wrong: str) -> str:
    """The words of a change, and in which lines it is. Where another line is changed as a whole, it is what this line
    computes that is changed, and not the tensor.
    """
    where = _where(lines, wrong)
    name, is_assigned, _ = lines[0].partition(" = ")
    if where and is_assigned and len(lines) == 1:
        name = f"`{name.removesuffix('[...]')}`"
        if words == SCALED[0]:
            words = f"with the sign of {name} turned"
        elif words.startswith(("times ", "divided by ", "plus ")):
            words = f"with {name} {words}"
    return words + where


def _where(lines: list[str], wrong: str) -> str:
    """In which lines, unless it is that of the tensor itself."""
    own = (wrong, f"self.grad.{wrong.removeprefix('grad_')}[...]", "", "return")
    if all(re.split(" = | ", line)[0] in own for line in lines):
        return ""
    if len(lines) > MOST_LINES:
        return f" in {len(lines)} lines"
    return f" in {' and in '.join(f'`{line}`' for line in lines)}"


def seen_without_formula(
    exercise: Exercise, cases: Sequence[Case], expected: Sequence[Results], theirs: Sequence[Results], wrong: str
) -> str:
    """What shows without a formula: memory that was never written, right numbers in a smaller shape."""
    if " after step " in wrong:
        return kept_as_it_was(cases, expected, theirs)
    both = [(own.get(wrong), right[wrong]) for own, right in zip(theirs, expected, strict=True) if wrong in right]
    arrays = [(np.asarray(own), np.asarray(right)) for own, right in both if isinstance(own, np.ndarray | np.number)]
    # Arrays without numbers are right whatever was written.
    arrays = [(own, right) for own, right in arrays if own.size and right.size and own.dtype.kind == "f"]
    if arrays and is_memory(exercise.owner, wrong):
        lost = [np.isnan(own) & ~np.isnan(right) for own, right in arrays if own.shape == right.shape]
        if any(each.any() for each in lost) and all(map(_lacks, *zip(*arrays, strict=True))):
            everywhere = " anywhere" if all(each.all() for each in lost) else " in some places"
            return never_written(wrong, everywhere)
    if overflow := _overflow(arrays):
        return overflow
    smaller = [(own, right) for own, right in arrays if own.shape != right.shape]
    if smaller and all(_spreads(own, right) for own, right in arrays):
        own, right = smaller[0]
        return NOT_SPREAD.format(wrong, own.shape, right.shape)
    return ""


def _overflow(arrays: Sequence[tuple[Array, Array]]) -> str:
    """About numbers that are right where they are finite, and infinite or none where the right ones are finite."""
    lost = [~np.isfinite(own) & np.isfinite(right) for own, right in arrays if own.shape == right.shape]
    if len(lost) < len(arrays) or not any(each.any() for each in lost):
        return ""
    pairs = list(zip(arrays, lost, strict=True))
    if not all(_near(np.where(each, right, own), right) for (own, right), each in pairs):
        return ""
    if any(np.isinf(own[each]).any() for (own, _), each in pairs):
        return "It is infinite where the right one is finite: a division by 0, or an overflow."
    return f"In places it {NO_NUMBER}"


def _lacks(own: Array, right: Array) -> bool:
    """Whether all numbers are right but those that are lost."""
    return own.shape == right.shape and _near(np.where(np.isnan(own), right, own), right)


def _spreads(own: Array, right: Array) -> bool:
    try:
        return _near(np.broadcast_to(own, right.shape), right)
    except ValueError:
        return False


def _near(own: Array, right: Array) -> bool:
    return bool(np.allclose(own, right, rtol=0, atol=1e-9 * float(np.nanmax(np.abs(right))), equal_nan=True))
