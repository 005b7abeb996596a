"""The check of a step: everything that the step computed, once, by name, against torch."""

from __future__ import annotations

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.check.arbiter import Arbiter, in_float64
from nn_manual.check.comparison import compare, worst_differences
from nn_manual.check.pairs import Pair, pairs
from nn_manual.check.plan import Plan
from nn_manual.check.recording import Recording
from nn_manual.check.reference import differentiate
from nn_manual.check.report import GradientReport, StepCheck
from nn_manual.check.structure import CannotCompare, check_structure
from nn_manual.check.twin import Twin
from nn_manual.check.update import UpdateChecker
from nn_manual.errors import GradientMismatch, NotFiniteError
from nn_manual.losses import Loss
from nn_manual.model import Sequential
from nn_manual.optim import SGD, clip_grad_norm
from nn_manual.schedulers import Scheduler


class GradientChecker:
    """Proves steps of one model against torch.

        with checker.recording():
            ... the step: forward, loss, backward, clipping, optimizer ...
        checker.compare()          # returns a StepCheck; raises GradientMismatch or NotFiniteError

    torch then repeats the step: forward and backward anchored at the recorded activations, its own clipping, and
    torch.optim.SGD on its own gradients. `input_grad` says that the step computes the gradient of the model's input
    (`model.backward`), and not only its parameters' (`model.backward_parameters`); `max_norm`, that it clips by it.
    """

    def __init__(
        self,
        model: Sequential,
        loss: Loss,
        optimizer: SGD | None = None,
        *,
        max_norm: float | None = None,
        scheduler: Scheduler | None = None,
        input_grad: bool = False,
    ) -> None:
        self.model, self.loss = model, loss
        self.max_norm, self.input_grad = max_norm, input_grad
        self.twin = Twin(model, loss)
        self.update = UpdateChecker(self.twin, optimizer, scheduler) if optimizer else None
        self.recorded = Recording([layer for _, layer in model.named_layers()], loss)
        self._plans: dict[Shape, Plan] = {}

    def recording(self) -> Recording:
        """The context in which the step must run. torch starts from the parameters as they are when it opens."""
        if self.update is None:
            np.copyto(self.twin.param, self.model.param_arena)
        else:
            self.update.anchor()
        return self.recorded

    def compare(self) -> StepCheck:
        """Compare the recorded step. Raises GradientMismatch, or NotFiniteError where a value of ours isn't finite."""
        try:
            plan, both = self._pairs()
        except CannotCompare as problem:
            raise GradientMismatch(GradientReport((), problem=str(problem))) from None
        absolute, scale = worst_differences([pair.ours for pair in both], [pair.reference for pair in both])
        rounding: frozenset[str] = frozenset()
        if not np.all(absolute <= plan.tolerances[: len(both)] * scale):
            rounding = self._excuse(both)
        if self.update is not None:
            update_absolute, update_scale = self.update.compare(plan.update)
            absolute, scale = np.append(absolute, update_absolute), np.append(scale, update_scale)
        assert len(absolute) == len(plan.quantities), f"{len(absolute)} tensors compared, not {len(plan.quantities)}"
        return StepCheck(plan, absolute, scale, rounding)

    def report(self) -> GradientReport:
        """Compare the recorded step in full, every tensor with its worst place; the optimizer is left out."""
        try:
            plan, both = self._pairs()
        except CannotCompare as problem:
            return GradientReport((), problem=str(problem))
        report = GradientReport(tuple(compare(*pair) for pair in both))
        if report.passed:
            return report
        names = {comparison.name for comparison in report.failures}
        failed = [pair for pair in both if pair.quantity.name in names]
        return GradientReport(report.comparisons, rounding=self._rounding(plan, failed))

    def _excuse(self, both: list[Pair]) -> frozenset[str]:
        """The names of the tensors that are beyond the tolerance by rounding only; raises if anything is worse."""
        for quantity, ours, _ in both:
            if not np.isfinite(ours).all():
                raise NotFiniteError(f"{quantity.name} of {quantity.layer} holds a value that is not finite")
        report = self.report()
        if not report.passed:
            raise GradientMismatch(report)
        return report.rounding

    def _rounding(self, plan: Plan, failed: list[Pair]) -> frozenset[str]:
        """The names of those of `failed` that the arbiter puts down to rounding."""
        input, target = self.recorded.layers[0].input, self.recorded.loss.target
        assert input is not None
        assert target is not None
        double = in_float64(self.model, self.twin.param)
        checker = GradientChecker(double, self.loss, max_norm=self.max_norm, input_grad=self.input_grad)
        with checker.recording():
            checker.run(input.astype(np.float64), target.astype(np.float64) if target.dtype.kind == "f" else target)
        arbiter = Arbiter(double, self.recorded, plan, self.max_norm)
        if not arbiter.formulas_agree(checker._pairs()[1]):
            return frozenset()
        return frozenset(pair.quantity.name for pair in failed if arbiter.is_rounding(pair))

    def run(self, input: Array, target: Array) -> None:
        """Forward, loss, backward and clipping, as a training step does them."""
        prediction, saved = self.model.forward(input)
        grad_prediction = self.loss.backward(self.loss.forward(prediction, target)[1])
        if self.input_grad:
            self.model.backward(saved, grad_prediction)
        else:
            self.model.backward_parameters(saved, grad_prediction)
        if self.max_norm is not None:
            clip_grad_norm(self.model.grad_arena, self.max_norm)

    def _pairs(self) -> tuple[Plan, list[Pair]]:
        input = self.recorded.layers[0].input
        if input is None:
            raise CannotCompare(f"Sequential never ran its first layer, {type(self.recorded.layers[0].layer).__name__}")
        plan = self._plan(input.shape)
        check_structure(self.recorded, plan)
        reference = differentiate(self.twin, self.recorded, plan, self.model.dtype, self.max_norm)
        return plan, pairs(plan, self.model, self.recorded, reference)

    def _plan(self, input_shape: Shape) -> Plan:
        if input_shape not in self._plans:
            self._plans[input_shape] = Plan(
                self.model, self.loss, input_shape, input_grad=self.input_grad, update=self.update is not None
            )
        return self._plans[input_shape]


def check_gradients(model: Sequential, loss: Loss, input: Array, target: Array) -> GradientReport:
    """Run forward and backward once and compare everything with torch: each layer's output, the loss, and the
    gradients of the prediction, of the target (regression losses), of every parameter, at every layer boundary and of
    the input. Nothing is trained; the gradients stay in the model. The report's str() is the table.

    input (batch, ...) in the model's dtype, target as the loss takes it.
    """
    checker = GradientChecker(model, loss, input_grad=True)
    with checker.recording():
        checker.run(input, target)
    return checker.report()
