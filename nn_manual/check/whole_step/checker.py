"""The check of a step: everything that the step computed, once, by name, against torch.

recording()    the step runs, and what it computes is noted       Recording
compare()      torch runs it again, anchored at what we computed   Proof: pairs of tensors
               the worst difference of each pair                   absolute, scale
               beyond the tolerance: the judge                     rounding, or GradientMismatch
               clipping and the optimizer's step                   absolute, scale
               StepCheck

The file is long because one object is asked about a step at once, in full, and about all steps of a training.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from nn_manual.arrays import Array, Padded, Shape
from nn_manual.check.compare.comparison import CannotCompare, Quantity
from nn_manual.check.compare.worst import Differences, differences_of, joined, within
from nn_manual.check.conduct.conduct import check_conduct
from nn_manual.check.judge.judge import Judge
from nn_manual.check.judge.not_finite import outside_domain
from nn_manual.check.judge.report import GradientReport, comparing, mismatch_for, mismatch_of
from nn_manual.check.judge.step_check import StepCheck
from nn_manual.check.judge.vacuous import vacuous
from nn_manual.check.judge.zeros import ZerosInTheory
from nn_manual.check.step.calls import CallFailed
from nn_manual.check.step.plan import Plan
from nn_manual.check.step.proof import Proof, prove
from nn_manual.check.step.recording import Recording, run_step
from nn_manual.check.step.reference import run_loss
from nn_manual.check.step.structure import check_structure
from nn_manual.check.twin.model import Twin, as_tensor, threads_for
from nn_manual.check.whole_step.clipping import compare_clipping
from nn_manual.check.whole_step.denominator import wrong_denominator
from nn_manual.check.whole_step.evidence import Evidence
from nn_manual.check.whole_step.settings import changes_since, settings_as_text
from nn_manual.check.whole_step.unused import report_on_unused
from nn_manual.check.whole_step.update import UpdateChecker
from nn_manual.errors import GradientMismatch, NotFiniteError
from nn_manual.losses import Loss
from nn_manual.model import Sequential
from nn_manual.optim import Clipping, Optimizer, Scheduler
from nn_manual.step.watch import Watch


class GradientChecker:
    """Proves steps of one model against torch.

        with checker.recording():
            ... the step: forward, loss, backward, clipping, optimizer ...
        checker.compare()          # returns a StepCheck; raises GradientMismatch or NotFiniteError

    torch then repeats the step, anchored at what we computed: each layer forward and backward at the recorded
    activations, clipping and the optimizer on our gradients. `input_grad` says that the step computes the gradient
    of the model's input (`model.backward`), and not only its parameters' (`model.backward_parameters`). `clipping` is
    how the step clips the gradient, if it does. Raises ValueError where there is nothing to check.
    """

    def __init__(
        self,
        model: Sequential,
        loss: Loss,
        optimizer: Optimizer | None = None,
        *,
        clipping: Clipping | None = None,
        scheduler: Scheduler | None = None,
        input_grad: bool = False,
    ) -> None:
        if not any(True for _ in model.named_layers()):
            raise ValueError("the model has no layers: there is nothing to check")
        if not (model.num_parameters or input_grad):
            raise ValueError("the model has no parameters, and without input_grad there is no gradient to check")
        self.model, self.loss, self.optimizer = model, loss, optimizer
        self.clipping, self.input_grad = clipping, input_grad
        self.twin = Twin(model, loss)
        self._settings_at_first = settings_as_text(model, loss)
        self.recorded = Recording(model, loss, copy_grads=clipping is not None)
        self.judge = Judge(model, loss, input_grad=input_grad)
        self.update = UpdateChecker(optimizer, self.twin.param, scheduler) if optimizer else None
        self._plans: dict[Shape, Plan] = {}
        self._memory_checked: set[Plan] = set()
        #: What a step reports to: the layers and the loss are watched from outside.
        self.watch = Watch()
        #: Whether the loss's `denominator` has been compared: in the first step.
        self._denominator_compared = False
        #: The plans of the steps of which the gradients that no step uses have been compared.
        self._unused_compared: set[Plan] = set()
        #: Why some of these couldn't be.
        self._unused_unknown = ""
        #: Whether what evaluation computes has been compared.
        self._evaluation_compared = False
        #: What the compared steps have shown, those that were compared elsewhere among them.
        self.evidence = Evidence()

    @contextmanager
    def recording(self, input: Array | None = None) -> Iterator[Recording]:  # noqa: ARG002 - each Watch is told
        """The context in which the step must run. torch starts from where the model is when it opens.

        Raises GradientMismatch where a layer raises.
        """
        self.twin.anchor(self.model.param_arena)
        if self.update is not None:
            self.update.anchor()
        with self.watching() as recorded:
            yield recorded

    @contextmanager
    def watching(self) -> Iterator[Recording]:
        """The same, but the caller keeps where torch starts from."""
        try:
            with self.recorded:
                yield self.recorded
        except CallFailed as failed:
            with comparing():
                check_structure(self.recorded, self.plan())
            # The step is sound so far: the loss refused its target, or is wrong itself.
            method = "check_target" if self.recorded.loss.prediction is None else "forward"
            failed.error.add_note(f"raised by {type(self.loss).__name__}.{method}")
            raise failed.error from None

    def compare(self, updated: Differences | None = None) -> StepCheck:
        """Compare the recorded step; `updated` is what `compare_update` has found of it, if that was asked before.
        Raises GradientMismatch, or NotFiniteError where a value of torch's isn't finite either.
        """
        try:
            with threads_for(self.plan().num_products):
                compared = self._compared(self.proof(), updated)
        except CannotCompare as problem:
            if outside := outside_domain(self.recorded.loss):
                raise NotFiniteError(outside) from None
            raise mismatch_for(str(problem)) from None
        if not self._denominator_compared:
            self._denominator_compared = True
            if words := wrong_denominator(self.recorded.loss):
                raise mismatch_for(words)
        self.compare_unused()
        return compared

    def skip(self) -> None:
        """The recorded step has no loss and nothing to compare: its loss says that nothing counts. Raises
        GradientMismatch where torch's loss is a number other than 0, or the gradient of the prediction isn't 0.
        """
        calls = self.recorded.loss
        assert calls.prediction is not None  # the step has run
        assert calls.target is not None
        assert calls.grad_prediction is not None
        self.compare_nothing(calls.prediction, calls.target, calls.grad_prediction)

    def compare_nothing(self, prediction: Array, target: Array, grad_prediction: Array) -> None:
        """The same for a batch with these. A wrong `denominator` would hide the batch."""
        with comparing(), torch.no_grad():
            theirs = float(run_loss(self.twin, as_tensor(prediction), as_tensor(target)))
        words = f"loss: the loss has the denominator {self.loss.denominator(target):g}, so nothing counts, but"
        if theirs and not math.isnan(theirs):
            raise mismatch_for(f"{words} torch's is {theirs:.6g}")
        if grad_prediction.any():
            raise mismatch_for(f"{words} grad_prediction is up to {np.abs(grad_prediction).max():.6g}: it must be 0")

    def _compared(self, step: Proof, updated: Differences | None) -> StepCheck:
        plan, findings, found = step.plan, step.findings, self.differences(step)
        del step  # torch's tensors aren't needed any more: what follows takes memory of its own
        if self.clipping is not None or self.update is not None:
            found = joined(found, updated or self.compare_update(plan))
        num_compared = len(found.absolute)
        assert num_compared == len(plan.quantities), f"{num_compared} tensors compared, not {len(plan.quantities)}"
        self.add_evidence(found)
        too_coarse = self.evidence.add_findings(findings) if findings else frozenset[str]()
        return StepCheck(plan, found, too_coarse)

    def differences(self, step: Proof) -> Differences:
        """The worst difference of each tensor. The judge decides where one doesn't pass: it raises what `compare`
        does.
        """
        found = Differences(*differences_of(step.pairs))
        if self.passes(step.plan, step.input_shape, found):
            return found
        try:
            return self.judge.differences(step, found)
        except GradientMismatch as mismatch:
            if changes := changes_since(self._settings_at_first, self.model, self.loss):
                diagnosis = "\n".join(filter(None, (mismatch.report.diagnosis, *changes)))
                raise mismatch_of(replace(mismatch.report, diagnosis=diagnosis)) from None
            raise

    def passes(self, plan: Plan, input_shape: Shape, found: Differences) -> bool:
        """Whether a step's forward and backward pass without the judge: each difference is within its tolerance, and
        none is of a gradient that is known to be zero in theory.
        """
        absolute, scale, _ = found
        num_judged = len(plan.forward) + len(plan.backward)
        first = slice(0, num_judged)
        return input_shape not in self.judge.zeros and bool(
            within(absolute[first], scale[first], plan.tolerances[first]).all()
        )

    def add_evidence(self, found: Differences) -> None:
        """A step was compared, and has passed."""
        if not self.evidence.is_complete:
            self.evidence.add(found)

    def compare_update(self, plan: Plan) -> Differences:
        """Compare clipping, and the optimizer's step from where `self.update` starts. Raises GradientMismatch, or
        NotFiniteError.
        """
        parts = []
        if self.clipping is not None:
            parts.append(compare_clipping(plan.clipping, self.model.grad_arena, self._unclipped(), self.clipping))
        if self.update is not None:
            parts.append(self._compared_step(self.update, plan.update))
        return joined(*parts)

    def _compared_step(self, update: UpdateChecker, quantities: list[Quantity]) -> Differences:
        """The differences of the optimizer's step alone. Raises CannotCompare, too."""
        try:
            return update.compare(quantities)
        except GradientMismatch:
            check_conduct(self.recorded, self.plan())  # a layer may write into its parameters
            raise

    def accept(
        self, plan: Plan, input_shape: Shape, found: Differences, largest_grad_output: Callable[[int], float]
    ) -> Differences | None:
        """The differences of a step that was compared elsewhere, if all of them are within their tolerances: then the
        step counts as compared here. `largest_grad_output` is that of the layer whose tensor is the plan's i-th.
        """
        if not _update_passes(plan, found):
            return None
        num_judged = len(plan.forward) + len(plan.backward)
        judged = Differences(found.absolute[:num_judged], found.scale[:num_judged])
        accepted = self.judge.accept(plan, input_shape, judged, largest_grad_output)
        if accepted is None:
            return None
        both = joined(accepted, Differences(found.absolute[num_judged:], found.scale[num_judged:], found.rounding))
        self.add_evidence(both)
        return both

    def _unclipped(self) -> list[Array]:
        """The gradient of each parameter as backward left it."""
        of_uses = {
            f"{calls.item.name}.{name}": grad for calls in self.recorded.layers for name, grad in calls.grads.items()
        }
        for first, names in self.model.ties.names.items():
            of_uses[first] = np.sum([of_uses[name] for name in reversed(names)], axis=0, dtype=self.model.dtype)
        return [of_uses[name] for name in self.model.parameter_shapes()]

    def report(self, *, with_conduct: bool = True, with_vacuous: bool = True) -> GradientReport:
        """Compare the recorded step in full, every tensor with its worst place, and the conduct of layers and loss, and
        say which comparisons prove nothing. Clipping and the optimizer are left out. The conduct, and what is vacuous,
        can be left out: many cases of one layer need them only once.
        """
        try:
            check_structure(self.recorded, self.plan())
            if with_conduct:
                check_conduct(self.recorded, self.plan())  # before torch: what misbehaves may be its own reference
            step = self.proof()
            report = self.judge.with_evaluation(step, self.judge.report(step))
        except CannotCompare as problem:
            return GradientReport((), problem=str(problem))
        if not (report.agrees and with_vacuous):
            return report
        return replace(report, vacuous=tuple(vacuous(self.model, step)))

    def look_closely(self) -> GradientReport:
        """Compare the recorded step as `report` does, small parts of tensors at their own scales among them, but
        without conduct, evaluation, and what is vacuous. Nothing is kept of it.
        """
        try:
            with threads_for(self.plan().num_products):
                return self.judge.report(self.proof())
        except CannotCompare as problem:
            return GradientReport((), problem=str(problem))

    def compare_evaluation(self) -> None:
        """Compare the layers' `infer` with torch's modules in eval(), on the inputs of the last recorded step; once,
        after any step. Raises GradientMismatch. Values that aren't finite are left to whoever uses them.
        """
        first = self.recorded.first
        if self._evaluation_compared or first.input is None or first.input.shape not in self._plans:
            return
        self._evaluation_compared = True
        self.compare_unused()
        step = Proof(self.plan(), self.recorded, self.model.param_arena, [], {})
        with comparing():
            report = self.judge.with_evaluation(step, GradientReport(()))
            if report.failures and all(np.isfinite(failure.absolute) for failure in report.failures):
                check_conduct(self.recorded, self.plan())
                raise mismatch_of(report)

    def compare_unused(self) -> None:
        """Compare the gradients of the user's own classes that no step uses, in the last recorded step; once for each
        shape of the input. Raises GradientMismatch.
        """
        plan = self.plan()
        if self.input_grad or plan in self._unused_compared:
            return
        self._unused_compared.add(plan)
        report = report_on_unused(self.recorded, plan, self.model.param_arena)
        if report is None or report.not_finite is not None:
            return
        if report.problem is not None:
            self._unused_unknown = report.problem
        elif not report.agrees:
            raise mismatch_of(report)

    def unproven(self) -> tuple[str, ...]:
        """A sentence for each thing that no compared step has proven: a wrong formula would have agreed, too. First
        what `vacuous` says, then what a right net may have as well: gradients that are zero in theory, a layer without
        a reference, gradients that no step uses where the step doesn't run in float64, and an optimizer that doesn't.
        The last compared step must be recorded.
        """
        zero = self.evidence.zero_in_theory(self.model, self.recorded, self.plan)
        alone = (
            f"{label}: what its forward computes, since it has no reference; its gradients fit it"
            for label in (self.plan().without_reference() if self.recorded.first.input is not None else ())
        )
        unused = (f"gradients that no step uses: {self._unused_unknown}",) if self._unused_unknown else ()
        update = self.update.unproven() if self.update is not None else ()
        return (*self.vacuous(), *zero, *alone, *unused, *update)

    def vacuous(self) -> tuple[str, ...]:
        """A sentence for each tensor that was zero everywhere in all compared steps, though it need not be."""
        return self.evidence.vacuous(self.model, self.recorded, self.plan)

    def state(self) -> dict[str, Any]:
        """What the compared steps have left behind, as JSON has it: later steps are judged by it, and `unproven`."""
        self.evidence.zero_in_theory(self.model, self.recorded, self.plan)  # while a step is there to find it
        known = [{"shape": list(shape), **zeros.state()} for shape, zeros in self.judge.zeros.items()]
        state = {**self.evidence.state(), "zeros": known, "unproven": list(self.vacuous())}
        return state | ({"update": self.update.state()} if self.update is not None else {})

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` returned."""
        self.evidence.load_state(state)
        self.judge.zeros = {tuple(known["shape"]): ZerosInTheory.of_state(known) for known in state["zeros"]}
        if self.update is not None and "update" in state:  # older runs don't say
            self.update.load_state(state["update"])

    def run(self, input: Array | Padded, target: Array) -> None:
        """Forward, loss and backward, as a training step does them."""
        run_step(self.model, self.loss, input, target, input_grad=self.input_grad)

    def proof(self) -> Proof:
        """The recorded step beside torch's. Raises CannotCompare."""
        plan = self.plan()
        step = prove(self.twin, self.recorded, plan, own_memory=plan not in self._memory_checked)
        self._memory_checked.add(plan)  # once for each shape of the input
        return step

    def plan(self) -> Plan:
        """What the recorded step must prove. Raises CannotCompare."""
        first = self.recorded.first
        if first.input is None:
            raise CannotCompare(f"Sequential never ran its first layer, {first.label}")
        shape = first.input.shape
        if shape in self._plans:
            return self._plans[shape]
        own: dict[str, Any] = {"clipping": self.clipping, "optimizer": self.optimizer}
        plan = Plan(self.model, self.recorded, input_grad=self.input_grad, **own)
        if self.recorded.loss.grad_prediction is not None:  # the step ran to its end, so the plan has every shape
            self._plans[shape] = plan
        return plan


def _update_passes(plan: Plan, found: Differences) -> bool:
    """Whether what was found of clipping and of the update is within its tolerances, or is rounding."""
    of_update = slice(len(plan.forward) + len(plan.backward), None)
    passed = within(found.absolute[of_update], found.scale[of_update], plan.tolerances[of_update])
    return found.rounding.issuperset(itertools.compress(plan.tensors[of_update], ~passed))
