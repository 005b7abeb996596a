"""The check of code that is no layer: an autograd.Function, a fused kernel's wrapper, a forward and its backward."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from nn_manual.check.comparison import CannotCompare, Pair, compare
from nn_manual.check.functions.callables import Checked, Function
from nn_manual.check.functions.pairs import Case, check_state, pairs
from nn_manual.check.functions.rounding import beyond_by_rounding
from nn_manual.check.verdict.diagnosis import describe_difference
from nn_manual.check.verdict.report import GradientReport


def check_function(function: Checked, reference: Function, inputs: Sequence[Any], *, seed: int = 0) -> GradientReport:
    """Compare a function's outputs, and the gradient of each floating input, with those of `reference`.

        grad_input = sum over outputs of (d output / d input)^T grad_output

    for a random and for a negative grad_output, drawn from `seed`.

    `function` takes torch tensors and is differentiable by autograd: a subclass of torch.autograd.Function, its apply,
    or anything built on one. Or it is a pair `(forward, backward)`, which gets arrays or tensors as `inputs` has them:
    `forward(*inputs)` returns `(outputs, saved)` and `backward(saved, *grad_outputs)` the gradients, one for each
    floating input. `reference(*inputs)` is the definition on torch tensors, which autograd differentiates. Both return
    one array or a tuple; a number is an array of shape ().

    inputs: numpy arrays, torch tensors, and anything else, which is passed on as it is. All floating arrays have one
    dtype, float32 or float64. The gradients are named by the reference's parameters.

    What is beyond the tolerance and only rounding, as a computation in float64 shows, passes and is reported. A
    function that writes into what it was given, saved or returned before fails, and so does one whose backward depends
    on another run of its forward.

    Returns a report, whatever `function` does. Raises TypeError for other dtypes of the inputs or of the reference's
    outputs, complex ones among them, and ValueError for inputs or a reference with nothing to differentiate.
    """
    case = Case(function, reference, tuple(inputs), seed)
    try:
        compared = list(pairs(case))
        report = _report(case, compared)
        if report.agrees:
            check_state(case, compared)
    except CannotCompare as problem:
        return GradientReport((), problem=str(problem))
    return report


def _report(case: Case, compared: list[Pair]) -> GradientReport:
    """Every pair in full; rounding and a diagnosis where one is beyond the tolerance."""
    report = GradientReport(tuple(compare(*pair) for pair in compared), vacuous=tuple(_vacuous(compared)))
    if report.agrees:
        return report
    by_name = {pair.quantity.name: pair for pair in compared}
    failed = [by_name[failure.name] for failure in report.failures]
    report = replace(report, rounding=beyond_by_rounding(case, failed))
    if report.agrees:
        return report
    first = by_name[report.failures[0].name]
    diagnosis = describe_difference(first.ours, first.reference.numpy(), batch_size=case.batch_size)
    return replace(report, diagnosis=diagnosis)


def _vacuous(compared: list[Pair]) -> Iterator[str]:
    """A sentence for each output, and each gradient under every upstream gradient, that is zero."""
    by_name: dict[str, list[Pair]] = {}
    for pair in compared:
        by_name.setdefault(pair.quantity.name.split(",")[0], []).append(pair)
    for name, cases in by_name.items():
        if not any(case.reference.any() for case in cases):
            yield f"{cases[0].quantity.layer}: {name} is zero everywhere"
