"""The check of a model's gradients, once: nothing is trained."""

from __future__ import annotations

import numpy as np

from nn_manual.arrays import Array, Padded, check_arrays
from nn_manual.check.judge.report import GradientReport
from nn_manual.check.whole_step.checker import GradientChecker
from nn_manual.check.whole_step.denominator import wrong_denominator
from nn_manual.errors import GradientMismatch
from nn_manual.losses import Loss
from nn_manual.model import Sequential


class NothingCounts(ValueError):  # noqa: N818 - says what was found
    """No target of the batch counts: there is no loss to check."""


def check_gradients(model: Sequential, loss: Loss, input: Array | Padded, target: Array) -> GradientReport:
    """Run forward and backward once and compare everything with torch: each layer's output, the loss, and the
    gradients of the prediction, of the target (regression losses), of every parameter, at every layer boundary and of
    the input. The conduct of layers and loss is checked, too, the loss's `denominator`, and whether the comparisons
    prove anything. Nothing is trained: the buffers stay as they were, as do input and target; the gradients stay in the
    model. The report's str() is the table.

    input (batch, ...) in the model's dtype, or Padded, target as the loss takes it. Raises ValueError or TypeError
    where they don't fit or are no arrays, for an empty batch, and for a mean over targets of which none counts.
    """
    return checked_in_part(model, loss, input, target)


def checked_in_part(
    model: Sequential,
    loss: Loss,
    input: Array | Padded,
    target: Array,
    *,
    with_conduct: bool = True,
    with_vacuous: bool = True,
) -> GradientReport:
    """check_gradients, without what another case of the same layer has shown: see GradientChecker.report."""
    if not isinstance(model, Sequential):
        raise TypeError(f"the model is {model!r}, and must be a Sequential: Sequential(layer) is one of a layer alone")
    check_arrays(input=input, target=target)
    if not input.size:
        raise ValueError(f"the input is empty, shape {input.shape}: nothing to check")
    checker = GradientChecker(model, loss, input_grad=True)
    # So it shows if a backward forgets to write a gradient, or adds to it.
    for grad in (model.grad_arena, *model.ties.use_grads.values()):
        grad.fill(np.nan)
    try:
        with checker.recording(), np.errstate(invalid="ignore"):  # the mean over nothing
            checker.run(input.copy(), target.copy())  # who writes into them must not spoil the caller's
        if not loss.has_value(loss.denominator(target)):
            raise NothingCounts(f"{type(loss).__name__} counts no target of the batch: there is no loss to check")
        report = checker.report(with_conduct=with_conduct, with_vacuous=with_vacuous)
        problem = wrong_denominator(checker.recorded.loss) if report.agrees and with_conduct else ""
        return GradientReport((), problem=problem) if problem else report
    except GradientMismatch as mismatch:
        wrong: GradientReport = mismatch.report
        return wrong
    finally:
        for name, buffer in checker.recorded.buffers_before.items():
            checker.recorded.buffers[name][...] = buffer


def reference_gradients(model: Sequential, loss: Loss, input: Array | Padded, target: Array) -> dict[str, Array]:
    """torch's gradients in a training step on this batch, by their names in a check: "loss.grad_prediction",
    "2.grad_weight", "2.grad_input". Nothing is trained; the gradients of the step stay in the model.
    """
    checker = GradientChecker(model, loss)
    with checker.recording():
        checker.run(input.copy(), target.copy())
    for name, buffer in checker.recorded.buffers_before.items():
        checker.recorded.buffers[name][...] = buffer
    step = checker.proof()
    names = {quantity.name for quantity in step.plan.backward}
    return {pair.quantity.name: pair.reference.numpy().copy() for pair in step.pairs if pair.quantity.name in names}
