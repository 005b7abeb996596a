"""A batch in slices, on this process and others: the gradients of each, and their sum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import numpy as np

from nn_manual.arrays import Array
from nn_manual.layers.composite import descendants
from nn_manual.losses import Loss
from nn_manual.model import Sequential
from nn_manual.optim import Optimizer
from nn_manual.step.slices.buffers import move_buffers, packed_buffers, restore_buffers
from nn_manual.step.slices.cut import BatchPart, Slicing, loss_of, parts_of
from nn_manual.step.slices.gradient_sum import Exchanged, GradientSum, InOrder, Reduced
from nn_manual.step.slices.sharded_optimizer import ShardedOptimizer
from nn_manual.step.slices.side_by_side import SynchronizedSlices
from nn_manual.step.slices.sync_batch_norm import has_batch_norm, not_synchronized
from nn_manual.step.train_step import MadeBatch, OneSlice, Runner
from nn_manual.step.watch import Watch


class SlicedBatch:
    """Makes the slices of one model's batches, as `slicing` says."""

    def __init__(self, model: Sequential, loss: Loss, optimizer: Optimizer, slicing: Slicing) -> None:
        self.model, self.loss, self.optimizer = model, loss, optimizer
        self.slicing, self.group = slicing, slicing.group
        self.sharded: ShardedOptimizer | None = None
        self._sum = self._new_sum()
        self.synchronized: SynchronizedSlices | None = None
        layers = dict(descendants(model))
        if slicing.sync_batch_norm and has_batch_norm(layers.values()):
            if reason := not_synchronized(layers):
                raise ValueError(reason)
            num_own = len(slicing.own)
            self.synchronized = SynchronizedSlices(model, loss, num_own, slicing.num_slices, self.group)
        self._suspects = self._suspected = False

    def _new_sum(self) -> GradientSum:
        slicing, model = self.slicing, self.model
        if self.group.size == 1:
            return InOrder(model)
        if not (slicing.bitwise or slicing.shard_optimizer):
            return Reduced(model, self.group)
        exchanged = Exchanged(model, self.group, len(slicing.own), by_slice=slicing.bitwise)
        if slicing.shard_optimizer:
            self.sharded = ShardedOptimizer(self.optimizer, self.group, exchanged.pieces)
        return exchanged

    def gradients(self, runner: Runner, input: Array, target: Array, watch: Watch | None, *, whole: bool) -> MadeBatch:
        """See Slices. Where each slice is watched, the buffers move, too."""
        parts = parts_of(self.loss, target, self.slicing.num_slices)
        own = [part for part in parts if part.number in self.slicing.own]
        batch = _Batch(runner, parts, own, input, target, self.model.first_row)
        self._begin(batch, watch, whole=whole)
        try:
            made = self._slices(batch, watch)
        finally:
            self.model.first_row = batch.first_row
        value = self._sum_up(batch, made)
        if watch is not None:
            watch.compare_sum(value)
        return MadeBatch(value, made)

    def _begin(self, batch: _Batch, watch: Watch | None, *, whole: bool) -> None:
        """Tell all who take part how the batch is cut."""
        if self.group.size > 1:
            self._check_shapes(batch)
        batch.runner.begin(batch.parts, batch.input, batch.target, watch)
        summed = batch.own if self.synchronized is None else [part._replace(weight=1.0) for part in batch.own]
        whole = whole or not self.slicing.shard_optimizer or watch is not None
        self._sum.begin(summed, len(batch.parts), whole=whole)
        if watch is not None:
            watch.begin(batch.parts, batch.target)

    def _check_shapes(self, batch: _Batch) -> None:
        """Raise on every process what forward would raise on one of them: TypeError for the dtype of the input,
        ValueError for its shape.
        """
        input = batch.input
        self.model.check_dtype(input)
        slices = [slice(0, len(input))] if self.synchronized is not None else [part.rows for part in batch.parts]
        for size in sorted({rows.stop - rows.start for rows in slices}):
            self.model.output_shape((size, *input.shape[1:]))

    def _slices(self, batch: _Batch, watch: Watch | None) -> list[OneSlice]:
        """Run forward, loss and backward of the own slices."""
        if self.synchronized is not None:
            return self._side_by_side(self.synchronized, batch, watch)
        if watch is not None:
            return self._watched(batch, watch)
        made = []
        for position, part in enumerate(batch.own):
            self.model.first_row = batch.first_row + part.rows.start
            made.append(batch.runner.slice(part, batch.input, batch.target, self._sum.part(position)))
        return made

    def _side_by_side(self, slices: SynchronizedSlices, batch: _Batch, watch: Watch | None) -> list[OneSlice]:
        with nullcontext() if watch is None else watch.together(slices.copies[: len(batch.own)]):
            made = slices.run(batch.parts, batch.own, batch.input, batch.target)
            for position in range(len(made)):
                np.copyto(self.model.grad_arena, slices.gradient(position))
                self._sum.part(position)(-1)
            if watch is not None:
                self._sum.start_rest()
                self.move_buffers(made)
        return made

    def _watched(self, batch: _Batch, watch: Watch) -> list[OneSlice]:
        """Make the own slices. Each is proven before the next one is made, and before its gradients are added up."""
        before, after = self._buffers_before(batch)

        def make(part: BatchPart) -> OneSlice:
            self.model.first_row = batch.first_row + part.rows.start
            made = OneSlice(math.nan, self.model, [])  # for a slice that is wrong: `settle` raises that
            with watch.slice(part):
                made = batch.runner.slice(part, batch.input, batch.target)
                made.move_buffers()
            return made

        def make_again(part: BatchPart) -> None:
            self._sum.finish(_NOTHING.copy())  # what is under way writes into the gradients
            make(part)

        done = []
        for position, part in enumerate(batch.own):
            if before:
                restore_buffers(self.model, before[position])
            done.append(make(part))
            self._sum.part(position)(-1)
        self._sum.start_rest()
        watch.settle(make_again)
        if before:
            restore_buffers(self.model, after)
        return done

    def _buffers_before(self, batch: _Batch) -> tuple[list[Array], Array]:
        """The buffers before each own slice and after the last slice of all, if other processes move them, too."""
        model = self.model
        if self.group.size == 1 or not vars(model.buffer):
            return [], packed_buffers(model)
        moving = []
        for part in batch.own:
            model.first_row = batch.first_row + part.rows.start
            moving.append(batch.runner.kept(part, batch.input, batch.target))
        before = move_buffers(model, moving, self.group)
        return before, packed_buffers(model)

    def move_buffers(self, made: Sequence[OneSlice]) -> None:
        """See Slices."""
        if self.group.size > 1:
            move_buffers(self.model, made, self.group)
            return
        for one_slice in made:
            one_slice.move_buffers()

    def _sum_up(self, batch: _Batch, made: list[OneSlice]) -> float:
        """Wait for the sum of the gradients; returns the loss of the batch. On the way, the processes tell each other
        their losses, the signal that has asked one of them to stop, and whether one suspects a number that isn't
        finite.
        """
        if self.group.size == 1:
            self._sum.finish(_NOTHING)
            return loss_of(self.loss, batch.parts, [one_slice.value for one_slice in made])
        num_slices = self.slicing.num_slices
        shared = np.zeros(num_slices + self.group.size + 1)
        for part, one_slice in zip(batch.own, made, strict=True):
            shared[part.number] = one_slice.value
        shared[num_slices + self.group.rank] = self.group.signum
        shared[-1] = self._suspects
        self._sum.finish(shared)
        self.group.agreed_signum = int(shared[num_slices:-1].max())
        self._suspected = bool(shared[-1])
        return loss_of(self.loss, batch.parts, shared[: len(batch.parts)].tolist())

    def share_suspicion(self, suspects: bool) -> bool:
        """Whether any process suspects that a number isn't finite. Several processes all know it one step later."""
        if self.group.size == 1:
            return suspects
        self._suspects = suspects
        return self._suspected

    def spread(self) -> None:
        """See Slices."""
        if self.sharded is not None:
            self.sharded.spread()

    def whole_vectors(self, *, changed: bool = False) -> AbstractContextManager[None]:
        """The context in which the optimizer has its whole vectors. Every process must enter it. With `changed`, each
        process then keeps its part of the vectors as they are at its end.
        """
        return nullcontext() if self.sharded is None else self.sharded.whole(changed=changed)


#: What a process that is alone has to share.
_NOTHING = np.zeros(1)


class _Batch(NamedTuple):
    """A batch: who runs its slices, all of them and those of this process, and the row at which it begins."""

    runner: Runner
    parts: list[BatchPart]
    own: list[BatchPart]
    input: Array
    target: Array
    first_row: int
