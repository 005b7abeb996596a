"""The verdict about one case: every pair in full, with what rounding excuses and what a difference looks like."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from nn_manual.check.compare.comparison import CannotCompare, Comparison, Pair, compare
from nn_manual.check.judge.diagnosis import describe_difference
from nn_manual.functions.arguments import as_tensor
from nn_manual.functions.callables import floats
from nn_manual.functions.excused import beyond_by_rounding
from nn_manual.functions.function_case import FunctionCase
from nn_manual.functions.function_report import FunctionReport
from nn_manual.functions.hints import describe_cause
from nn_manual.functions.kinks import at_kinks
from nn_manual.functions.low_precision import TooCoarse
from nn_manual.functions.outputs import BUFFER
from nn_manual.functions.own_forward import OwnForward
from nn_manual.functions.pairs import Noticed, pairs, values_of_reference
from nn_manual.functions.randomness import check_not_random
from nn_manual.functions.swapped import describe_mixed_up
from nn_manual.functions.watched_runs import Between

#: The values of so many inputs are shown.
MOST_INPUTS = 3


def judge(case: FunctionCase, between: Between | None = None) -> FunctionReport:
    """Compare everything that the function and its reference compute. Raises CannotCompare as `pairs` does, and for a
    function that is random, ValueError for a reference that is, and TooCoarse where all agrees that can be judged, and
    some can't.
    """
    report = judge_in_part(case, between)
    if report.agrees and report.not_judged:
        raise TooCoarse(report.not_judged[0])
    return report


def judge_in_part(case: FunctionCase, between: Between | None = None) -> FunctionReport:
    """The same, where the report says what can't be judged."""
    noticed = Noticed()
    try:
        compared = list(pairs(case, between, noticed))
    except TooCoarse:
        check_not_random(case, [])
        raise
    if not (compared or noticed.not_judged or case.drawn or case.settled):
        raise CannotCompare(f"{case.label}: all that was returned is empty: there is nothing to compare")
    in_full, vacuous = tuple(_in_full(case, pair) for pair in compared), tuple(_vacuous(case, compared))
    not_judged = tuple(noticed.not_judged.values())
    report = FunctionReport(in_full, vacuous=vacuous, habits=noticed.habits, not_judged=not_judged)
    if report.agrees:
        return report
    check_not_random(case, compared)  # a random reference is as far from itself: that would be an excuse
    by_name = {pair.quantity.name: pair for pair in compared}
    failed = [by_name[failure.name] for failure in report.failures]
    excused = beyond_by_rounding(case, failed)
    not_judged += tuple(excused.not_judged.values())
    report = replace(report, rounding=excused.rounding, not_judged=not_judged)
    if report.agrees:
        return report
    if all(failure.name.startswith("grad_") for failure in report.failures):  # else nothing depends on them
        report = replace(report, kinks=at_kinks(case, compared, [by_name[failure.name] for failure in report.failures]))
        if report.agrees:
            return report
    first = by_name[report.failures[0].name]
    diagnosis = describe_mixed_up(case, first, compared) or describe_cause(case, first, compared)
    diagnosis = diagnosis or noticed.sums.get(first.quantity.name, "")
    if not diagnosis:
        diagnosis = describe_difference(first.ours, first.reference.numpy(), batch_size=case.batch_size)
        if first.ours.size == 1 and ", the reference has " in diagnosis:
            diagnosis = ""  # the report has the two values itself
    if isinstance(case.reference, OwnForward) and first.quantity.name.startswith("grad_"):
        diagnosis = diagnosis.replace(", the reference has ", ", differences give ")
    return replace(report, diagnosis=diagnosis, inputs_there=_inputs_there(case, report.failures[0]))


def _inputs_there(case: FunctionCase, first: Comparison) -> str:
    """The inputs' values where a tensor is worst: of that whose gradient it is, or of all in an output's shape. Nothing
    for a buffer, whose numbers aren't made of an input's at the same place.
    """
    name = first.name.partition(",")[0]
    if name.startswith(BUFFER):
        return ""
    found = []
    for called, leaf in zip(case.arguments.names, case.leaves(), strict=True):
        its_own = name == f"grad_{called}" or not name.startswith("grad_")
        if floats(leaf) and its_own and tuple(leaf.shape) == first.shape and first.shape:
            value = float(as_tensor(leaf)[first.index])
            found.append(f"{called}[{', '.join(map(str, first.index))}] is {value:.6g}")
    return ", ".join(found[:MOST_INPUTS])


def _in_full(case: FunctionCase, pair: Pair) -> Comparison:
    """With the ULPs of the 16 bits that it was computed in, where it was."""
    found = compare(*pair)
    eps = case.eps_of_low_precision
    if eps is None or not 0 < found.scale < math.inf:
        return found
    return replace(found, ulps=found.absolute / (eps * 2 ** math.floor(math.log2(found.scale))))


def _vacuous(case: FunctionCase, compared: list[Pair]) -> Iterator[str]:
    """A sentence for each output, and each gradient under every upstream gradient, that is zero, or has no number: in
    the pairs, zeros stand there. Nobody reads it of inputs that were drawn.
    """
    by_name: dict[str, list[Pair]] = {}
    for pair in compared:
        by_name.setdefault(pair.quantity.name.split(",")[0], []).append(pair)
    empty = {name: several for name, several in by_name.items() if not any(pair.reference.any() for pair in several)}
    values = values_of_reference(case) if empty and not case.drawn else {}
    for name, several in empty.items():
        found = [values[pair.quantity.name].isfinite() for pair in several if pair.quantity.name in values]
        if all(bool(finite.all()) for finite in found):
            how = "is zero everywhere"
        elif any(bool(finite.any()) for finite in found):
            how = "is zero wherever it has a number"
        else:
            how = "has no number anywhere"
        yield f"{several[0].quantity.layer}: {name} {how}"
