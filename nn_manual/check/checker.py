"""The check of a step: everything that the step computed, once, by name, against torch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import torch

from nn_manual.arrays import Array, Shape
from nn_manual.check.comparison import (
    CannotCompare,
    Comparison,
    Pair,
    beyond_tolerance,
    compare,
    within,
    worst_differences,
)
from nn_manual.check.step.pairs import pairs
from nn_manual.check.step.plan import Plan
from nn_manual.check.step.recording import CallFailed, Recording
from nn_manual.check.step.reference import differentiate
from nn_manual.check.step.structure import check_output_shapes, check_structure
from nn_manual.check.step.threads import threads_for
from nn_manual.check.twin.model import Twin
from nn_manual.check.update import UpdateChecker, compare_clipping
from nn_manual.check.verdict.arbiter import Arbiter, Verdict, in_float64
from nn_manual.check.verdict.conduct import check_conduct
from nn_manual.check.verdict.diagnosis import diagnose
from nn_manual.check.verdict.report import GradientReport, StepCheck
from nn_manual.check.verdict.vacuous import check_memory, vacuous, zero_everywhere
from nn_manual.errors import GradientMismatch, NotFiniteError
from nn_manual.losses import Loss
from nn_manual.model import Sequential
from nn_manual.optim import SGD, Scheduler


class GradientChecker:
    """Proves steps of one model against torch.

        with checker.recording():
            ... the step: forward, loss, backward, clipping, optimizer ...
        checker.compare()          # returns a StepCheck; raises GradientMismatch or NotFiniteError

    torch then repeats the step, anchored at what we computed: each layer forward and backward at the recorded
    activations, clipping and torch.optim.SGD on our gradients. `input_grad` says that the step computes the gradient
    of the model's input (`model.backward`), and not only its parameters' (`model.backward_parameters`); `max_norm`,
    that it clips by it. `twin`, torch's version of the model, is made unless it is given. Raises ValueError where
    there is nothing to check.
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
        twin: Twin | None = None,
    ) -> None:
        if not any(True for _ in model.named_layers()):
            raise ValueError("the model has no layers: there is nothing to check")
        if not (model.num_parameters or input_grad):
            raise ValueError("the model has no parameters, and without input_grad there is no gradient to check")
        self.model, self.loss = model, loss
        self.max_norm, self.input_grad = max_norm, input_grad
        self.twin = twin or Twin(model, loss)
        #: The arbiter's twins in float64 and float32, once it was called, and the plans of its steps in float64.
        self._twins: tuple[Twin, Twin] | None = None
        self._plans_in_float64: dict[Shape, Plan] = {}
        self.update = UpdateChecker(self.twin, optimizer, scheduler) if optimizer else None
        self.recorded = Recording(model, loss, copy_grads=max_norm is not None)
        self._plans: dict[Shape, Plan] = {}
        self._memory_checked: set[Plan] = set()
        #: The numbers of the quantities that were other than zero in a compared step.
        self._not_zero: set[int] = set()

    @contextmanager
    def recording(self) -> Iterator[Recording]:
        """The context in which the step must run. torch starts from the parameters as they are when it opens.

        Raises GradientMismatch where a layer raises.
        """
        if self.update is None:
            np.copyto(self.twin.param, self.model.param_arena)
        else:
            self.update.anchor()
        try:
            with self.recorded:
                yield self.recorded
        except CallFailed as failed:
            try:
                check_structure(self.recorded, self._plan())
            except CannotCompare as problem:
                raise GradientMismatch(GradientReport((), problem=str(problem))) from failed
            # The step is sound so far: the loss refused its target, or is wrong itself.
            failed.error.add_note(f"raised by {type(self.loss).__name__}.forward")
            raise failed.error from None

    def compare(self) -> StepCheck:
        """Compare the recorded step. Raises GradientMismatch, or NotFiniteError where a value of ours or torch's isn't
        finite.
        """
        try:
            with threads_for(self._plan().num_products):
                return self._compared()
        except CannotCompare as problem:
            raise GradientMismatch(GradientReport((), problem=str(problem))) from None

    def _compared(self) -> StepCheck:
        plan, both = self._pairs()
        differences = [worst_differences([pair.ours for pair in both], [pair.reference for pair in both])]
        rounding: frozenset[str] = frozenset()
        if not within(*differences[0], plan.tolerances[: len(both)]).all():
            rounding = self._excuse(plan, beyond_tolerance(both))
        if self.max_norm is not None:
            gradients = [grad for calls in self.recorded.layers for grad in calls.grads.values()]
            differences.append(compare_clipping(plan, self.model.grad_arena, gradients, self.max_norm))
        if self.update is not None:
            try:
                differences.append(self.update.compare(plan))
            except GradientMismatch:
                self._check_conduct(plan)  # a layer that writes into its parameters makes the optimizer look wrong
                raise
        absolute, scale = (np.concatenate(parts) for parts in zip(*differences, strict=True))
        assert len(absolute) == len(plan.quantities), f"{len(absolute)} tensors compared, not {len(plan.quantities)}"
        if len(self._not_zero) < len(scale):
            self._not_zero.update(scale.nonzero()[0].tolist())
        return StepCheck(plan, absolute, scale, rounding)

    def report(self, input: Array | None = None) -> GradientReport:
        """Compare the recorded step in full, every tensor with its worst place, and each layer's conduct; clipping and
        the optimizer are left out. `input` is the model's, as it was before the step could write into it.
        """
        try:
            plan = self._plan()
            check_structure(self.recorded, plan)
            self._check_conduct(plan, input)  # before torch: what misbehaves may be its own reference
            _, both = self._pairs()
        except CannotCompare as problem:
            return GradientReport((), problem=str(problem))
        report = GradientReport(tuple(compare(*pair) for pair in both), sources=plan.told_sources())
        if report.agrees:
            return report
        names = {comparison.name for comparison in report.failures}
        verdict = self._judge(plan, [pair for pair in both if pair.quantity.name in names])
        if verdict and not verdict.wrong:
            report = replace(report, rounding=verdict.rounding)
            if report.agrees:
                return report
        elif verdict and verdict.wrong[0].quantity.name != report.failures[0].name:
            # A formula is wrong in float64, but another one than the first that failed: it hides within the tolerance
            # of float32 and only enlarges the rounding of what follows. Then it is the step in float64 that is told.
            both = verdict.in_double
            right = {pair.quantity.name for pair in both} - {pair.quantity.name for pair in verdict.wrong}
            report = replace(report, comparisons=tuple(compare(*pair) for pair in both), rounding=frozenset(right))
        return replace(report, diagnosis=self._diagnosis(report.failures[0], both))

    def vacuous(self) -> tuple[str, ...]:
        """A sentence for each comparison of the recorded step that proves nothing."""
        plan, both = self._pairs()
        return tuple(vacuous(self.model, self.recorded, plan, both))

    def unproven(self) -> tuple[str, ...]:
        """A sentence for each tensor that was zero everywhere in all compared steps, the last one of which is recorded:
        a wrong formula would have agreed, too.
        """
        plan = self._plan()
        compared = [*plan.forward, *plan.backward]
        zero = [quantity for i, quantity in enumerate(compared) if i not in self._not_zero]
        return tuple(zero_everywhere(self.model, self.recorded, plan, zero))

    def _check_conduct(self, plan: Plan, input: Array | None = None) -> None:
        input = self.recorded.layers[0].input if input is None else input
        assert input is not None  # check_structure has seen it
        check_conduct(self.recorded, plan, input)

    def _excuse(self, plan: Plan, failed: list[Pair]) -> frozenset[str]:
        """The names of `failed`, which are beyond the tolerance by rounding only; raises if anything is worse."""
        for quantity, ours, reference in failed:
            if not np.isfinite(ours).all():
                raise NotFiniteError(f"{quantity.name} of {quantity.layer} holds a value that is not finite")
            if not reference.isfinite().all():
                raise NotFiniteError(f"{quantity.name} of {quantity.layer} is finite, but torch's overflows")
        verdict = self._judge(plan, failed)
        if verdict is None or verdict.wrong or len(verdict.rounding) < len(failed):
            raise GradientMismatch(self.report())
        return verdict.rounding

    def _judge(self, plan: Plan, failed: list[Pair]) -> Verdict | None:
        """The arbiter's verdict; None where it can't judge: of values that are not finite, and where the step or a
        reference doesn't even run in the other dtype, which is no case of rounding.
        """
        if not all(np.isfinite(pair.ours).all() and pair.reference.isfinite().all() for pair in failed):
            return None
        if self._twins is None:
            self._twins = Twin(self.model, self.loss, np.float64), Twin(self.model, self.loss, np.float32)
        in_double: list[Pair] = []
        wrong: list[Pair] = []
        try:
            if self.model.dtype != np.float64:
                in_double, wrong = self._judge_in_float64(self._twins)
            rounding = Arbiter(self._twins, self.twin.param, self.recorded, plan).rounding(failed)
        except CannotCompare:
            return None
        return Verdict(in_double, wrong, rounding)

    def _judge_in_float64(self, twins: tuple[Twin, Twin]) -> tuple[list[Pair], list[Pair]]:
        """The pairs of the recorded step computed again in float64, and those of which a formula is wrong. Raises
        CannotCompare where it doesn't run.
        """
        input, target = self.recorded.layers[0].input, self.recorded.loss.target
        assert input is not None
        assert target is not None
        model = in_float64(self.model, self.twin.param)
        checker = GradientChecker(model, self.loss, input_grad=self.input_grad, twin=twins[0])
        checker._plans = self._plans_in_float64
        try:
            with checker.recording():
                checker.run(*(x.astype(np.float64) if x.dtype.kind == "f" else x for x in (input, target)))
            plan, both = checker._pairs()
        except Exception as error:  # whatever it is that a layer, a loss or a reference raises
            raise CannotCompare(f"in float64 the step raised {type(error).__name__}: {error}") from error
        doubtful = beyond_tolerance(both)
        if not doubtful:
            return both, []
        rounding = Arbiter(twins, model.param_arena, checker.recorded, plan).rounding(doubtful)
        return both, [pair for pair in doubtful if pair.quantity.name not in rounding]

    def _diagnosis(self, failure: Comparison, both: list[Pair]) -> str:
        """What the first failing difference looks like, and how near the layer's input is to a kink there."""
        pair = next(pair for pair in both if pair.quantity.name == failure.name)
        calls = next((calls for calls in self.recorded.layers if calls.label == failure.layer), None)
        assert self.recorded.layers[0].input is not None
        batch_size = len(self.recorded.layers[0].input)
        return diagnose(pair.ours, pair.reference.numpy(), failure.index, calls, batch_size)

    def run(self, input: Array, target: Array) -> None:
        """Forward, loss and backward, as a training step does them."""
        prediction, saved = self.model.forward(input)
        grad_prediction = self.loss.backward(self.loss.forward(prediction, target)[1])
        if self.input_grad:
            self.model.backward(saved, grad_prediction)
        else:
            self.model.backward_parameters(saved, grad_prediction)

    def _pairs(self) -> tuple[Plan, list[Pair]]:
        plan = self._plan()
        check_structure(self.recorded, plan)
        # Once for each shape, torch gets memory of its own throughout: whatever still shares ours, compares itself.
        first = plan not in self._memory_checked
        reference = differentiate(self.twin, self.recorded, plan, self.model.dtype, torch.clone if first else None)
        both = pairs(plan, self.recorded, reference)
        if first:
            check_memory(both)
            self._memory_checked.add(plan)
        return plan, both

    def _plan(self) -> Plan:
        calls = self.recorded.layers[0]
        if calls.input is None:
            raise CannotCompare(f"Sequential never ran its first layer, {calls.label}")
        shape = calls.input.shape
        if shape not in self._plans:
            check_output_shapes(self.recorded)
            self._plans[shape] = Plan(
                self.model,
                self.loss,
                shape,
                input_grad=self.input_grad,
                clip=self.max_norm is not None,
                update=self.update is not None,
            )
        return self._plans[shape]


def check_gradients(model: Sequential, loss: Loss, input: Array, target: Array) -> GradientReport:
    """Run forward and backward once and compare everything with torch: each layer's output, the loss, and the
    gradients of the prediction, of the target (regression losses), of every parameter, at every layer boundary and of
    the input. Each layer's conduct is checked, too, and whether the comparisons prove anything. Nothing is trained; the
    gradients stay in the model. The report's str() is the table.

    input (batch, ...) in the model's dtype, target as the loss takes it. Raises ValueError where they don't fit.
    """
    checker = GradientChecker(model, loss, input_grad=True)
    # What a backward forgets to write, or adds to, shows.
    model.grad_arena.fill(np.nan)
    try:
        with checker.recording():
            checker.run(input.copy(), target)
    except GradientMismatch as mismatch:
        report: GradientReport = mismatch.report
        return report
    report = checker.report(input)
    return replace(report, vacuous=checker.vacuous()) if report.agrees else report
