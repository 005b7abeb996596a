"""The check of the optimizer: torch schedules and steps on our gradients, and ends where we do.

The gradients themselves have been compared by then. torch takes ours, so only the formula of the step can still differ.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import torch

from nn_manual.arrays import Array
from nn_manual.check.compare.comparison import CannotCompare, Quantity, compare
from nn_manual.check.compare.tolerances import learning_rate
from nn_manual.check.compare.worst import (
    Differences,
    beyond_tolerance,
    differences_of,
    tolerances_of,
    within,
    worst_differences,
)
from nn_manual.check.judge.claim import without
from nn_manual.check.judge.not_finite import check_finite
from nn_manual.check.judge.report import in_float64_instead, mismatch_for, mismatch_of, report_of
from nn_manual.check.judge.verdict import explained, judged
from nn_manual.check.twin.optimizers import OptimizerTwin, State, UpdateInputs, state_of, stepped, tensors_of
from nn_manual.check.twin.schedules import schedule_twin
from nn_manual.check.whole_step.update_claim import UpdateClaim
from nn_manual.check.whole_step.update_pieces import Piece, PieceOfUpdate, pieces
from nn_manual.optim import Optimizer, Scheduler
from nn_manual.optim.scheduling import settings_that_stay


class UpdateChecker:
    """Lets torch.optim's class of the optimizer's name repeat each compared step.

    torch starts each of them from copies of our parameters and state vectors, and afterwards all of them are compared:
    no step depends on what was compared before it.
    """

    def __init__(self, optimizer: Optimizer, start: Array, scheduler: Scheduler | None = None) -> None:
        """`start` is the vector into which the parameters are copied before each step."""
        self.optimizer = optimizer
        self.scheduler = scheduler
        initial = [member.scheduled for member in optimizer.members]
        self._scheduler_twin = schedule_twin(scheduler, initial) if scheduler else None
        #: What a step starts from, and how many were made before it.
        self.start = State(start, {name: np.empty_like(vector) for name, vector in optimizer.vectors.items()})
        self.num_steps = 0
        self._num_compared = 0
        #: Whether the formulas were compared in float64, and what the optimizer has raised there instead.
        self._compared_in_float64, self._raised_in_float64 = False, ""
        self._settings_at_first = self._settings()
        self._parts = _parts_with_twins(optimizer)

    def observe(self, validation_loss: float) -> None:
        """Let torch's schedule see the validation loss of an epoch, before ours does."""
        if self._scheduler_twin is not None:
            self._scheduler_twin.observe(validation_loss)

    def compare_schedule(self, count: int) -> None:
        """Compare what the schedule has moved after `count` epochs or steps, and what it remembers, with torch's.
        Raises GradientMismatch.
        """
        if self.scheduler is None or self._scheduler_twin is None:
            return
        torchs, scales = self._scheduler_twin.scheduled(count), self._scheduler_twin.scales
        for index, member in enumerate(self.optimizer.members):
            for name, ours in member.scheduled._asdict().items():
                theirs, tolerance = torchs[index][name], learning_rate(count) * scales[index][name]
                if ours is not None and not math.isclose(ours, theirs, rel_tol=0, abs_tol=tolerance):
                    where = f"{name} of groups.{index - 1}" if index else name
                    raise mismatch_for(f"scheduler: {where} is {ours!r}, torch's is {theirs!r}")
        state = self.scheduler.state()
        for name, value in self._scheduler_twin.state().items():
            if state[name] != value:
                raise mismatch_for(f"scheduler: {name} is {state[name]!r}, torch's is {value!r}")

    def check_unchanged(self) -> None:
        """Raise ValueError where a setting has changed that no schedule may move: torch's optimizer was made with what
        it was.
        """
        settings = self._settings()
        if settings != self._settings_at_first:
            both = ((name, was, settings[name]) for name, was in self._settings_at_first.items())
            changes = [f"{name} was {before} and is {now}" for name, before, now in both if before != now]
            raise ValueError(
                f"{type(self.optimizer).__name__}.{changes[0]}. In a checked training the lr alone may change, and "
                "what a schedule moves: another setting takes a new optimizer and a new Trainer"
            )

    def _settings(self) -> dict[str, Any]:
        return settings_that_stay(self.optimizer, self.scheduler)

    def anchor(self) -> None:
        """Start from where the optimizer is now. The parameters have been copied by then. Raises ValueError, as
        `check_unchanged` does.
        """
        self.check_unchanged()
        self.num_steps = self.optimizer.num_steps
        for name, vector in self.optimizer.vectors.items():
            torch.from_numpy(self.start.vectors[name]).copy_(torch.from_numpy(vector))  # by torch's threads

    def compare(self, quantities: list[Quantity]) -> Differences:
        """Let torch step on our gradients, and compare each tensor of the state vectors and of the parameters. Raises
        GradientMismatch, or NotFiniteError.
        """
        found = self._compared(quantities)
        if self.optimizer.num_steps != self.num_steps + 1:
            raise mismatch_for(
                f"optimizer: num_steps is {self.optimizer.num_steps} after the step, and was {self.num_steps} before it"
            )
        if self.is_due:
            self.compare_in_float64(quantities, self._inputs())
        self.count()
        return found

    def _compared(self, quantities: list[Quantity]) -> Differences:
        inputs, ours = self._inputs(), state_of(self.optimizer)
        absolute, scale = np.zeros((2, len(quantities)), self.start.param.dtype)
        for own, twin in self._parts:
            both = ours.part(own.where).all, stepped(twin, inputs.part(own.where, own.members)).all
            found = worst_differences(*both, own.sizes, num_steps=1)
            for largest, (of_part,) in zip((absolute, scale), found, strict=True):
                largest[own.tensors] = np.maximum(largest[own.tensors], of_part)
        tolerances = tolerances_of(quantities)
        passed = within(absolute, scale, tolerances)
        if passed.all():
            return Differences(absolute, scale)
        # What lands near zero carries the rounding errors of where it came from.
        before = [np.abs(tensor).max() for tensor in tensors_of(self.start, self.optimizer)]
        scale = np.where(passed, scale, np.maximum(scale, before))
        failed = itertools.compress(quantities, ~within(absolute, scale, tolerances))
        return Differences(absolute, scale, self._rounding(quantities, {quantity.name for quantity in failed}))

    @property
    def is_due(self) -> bool:
        """Whether the next step to be compared is the first, second, fourth, eighth, ... one."""
        number = self._num_compared + 1
        return number & self._num_compared == 0

    def count(self) -> None:
        """A step is compared, here or elsewhere."""
        self._num_compared += 1

    def compare_in_float64(self, quantities: list[Quantity], inputs: UpdateInputs) -> None:
        """Compare the formulas, in float64. In float32 a small lr hides them: what is added to a parameter is rounded
        to its last bits. Raises GradientMismatch. An optimizer that doesn't run in float64 is not compared:
        `unproven` says so.
        """
        if self.start.param.dtype == np.float64:
            return
        for piece in pieces(self.optimizer):
            try:
                if self._agrees_in_float64(piece, quantities, inputs):
                    continue
                claim = self._claim_in_float64(piece, quantities, inputs)
            except CannotCompare as problem:
                self._raised_in_float64 = str(problem)
                return
            doubtful = beyond_tolerance(claim.pairs)
            rounding = explained(claim, doubtful)
            if len(rounding) < len(doubtful):
                raise mismatch_of(report_of(claim.pairs, rounding))
        self._compared_in_float64 = True

    def _agrees_in_float64(self, piece: Piece, quantities: list[Quantity], inputs: UpdateInputs) -> bool:
        """Whether the formulas agree, each part of the piece after the other. Raises CannotCompare."""
        found = []
        for part in piece.parts(self.optimizer):
            claim = self._claim_in_float64(part, quantities, inputs)
            found.append(differences_of(claim.pairs))
        absolute, scale = np.max(found, axis=0)
        return bool(within(absolute, scale, tolerances_of(pair.quantity for pair in claim.pairs)).all())

    def _claim_in_float64(self, piece: Piece, quantities: list[Quantity], inputs: UpdateInputs) -> UpdateClaim:
        own = PieceOfUpdate(piece, self.optimizer)
        its_inputs, its = inputs.part(own.where, own.members), [quantities[i] for i in own.tensors]
        return UpdateClaim.made_in_float64(own.optimizer, its_inputs, its)

    def unproven(self) -> tuple[str, ...]:
        """A sentence where the optimizer's formulas were never compared in float64, since it raised something there."""
        if self._compared_in_float64 or not self._raised_in_float64:
            return ()
        return (f"optimizer: in float64 its step raises {self._raised_in_float64}",)

    def state(self) -> dict[str, Any]:
        """What later sentences need, as JSON has it."""
        return {"compared_in_float64": self._compared_in_float64, "raised_in_float64": self._raised_in_float64}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` returned."""
        self._compared_in_float64, self._raised_in_float64 = state["compared_in_float64"], state["raised_in_float64"]

    def _inputs(self) -> UpdateInputs:
        """Those of the step that has just been made."""
        scheduled = [member.scheduled for member in self.optimizer.members]
        return UpdateInputs(self.start, self.optimizer.model.grad_arena, scheduled, self.num_steps)

    def _rounding(self, quantities: list[Quantity], failed: Collection[str]) -> frozenset[str]:
        """Those of the names in `failed` that are beyond the tolerance by rounding: all of them. Raises where a formula
        is wrong.
        """
        inputs, ours, found = self._inputs(), state_of(self.optimizer), frozenset[str]()
        for piece in pieces(self.optimizer):
            own = PieceOfUpdate(piece, self.optimizer)
            its = [quantities[i] for i in own.tensors]
            if any(quantity.name in failed for quantity in its):
                tensors = tensors_of(ours.part(own.where), own.optimizer)
                claim = UpdateClaim(own.optimizer, inputs.part(own.where, own.members), its, tensors)
                found |= self._rounding_in(claim)
        return found

    def _rounding_in(self, claim: UpdateClaim) -> frozenset[str]:
        """The names of the claim's tensors that are beyond the tolerance by rounding."""
        failed = [pair for pair in claim.pairs if not compare(*pair).passed]
        check_finite(failed)
        try:
            found = judged(claim, failed)
        except CannotCompare as problem:
            self._raised_in_float64 = str(problem)
            raise mismatch_of(report_of(claim.pairs, diagnosis=f"in float64 the step raises {problem}")) from problem
        if not found.wrong and not without(failed, found.rounding):
            return found.rounding
        report = report_of(claim.pairs, found.excused(failed))
        if found.wrong and [found.wrong[0].quantity.name] != [comparison.name for comparison in report.failures[:1]]:
            # The error of the first wrong formula hides within the tolerance of float32.
            report = in_float64_instead(report, found.in_double, found.wrong)
        raise mismatch_of(report)


def _parts_with_twins(optimizer: Optimizer) -> list[tuple[PieceOfUpdate, OptimizerTwin]]:
    """The parts of the update, each with its reference. Those of equal parts are one: it has memory of its own."""
    twins: dict[object, OptimizerTwin] = {}
    found = []
    for part in (part for piece in pieces(optimizer) for part in piece.parts(optimizer)):
        own = PieceOfUpdate(part, optimizer)
        if own.form not in twins:
            twins[own.form] = OptimizerTwin(own.optimizer, optimizer.model.dtype)
        found.append((own, twins[own.form]))
    return found
