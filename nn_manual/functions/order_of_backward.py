"""In which order the backward of a pair takes its arguments: what was saved first or last. It is tried."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from nn_manual.check.compare.comparison import CannotCompare
from nn_manual.functions.battery.trial import Trial
from nn_manual.functions.function_report import FunctionReport
from nn_manual.functions.handwritten import Handwritten
from nn_manual.functions.judged_case import judge_in_part
from nn_manual.functions.signatures import calls_saved_last


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

    @property
    def raised(self) -> bool:
        """Whether the function raised an error."""
        return isinstance(self.found, CannotCompare) and self.found.__cause__ is not None


def compare_values(trial: Trial) -> ComparedValues:
    """Compare the values in that order in which the function is right; or else, in which it runs and returns what fits.
    The one that the names of backward's arguments suggest comes first.
    """
    function = trial.function
    if not isinstance(function, Handwritten) or function.other_backward is None:
        return _compared(trial)
    by_names = calls_saved_last(function.backward)
    first = _in_order(trial, function, saved_last=by_names)
    if first.agrees:
        return first
    second = _in_order(trial, function, saved_last=not by_names)
    only_the_second_fits = first.raised and isinstance(second.found, FunctionReport)
    return second if second.agrees or only_the_second_fits else first


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
