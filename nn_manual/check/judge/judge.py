"""The judge of a step: where a tensor is beyond its tolerance, is a formula wrong, is it rounding, or isn't it finite?

differences   in training: what was found of each tensor, where all are right or off by rounding; else an error
report        in full: every tensor with its worst place, a diagnosis
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from nn_manual.arrays import Shape, carve, first_not_finite
from nn_manual.check.compare.comparison import CannotCompare, Comparison, Pair, compare
from nn_manual.check.compare.worst import Differences, beyond_tolerance, within
from nn_manual.check.conduct.conduct import check_conduct
from nn_manual.check.judge import zeros
from nn_manual.check.judge.claim import without
from nn_manual.check.judge.diagnosis import diagnose
from nn_manual.check.judge.evaluation_claim import EvaluationClaim
from nn_manual.check.judge.in_float64 import Again
from nn_manual.check.judge.not_finite import not_finite_tensor, outside_domain
from nn_manual.check.judge.report import GradientReport, in_float64_instead, mismatch_of
from nn_manual.check.judge.small_parts import doubtful_parts
from nn_manual.check.judge.step_claim import StepClaim
from nn_manual.check.judge.vacuous import at_kinks
from nn_manual.check.judge.verdict import judged
from nn_manual.check.step.plan import Plan
from nn_manual.check.step.proof import Proof
from nn_manual.check.step.recording import Recording
from nn_manual.check.twin.layers import Source
from nn_manual.check.twin.model import Twin
from nn_manual.errors import NotFiniteError
from nn_manual.losses import Loss
from nn_manual.model import Sequential


class StepVerdict(NamedTuple):
    """What the judge finds of a step.

    `in_double` are its pairs computed again in float64, `wrong` those of them whose formula is wrong: then nothing else
    is needed. `rounding` has the names of the tensors in question that are off by rounding. `not_finite` says which of
    them isn't finite though its formula is right. `zeros` are the gradients that are zero in theory, with the scale of
    their terms.
    """

    in_double: Sequence[Pair] = ()
    wrong: Sequence[Pair] = ()
    rounding: frozenset[str] = frozenset()
    not_finite: str | None = None
    zeros: Mapping[str, float] = {}


class Judge:
    """Judges the steps of one model. What it needs is made when it is first called."""

    def __init__(self, model: Sequential, loss: Loss, *, input_grad: bool) -> None:
        self.model, self.loss = model, loss
        #: torch's versions in float64 and float32, whose parameters are overwritten.
        self._twins: tuple[Twin, Twin] | None = None
        self._again = Again(model, loss, input_grad=input_grad)
        #: By the shape of the model's input: so a position in a step's pairs is always the same tensor.
        self.zeros: dict[Shape, zeros.ZerosInTheory] = {}

    def differences(self, step: Proof, found: Differences) -> Differences:
        """What was `found` about the step's tensors, on the scales that they are judged on. Raises GradientMismatch
        where a formula is wrong, NotFiniteError where it is right and its value isn't finite, CannotCompare where a
        layer's conduct is to blame.
        """
        absolute, scale, _ = found
        of_layers = functools.partial(zeros.largest_grad_output, step)
        if accepted := self.accept(step.plan, step.input_shape, found, of_layers):
            return accepted
        tolerances, known = step.plan.tolerances[: len(scale)], self.zeros.get(step.input_shape)
        widened = known.widened(scale, of_layers) if known else scale
        passed = within(absolute, widened, tolerances)
        failed = list(itertools.compress(step.pairs, ~passed))
        verdict = self.judge(step, failed)
        if verdict.not_finite is not None:
            raise NotFiniteError(verdict.not_finite)
        if verdict.wrong or len(verdict.rounding) < len(failed):
            check_conduct(step.recorded, step.plan)
            raise mismatch_of(self.report(step, verdict))
        if verdict.zeros:
            known = self.zeros.setdefault(step.input_shape, zeros.ZerosInTheory())
            known.add(step, verdict.zeros)
            widened = known.widened(scale, of_layers)
            passed = within(absolute, widened, tolerances)
        if known:
            known.count_step()
        beyond = {pair.quantity.name for pair in itertools.compress(step.pairs, ~passed)}
        return Differences(absolute, widened, verdict.rounding & beyond)

    def _known_zeros(self, step: Proof, report: GradientReport) -> frozenset[str]:
        """The names of the report's failures that are known to be zero in theory, and are within their tolerance on the
        scale of their terms: they are rounding, too.
        """
        known, failures = self.zeros.get(step.input_shape), report.failures
        if not known or not failures:
            return frozenset()
        scale = np.array([comparison.scale for comparison in report.comparisons])
        widened = known.widened(scale, functools.partial(zeros.largest_grad_output, step))
        within_terms = zip(report.comparisons, widened, strict=True)
        return frozenset(c.name for c, scale in within_terms if not c.passed and c.absolute <= c.tolerance * scale)

    def accept(
        self, plan: Plan, input_shape: Shape, found: Differences, largest_grad_output: Callable[[int], float]
    ) -> Differences | None:
        """The differences of a step's tensors, on the scales that they are compared on, or None where one of them is
        beyond its tolerance. `largest_grad_output` is that of the layer whose tensor is the plan's i-th.
        """
        absolute, scale, _ = found
        known = self.zeros.get(input_shape)
        if known:
            scale = known.widened(scale, largest_grad_output)
        if not within(absolute, scale, plan.tolerances[: len(scale)]).all():
            return None
        if known:
            known.count_step()
        return Differences(absolute, scale)

    def with_evaluation(self, step: Proof, report: GradientReport) -> GradientReport:
        """The report, with the output of each `infer` that differs from forward. Raises CannotCompare."""
        claim = EvaluationClaim(step, lambda: self._again(step, self._made_twins()[0]))
        comparisons = (*report.comparisons, *(compare(*pair) for pair in claim.pairs))
        failed = beyond_tolerance(claim.pairs) if claim.pairs else []
        rounding = frozenset[str]()
        with suppress(CannotCompare):
            if failed:
                rounding = judged(claim, failed).excused(failed)
        return replace(report, comparisons=comparisons, rounding=report.rounding | rounding)

    def report(self, step: Proof, verdict: StepVerdict | None = None) -> GradientReport:
        """The report on every tensor of the step, which is judged here unless there is a verdict already."""
        both = step.pairs
        sources = (*step.plan.reported_sources(), *at_kinks(step.findings))
        comparisons = tuple(compare(*pair) for pair in both)
        report = GradientReport(comparisons, sources=sources, without_reference=step.plan.without_reference())
        known_zeros = self._known_zeros(step, report)
        report = replace(report, rounding=known_zeros)
        if report.agrees:
            return self._parts_judged(step, report)
        if verdict is None:
            names = {comparison.name for comparison in report.failures}
            verdict = self.judge(step, [pair for pair in both if pair.quantity.name in names])
        report = replace(report, not_finite=verdict.not_finite)
        if not verdict.wrong:
            sources = (*sources, *zeros.sentences(verdict.zeros))
            report = replace(report, rounding=verdict.rounding | known_zeros, sources=sources)
            if report.agrees:
                return self._parts_judged(step, report)
        elif verdict.wrong[0].quantity.name != report.failures[0].name:
            # The first wrong formula in float64 is another one than the first that failed here. Its error hides within
            # the tolerance of float32, and only enlarges the rounding of what follows.
            return _diagnosed_in_float64(report, verdict.in_double, verdict.wrong, step.recorded)
        return replace(report, diagnosis=_diagnosis(report.failures[0], both, step.recorded))

    def _parts_judged(self, step: Proof, report: GradientReport) -> GradientReport:
        """The report on a step whose tensors all agree, or are off by rounding, with the small parts of tensors that
        are wrong at their own scales. No part is listed where float64 can't decide, of a tensor that is off by
        rounding, or of a layer that is compared with central differences: these are good to a fraction of the tensor's
        scale, and don't round as the step's dtype does.
        """
        counterparts = {item.label: step.plan.counterparts[item.name] for item in step.plan.items}
        by_differences = {label for label, counterpart in counterparts.items() if counterpart.source is Source.FORWARD}
        comparable = (pair for pair in step.pairs if pair.quantity.layer not in by_differences)
        tensors = (pair for pair in comparable if pair.quantity.name not in report.rounding)
        parts = [part for pair in tensors for part in doubtful_parts(pair)]
        if not parts:
            return report
        pairs = [part.pair for part in parts]
        try:
            found = judged(StepClaim(self._made_twins(), step, self._again, parts), pairs)
        except CannotCompare:
            return report
        if found.wrong:
            return _diagnosed_in_float64(report, found.in_double, found.wrong, step.recorded)
        failed = without(pairs, found.rounding)
        if not failed:
            return report
        report = replace(report, comparisons=(*report.comparisons, *(compare(*pair) for pair in failed)))
        return replace(report, diagnosis=_diagnosis(report.failures[0], failed, step.recorded))

    def judge(self, step: Proof, failed: list[Pair]) -> StepVerdict:
        """The verdict on the tensors that failed. It is empty where the step, or a reference, doesn't run in the other
        dtype: then nothing counts as rounding.

        Nothing is judged after the first value that isn't finite: what follows was computed from it.
        """
        parameters = vars(carve(step.param, self.model.parameter_shapes()))
        for name, parameter in parameters.items():
            if found := first_not_finite(parameter):
                return StepVerdict(not_finite=f"parameter {name} holds {found} before the step")
        if outside := outside_domain(step.recorded.loss):
            return StepVerdict(not_finite=outside)
        numbers = list(itertools.takewhile(_is_finite, failed))
        if not numbers and failed and not failed[0].reference.isfinite().all():
            return StepVerdict(not_finite=not_finite_tensor(failed[0]))
        claim = StepClaim(self._made_twins(), step, self._again)
        try:
            judgement = judged(claim, numbers)
            in_double, wrong = judgement.in_double, judgement.wrong
            if wrong and len(numbers) == len(failed):
                return StepVerdict(in_double, wrong)
            rounding = judgement.rounding
        except CannotCompare:
            return StepVerdict()
        not_finite = None
        if len(rounding) == len(numbers) < len(failed):
            # Where torch's value is finite and ours isn't, float64 shows why. If ours is finite there, float32 is too
            # small for our order of operations; else the formula is wrong.
            pair = failed[len(numbers)]
            if not pair.reference.isfinite().all() or (in_double and not wrong):
                not_finite = not_finite_tensor(pair)
        excused = [pair for pair in numbers if pair.quantity.name in rounding]
        return StepVerdict(in_double, wrong, rounding, not_finite, claim.zero_in_theory(excused))

    def _made_twins(self) -> tuple[Twin, Twin]:
        if self._twins is None:
            self._twins = Twin(self.model, self.loss, np.float64), Twin(self.model, self.loss, np.float32)
        return self._twins


def _diagnosed_in_float64(
    report: GradientReport, in_double: Sequence[Pair], wrong: Sequence[Pair], recorded: Recording
) -> GradientReport:
    """The report on the step in float64, in which the formulas of these pairs are wrong."""
    report = in_float64_instead(report, in_double, wrong)
    return replace(report, diagnosis=_diagnosis(report.failures[0], in_double, recorded))


def _is_finite(pair: Pair) -> bool:
    return bool(np.isfinite(pair.ours).all() and pair.reference.isfinite().all())


def _diagnosis(failure: Comparison, both: Sequence[Pair], recorded: Recording) -> str:
    """What the first failing difference looks like, and how near the layer's input is to a kink there."""
    pair = next(pair for pair in both if pair.quantity.name == failure.name)
    before = recorded.buffers_before.get(failure.name)
    if before is not None and np.array_equal(pair.ours, before):
        return "update_buffers left it as it was"
    calls = next((calls for calls in recorded.layers if calls.label == failure.layer), None)
    assert recorded.first.input is not None
    return diagnose(pair.ours, pair.reference.numpy(), failure.index, calls, len(recorded.first.input))
