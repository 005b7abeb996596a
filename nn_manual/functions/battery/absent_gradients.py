"""The row of outputs that have no gradient: one of several is not used, or none of them gets one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from nn_manual.functions.battery.trial import Skip, Trial, Wrong, agree
from nn_manual.functions.callables import Forward, by_autograd
from nn_manual.functions.exceptions import naming
from nn_manual.functions.function_case import FunctionCase
from nn_manual.functions.function_report import NOT_BY_AUTOGRAD
from nn_manual.functions.handwritten import run_function
from nn_manual.functions.outputs import check_structure


def absent(trial: Trial) -> None:
    """Each output unused while the others are used; then all of them without a gradient."""
    if trial.is_pair:
        raise Skip(NOT_BY_AUTOGRAD)
    case = trial.case
    theirs = by_autograd(case.reference, case.arguments, case.leaves(), case.wants())
    differentiable = [name for name, output in theirs.outputs.items() if output.requires_grad]
    for name in differentiable if len(differentiable) > 1 else []:
        try:
            agree(replace(case, absent=frozenset({name})))
        except Wrong as wrong:
            raise Wrong(f"where {name} is not used: {wrong}") from wrong
    _all_absent(case, theirs, differentiable)


def _all_absent(case: FunctionCase, theirs: Forward, differentiable: list[str]) -> None:
    """The next function returns None as its gradient: then the gradients of this one must be None or zero. Where the
    reference's gradient of zeros is NaN, as 0 / sqrt(-1) is, they may be NaN.
    """
    with naming(case.label, "backward, whose grad_output is None behind set_materialize_grads(False),"):
        ours = run_function(case.function, case.arguments, case.leaves(), case.wants())
        check_structure(case.label, ours.returned, theirs.returned)
        ours.outputs.update(
            zip(
                differentiable,
                _Forgets.apply(*(ours.outputs[name] for name in differentiable)),  # type: ignore[no-untyped-call] # torch has none
                strict=True,
            )
        )
        grads = ours.backward({name: torch.ones_like(ours.outputs[name]) for name in differentiable})
    for number, (name, grad) in enumerate(zip(case.floating, grads, strict=True)):
        if grad is None:
            continue
        values = grad.to_dense()
        if bool(values.isnan().any()):
            zeros = {output: torch.zeros_like(theirs.outputs[output]) for output in differentiable}
            expected = theirs.backward(zeros)[number]
            if expected is not None:
                values = values.masked_fill(values.isnan() & expected.to_dense().isnan(), 0)
        if bool(values.any()):
            raise Wrong(f"grad_{name} is not zero where no output has a gradient")


class _Forgets(torch.autograd.Function):
    """Passes its inputs on, and no gradient back."""

    @staticmethod
    def forward(_: Any, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(tensor.clone() for tensor in tensors)

    @staticmethod
    def backward(_: Any, *grads: torch.Tensor) -> tuple[None, ...]:
        return (None,) * len(grads)
