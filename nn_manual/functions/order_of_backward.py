"""In which order the backward of a pair takes its arguments: what was saved first or last. It is tried."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from nn_manual.check.compare.comparison import CannotCompare, Pair
from nn_manual.functions.battery.trial import Trial
from nn_manual.functions.function_report import FunctionReport
from nn_manual.functions.handwritten import Handwritten
from nn_manual.functions.judged_case import judge_in_part
from nn_manual.functions.pairs import pairs
from nn_manual.functions.signatures import calls_saved_first, calls_saved_last


class ComparedValues(NamedTuple):
    """A trial whose values were compared, and what came of it: a report, or why they can't be compared. `note` is a
    sentence for the report if the backward isn't `backward(saved, *grad_outputs)`.
    """

    trial: Trial
    found: FunctionReport | CannotCompare
    note: str = ""

    @property
    def agrees(self) -> bool:
        """Whether all values agree."""
        return isinstance(self.found, FunctionReport) and self.found.agrees

    def num_right(self) -> int:
        """How many numbers of its tensors are within their tolerance."""
        found = pairs(self.trial.case)
        return sum(int((np.abs(pair.ours - pair.reference.numpy()) <= _allowed(pair)).sum()) for pair in found)

    @property
    def proves_nothing(self) -> bool:
        """Whether its values were compared, and some are zero everywhere, as where a gradient is None."""
        return isinstance(self.found, FunctionReport) and bool(self.found.vacuous)

    @property
    def raised(self) -> bool:
        """Whether the function raised an error."""
        return isinstance(self.found, CannotCompare) and self.found.__cause__ is not None


def compare_values(trial: Trial) -> ComparedValues:
    """Compare the values in that order in which the function is right; or else, in which it runs and returns what fits;
    or else, in which it is less wrong. The one that the names of backward's arguments suggest comes first. Where they
    suggest none, the order in which it runs counts, even if it returns what doesn't fit.
    """
    function = trial.function
    if not isinstance(function, Handwritten) or function.other_backward is None:
        return _compared(trial)
    by_names = calls_saved_last(function.backward)
    names_say = by_names or calls_saved_first(function.backward)
    first = _in_order(trial, function, saved_last=by_names)
    if first.agrees and (names_say or not first.proves_nothing):
        return first
    second = _in_order(trial, function, saved_last=not by_names)
    if first.agrees:  # in the wrong order, None may have been taken for the gradient
        return second if isinstance(second.found, FunctionReport) and not second.agrees else first
    only_the_second_fits = first.raised and isinstance(second.found, FunctionReport)
    only_the_second_runs = first.raised and not (second.raised or names_say)
    if (second.agrees and not second.proves_nothing) or only_the_second_fits or only_the_second_runs:
        return second
    if first.raised and second.raised and not names_say:
        return first._replace(found=_of_both(first.found, second.found))
    both_run = isinstance(first.found, FunctionReport) and isinstance(second.found, FunctionReport)
    if not both_run or second.proves_nothing or first.num_right() >= second.num_right():
        return first
    how = "first" if by_names else "last"
    words = f"wrong in both orders of backward's arguments, and less so where what was saved comes {how}"
    return second._replace(note=f"{trial.label}: {words}")


def _of_both(first: FunctionReport | CannotCompare, second: FunctionReport | CannotCompare) -> CannotCompare:
    """What was raised in both orders. The cause is that of the first one."""
    problem = CannotCompare(f"{first}; in the other order of its arguments: {second}")
    problem.__cause__ = first.__cause__ if isinstance(first, CannotCompare) else None
    return problem


def _allowed(pair: Pair) -> float:
    return float(pair.quantity.tolerance * pair.reference.abs().max()) if pair.reference.numel() else 0.0


def _in_order(trial: Trial, function: Handwritten, *, saved_last: bool) -> ComparedValues:
    backward = function.other_backward if saved_last else function.backward
    assert backward is not None
    found = _compared(replace(trial, function=replace(function, backward=backward, other_backward=None)))
    if not (saved_last or calls_saved_last(function.backward)):
        return found
    words = "last, after the gradients of the outputs" if saved_last else "first, though its arguments' names say last"
    return found._replace(note=f"{trial.label}: backward takes what forward saved {words}")


def _compared(trial: Trial) -> ComparedValues:
    try:
        return ComparedValues(trial, judge_in_part(trial.case))
    except CannotCompare as problem:
        return ComparedValues(trial, problem)
