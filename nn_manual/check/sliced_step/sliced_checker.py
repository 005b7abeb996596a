"""The check of a step that was made slice by slice, on one process or on several.

slice()         each slice's step is compared as a batch of its own          check/whole_step/checker.py
settle()        the processes learn of what one of them has found
together()      or: the slices ran side by side, and are compared as one batch  check/sliced_step/whole_batch.py
compare_sum()   its part in the loss of the batch, and the sum of the gradients
compare()       clipping, the optimizer's step, and what the processes have in the end

The file is long because one object sees to the slices, to their sum, and to what all processes find of both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from nn_manual.arrays import Array, Padded
from nn_manual.check.compare.comparison import Quantity
from nn_manual.check.compare.worst import Differences
from nn_manual.check.judge.report import GradientReport, comparing, mismatch_for, mismatch_of
from nn_manual.check.judge.step_check import StepCheck
from nn_manual.check.sliced_step.batch_loss import LossOfBatch, compare_loss
from nn_manual.check.sliced_step.replicas import compare_processes, digests_of
from nn_manual.check.sliced_step.shared_differences import Found, SlicedPlan, worst
from nn_manual.check.sliced_step.sums import compare_sums, sums_of
from nn_manual.check.sliced_step.whole_batch import gather_batch, gathered, gathered_lengths, name_process, raised_in
from nn_manual.check.step.calls import CallFailed
from nn_manual.check.step.plan import clipped_gradient
from nn_manual.check.step.recording import Recording
from nn_manual.check.twin.model import threads_for
from nn_manual.check.whole_step.checker import GradientChecker
from nn_manual.check.whole_step.clipping import compare_clipping
from nn_manual.errors import GradientMismatch, NotFiniteError
from nn_manual.losses import Loss
from nn_manual.model import Sequential
from nn_manual.optim import Clipping, Scheduler
from nn_manual.step.slices.cut import BatchPart
from nn_manual.step.slices.sliced_batch import SlicedBatch
from nn_manual.step.watch import Watch


class SlicedChecker(GradientChecker, Watch):
    """Proves steps in slices, which it watches. Every process proves its own slices, the sum and the update; what one
    finds, all raise. Figures are the worst of all slices.
    """

    def __init__(self, slices: SlicedBatch, clipping: Clipping | None, scheduler: Scheduler | None) -> None:
        self.slices, self.group = slices, slices.group
        #: How the sum is clipped. No slice is clipped: `clipping` stays None.
        self._clipping_of_sum = clipping
        with slices.whole_vectors():
            super().__init__(slices.model, slices.loss, slices.optimizer, scheduler=scheduler)
        self.watch = self
        self._parts: list[BatchPart] = []
        self._again = False

    @contextmanager
    def recording(self, input: Array | None = None) -> Iterator[Recording]:  # noqa: ARG002 - as in every checker
        """As in every checker; each slice is watched by itself."""
        assert self.update is not None  # it has an optimizer
        self.twin.anchor(self.model.param_arena)
        with self.slices.whole_vectors():
            self.update.anchor()
        yield self.recorded

    def begin(self, parts: list[BatchPart], target: Array) -> None:
        """The batch with this target is cut into these parts."""
        self._parts, self._target = parts, target
        self._own: list[BatchPart] = []
        #: The recordings of the own slices, where they run side by side.
        self._recordings: list[Recording] = []
        #: For each own slice, the gradients of the parameters, the prediction, and its gradient.
        self._grads, self._predictions, self._grad_predictions = list[Array](), list[Array](), list[Array]()
        self._found: Found | None = None
        #: What was found of the loss of the batch, and of the sums.
        self._of_batch: list[GradientReport] = []
        self._buffers = {name: buffer.copy() for name, buffer in self.recorded.buffers.items()}
        self._unclipped_grad: Array | None = None
        self._failed: tuple[int, str] | None = None

    @contextmanager
    def slice(self, part: BatchPart) -> Iterator[None]:
        """The context in which forward, loss, backward and the buffers of a slice run; compared when it ends. Raises
        what `compare` does, where this process is alone.
        """
        try:
            with self.watching():
                yield
            self._compare_slice(part)
        except (GradientMismatch, NotFiniteError) as error:
            self._keep_slice(error, part)
            if self.group.size == 1 or self._again:
                raise
            self._failed = self._failed or (part.number, _headline(error))

    @contextmanager
    def together(self, copies: Sequence[tuple[Sequential, Loss]]) -> Iterator[None]:
        """The context in which the own slices run side by side, each by one of these copies, and move the buffers."""
        self._recordings = [Recording(model, loss) for model, loss in copies]
        self.recorded.buffers_before = {name: buffer.copy() for name, buffer in self.recorded.buffers.items()}
        try:
            with ExitStack() as stack:
                for recording in self._recordings:
                    stack.enter_context(recording)
                yield
        except CallFailed as failed:
            raise raised_in(self._recordings, failed) from failed
        self._own = [part for part in self._parts if part.number in self.slices.slicing.own]
        for part, recording in zip(self._own, self._recordings, strict=True):
            self._keep(part, recording)

    def _keep(self, part: BatchPart, recording: Recording) -> None:
        """What the comparison of the batch needs of a slice."""
        loss = recording.loss
        assert loss.prediction is not None  # it ran
        assert loss.grad_prediction is not None
        self._grads.append(np.concatenate([grad.ravel() for grad in recording.grads.values()]))
        self._predictions.append(loss.prediction.copy())
        self._grad_predictions.append(loss.grad_prediction * loss.prediction.dtype.type(part.weight))

    def _compare_slice(self, part: BatchPart) -> None:
        self._own.append(part)
        self._keep(part, self.recorded)
        if self.loss.has_value(part.denominator):
            self._compare_recorded()

    def _compare_recorded(self) -> None:
        """Compare the layers of what is recorded, a slice or the whole batch. Raises what `compare` does."""
        with comparing():
            plan = self.plan()
            with threads_for(plan.num_products):
                proof = self.proof()
                differences = self.differences(proof)
        too_coarse = self.evidence.add_findings(proof.findings)
        found = Found.of(plan.tensors, differences, plan.tolerances, too_coarse)
        self._found = found if self._found is None else worst([self._found, found])

    def _keep_slice(self, error: Exception, part: BatchPart) -> None:
        """Let a mismatch in a slice say which slice it was."""
        if isinstance(error, GradientMismatch) and self.recorded.first.input is not None:
            error.batch = self.recorded.input, self._target[part.rows]
            error.first_row = part.rows.start

    def skip(self) -> None:
        """As in every checker; `compare_sum` has seen to it, for it knows the whole batch."""

    def settle(self, make_again: Callable[[BatchPart], object]) -> None:
        """Raise on every process what one of them has found in its slices: each makes that slice again and finds it,
        too.
        """
        failed = [(*each, rank) for rank, each in enumerate(self.group.gather(self._failed)) if each is not None]
        if not failed:
            return
        number, problem, rank = min(failed)
        self._again = True
        try:
            make_again(self._parts[number])
        finally:
            self._again = False
        problem = f"process {rank}: {problem}. Process {self.group.rank} finds slice {number} right"
        raise mismatch_for(problem)

    def compare_sum(self, value: float) -> None:
        """Compare the loss of the batch, its gradient and the sum of the gradients, which the model holds, and slices
        that ran side by side. Raises GradientMismatch, or NotFiniteError.
        """
        prediction, grad = (gathered(own, self.group) for own in (self._predictions, self._grad_predictions))
        loss = LossOfBatch(value, prediction, grad, self._target, self._parts)
        sums = sums_of(self._grads, [self._weight_in_sum(part) for part in self._parts], self.model, self.group)
        if not self.loss.has_value(sum(part.denominator for part in self._parts)):
            self.compare_nothing(prediction, self._target, grad)
            return
        if self.slices.synchronized:
            gather_batch(self.recorded, self._recordings, loss, self.model.ties.use_grads.keys(), self.group)
            if not (np.isfinite(value) and np.isfinite(sums.truth).all()):
                self._all_or_none(self._compare_whole)  # it says which layer made the first number that isn't finite
        is_in_order, count = self.group.size == 1 or self.slices.slicing.bitwise, len(self._parts)
        self._all_or_none(lambda: self._judge(compare_loss(loss, self.loss, self.twin)))
        self._all_or_none(lambda: self._judge(compare_sums(sums, self.model, count, is_in_order=is_in_order)))
        if self.slices.synchronized:
            self._all_or_none(self._compare_whole)
        if self._clipping_of_sum is not None:
            self._unclipped_grad = self.model.grad_arena.copy()

    def _weight_in_sum(self, part: BatchPart) -> float:
        """What a slice's gradient is multiplied by: where slices run side by side, it has its weight already."""
        return 1.0 if self.slices.synchronized else part.weight

    def _compare_whole(self) -> None:
        """Compare the batch that is recorded, whose slices ran side by side, with torch's step of it."""
        assert self.recorded.first.input is not None  # some process had a slice
        self.model.bind_noise(self.recorded.first.input.shape)
        if self.model.lengths_heeded_by:
            self.model.bind_lengths(Padded(self.recorded.first.input, gathered_lengths(self._recordings, self.group)))
        for calls in self.recorded.layers:
            calls.keep_noise()
        try:
            self._compare_recorded()
        except GradientMismatch as mismatch:
            if self.group.size > 1:
                name_process(mismatch, self._parts, len(self.slices.slicing.own))
            raise

    def _judge(self, report: GradientReport) -> None:
        if not report.agrees:
            raise mismatch_of(report)
        self._of_batch.append(report)

    def _all_or_none(self, compare_own: Callable[[], object]) -> None:
        """Run it, and raise on all processes what it raises on one: what is wrong here belongs to the batch, not to a
        slice.
        """
        own: GradientMismatch | NotFiniteError | None = None
        try:
            compare_own()
        except (GradientMismatch, NotFiniteError) as error:
            self.recorded.buffers_before = self._buffers  # those of the last slice alone were noted
            own = error
        for rank, problem in enumerate(self.group.gather(own and _headline(own))):
            if problem is not None:
                raise own or mismatch_for(f"process {rank}: {problem}")

    def compare_evaluation(self) -> None:
        """As in every checker, on the last own slice. All processes must call it."""
        self._all_or_none(super().compare_evaluation)

    def compare(self, updated: Differences | None = None) -> StepCheck:  # noqa: ARG002 - as in every checker
        """Compare clipping and the update, and what the processes have after it. Raises what every checker does."""
        assert self.update is not None  # it has an optimizer
        plan = self.plan() if self._own or self.slices.synchronized else None
        updates: list[tuple[list[Quantity], Differences]] = []
        with self.slices.whole_vectors():
            self._all_or_none(lambda: updates.extend(self._compared_update(plan.update if plan else [])))
        self._all_or_none(lambda: compare_processes(self.group.gather(digests_of(self.model))))
        found = worst([Found(*each) for each in self.group.gather(self._found) if each is not None])
        figures = [
            (each.name, each.absolute, each.scale, each.tolerance)
            for report in self._of_batch
            for each in report.comparisons
        ]
        found = found._replace(rounding=[*found.rounding, *(name for each in self._of_batch for name in each.rounding)])
        for quantities, (absolute, scale, rounding) in updates:
            found = found._replace(rounding=[*found.rounding, *rounding])
            figures += [
                (quantity.name, float(absolute[i]), float(scale[i]), quantity.tolerance)
                for i, quantity in enumerate(quantities)
            ]
        names = (*found.tensors, *(figure[0] for figure in figures))
        columns = np.concatenate([np.array(found.figures), np.array([figure[1:] for figure in figures]).T], axis=1)
        differences = Differences(columns[0], columns[1], frozenset(found.rounding))
        self.add_evidence(differences)
        check_plan: Any = SlicedPlan(names, columns[2], self.model.dtype)
        return StepCheck(check_plan, differences, frozenset(found.not_judged))

    def _compared_update(self, quantities: list[Quantity]) -> Iterator[tuple[list[Quantity], Differences]]:
        assert self.update is not None  # it has an optimizer
        clipping = self._clipping_of_sum
        if clipping is not None:
            assert self._unclipped_grad is not None  # compare_sum has copied it
            clipped = [clipped_gradient(clipping, self.model)]
            yield clipped, compare_clipping(clipped, self.model.grad_arena, [self._unclipped_grad], clipping)
        if quantities:  # this process had a slice, which says what there is
            with comparing():
                found = self._compared_step(self.update, quantities)
            yield quantities, found


def _headline(error: Exception) -> str:
    """What an error says first: the lines up to an empty one."""
    words = str(error).partition("\n\n")[0].split()
    return " ".join(words).removeprefix("gradient check failed: ")
