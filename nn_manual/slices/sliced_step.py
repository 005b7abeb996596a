"""A training step whose batch is cut into slices: on one process one after the other, on several side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from nn_manual.arrays import Array, placeholder
from nn_manual.losses import Loss
from nn_manual.model import Sequential
from nn_manual.optim import Optimizer
from nn_manual.slices.buffers import move_buffers, packed_buffers, restore_buffers
from nn_manual.slices.cut import Part, loss_of, parts_of, share
from nn_manual.slices.gradient_sum import Exchanged, GradientSum, InOrder, Reduced
from nn_manual.slices.group import ALONE, Group
from nn_manual.slices.one_slice import Formulas, Look, OneSlice, Runner
from nn_manual.slices.sharded_optimizer import ShardedOptimizer
from nn_manual.slices.side_by_side import SynchronizedSlices
from nn_manual.slices.sync_batch_norm import has_batch_norm


@dataclass(frozen=True)
class Slicing:
    """How a batch is cut, and who computes it: `num_slices` slices, of which each process of the group has as many.
    With `bitwise`, the gradients of all slices are added up one by one in their order: the same slices give the same
    bits on any number of processes. With `shard_optimizer`, each process keeps a part of the optimizer's vectors. With
    `sync_batch_norm`, batch normalization takes the statistics of the whole batch, not those of its slice.

    Raises ValueError where the processes don't divide the slices, or there is none.
    """

    num_slices: int = 1
    group: Group = ALONE
    bitwise: bool = False
    shard_optimizer: bool = False
    sync_batch_norm: bool = False

    def __post_init__(self) -> None:
        self.own  # noqa: B018 - raises

    @property
    def own(self) -> range:
        """The numbers of this process's slices."""
        return share(self.num_slices, self.group.rank, self.group.size)

    @property
    def is_plain(self) -> bool:
        """Whether a step is one of the whole batch on one process."""
        return self.num_slices == 1 and self.group.size == 1


#: A step of the whole batch on one process.
ONE_SLICE = Slicing()


class StepProof(Protocol):
    """What proves a sliced step while it is made."""

    def begin(self, parts: list[Part], target: Array) -> None:
        """The batch is cut into these."""

    def slice(self, part: Part) -> AbstractContextManager[Any]:
        """The context in which forward, loss, backward and the buffers of a slice run; proven when it ends."""

    def together(self, copies: Sequence[tuple[Sequential, Loss]]) -> AbstractContextManager[Any]:
        """The same for all own slices that run side by side, by these. They are proven as one batch, in `compare_sum`.
        """

    def settle(self, make_again: Callable[[Part], object]) -> None:
        """The processes tell each other what they have found. A slice that is wrong somewhere is made again."""

    def compare_sum(self, value: float) -> None:
        """The model holds the sum of the gradients, `value` is the loss of the batch."""


class SlicedStep:
    """Forward, backward, the sum of the gradients and the update of one model, slice by slice."""

    def __init__(
        self, model: Sequential, loss: Loss, optimizer: Optimizer, max_norm: float | None, slicing: Slicing
    ) -> None:
        self.model, self.loss, self.optimizer = model, loss, optimizer
        #: The norm that the next step clips to, or None.
        self.max_norm = max_norm
        self.slicing, self.group = slicing, slicing.group
        self.sharded: ShardedOptimizer | None = None
        #: Compiled steps put theirs in the place of this.
        self.runner: Runner = Formulas(model, loss, optimizer)
        self._sum = self._new_sum()
        self.synchronized: SynchronizedSlices | None = None
        if slicing.sync_batch_norm and has_batch_norm(model):
            num_own = len(slicing.own)
            self.synchronized = SynchronizedSlices(model, loss, num_own, slicing.num_slices, self.group)
        #: The slices of the step under way by which the buffers have not moved.
        self._moving: list[OneSlice] = []
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

    def whole_vectors(self, *, changed: bool = False) -> AbstractContextManager[None]:
        """The context in which the optimizer has its whole vectors. Every process must enter it. With `changed`, each
        keeps its part of what they are at its end.
        """
        return nullcontext() if self.sharded is None else self.sharded.whole(changed=changed)

    def gradients(self, input: Array, target: Array, look: Look | None, proof: StepProof | None) -> float:
        """Leave the gradient of the batch's loss in the model, and return the loss. `look` is called with an input and
        the prediction for it, on each process. With a `proof`, the buffers have moved, too.
        """
        parts = parts_of(self.loss, target, self.slicing.num_slices)
        if self.group.size > 1:
            self._check_shapes(parts, input)
        if look is not None and (self.synchronized is not None or not self._own(parts)):
            # Not in a slice: this process has none, or those of others wait for it in their layers.
            look(input, placeholder(self.model.output_shape(input.shape), self.model.dtype))
            look = None
        summed = parts if self.synchronized is None else [part._replace(weight=1.0) for part in parts]
        #: The losses of the slices, what signal has asked each process to stop, and who suspects a number.
        shared = np.zeros(self.slicing.num_slices + self.group.size + 1)
        shared[self.slicing.num_slices + self.group.rank] = self.group.signum
        shared[-1] = self._suspects
        self._moving = []
        self.runner.begin(parts, input, target)
        # Clipping needs the whole gradient, for one process's norm bit for bit.
        whole = not self.slicing.shard_optimizer or self.max_norm is not None or proof is not None
        self._sum.begin(self._own(summed), len(parts), whole=whole)
        if proof is not None:
            proof.begin(parts, target)
        batch = _Batch(parts, self._own(parts), input, target)
        try:
            if self.synchronized is not None:
                self._run_together(self.synchronized, batch, proof, shared)
            elif proof is not None:
                self._prove(batch, look, proof, shared)
            else:
                for position, part in enumerate(batch.own):
                    one_slice = self.runner.slice(part, input, target, look, self._sum.part(position))
                    shared[part.number], look = one_slice.value, None
                    self._moving.append(one_slice)
        finally:
            self.model.first_row = 0
        self._sum.finish(shared)
        self.group.agreed_signum = int(shared[self.slicing.num_slices : -1].max())
        self._suspected = bool(shared[-1])
        value = loss_of(self.loss, parts, shared[: len(parts)].tolist())
        if proof is not None:
            proof.compare_sum(value)
        return value

    def _check_shapes(self, parts: list[Part], input: Array) -> None:
        """Raise on every process what a forward of one of them would: TypeError for the dtype of its input, ValueError
        for its shape.
        """
        self.model.check_dtype(input)
        slices = [slice(0, len(input))] if self.synchronized is not None else [part.rows for part in parts]
        for size in sorted({rows.stop - rows.start for rows in slices}):
            self.model.output_shape((size, *input.shape[1:]))

    def _own(self, parts: list[Part]) -> list[Part]:
        return [part for part in parts if part.number in self.slicing.own]

    def _run_together(
        self, slices: SynchronizedSlices, batch: _Batch, proof: StepProof | None, shared: Array
    ) -> None:
        """The own slices, side by side. With a proof, the buffers move, too."""
        with nullcontext() if proof is None else proof.together(slices.copies[: len(batch.own)]):
            self._moving = slices.run(batch.parts, batch.own, batch.input, batch.target)
            for position, (part, one_slice) in enumerate(zip(batch.own, self._moving, strict=True)):
                shared[part.number] = one_slice.value
                np.copyto(self.model.grad_arena, slices.gradient(position))
                self._sum.part(position)(-1)
            if proof is not None:
                self._sum.start_rest()
                self.update_buffers()

    def _prove(self, batch: _Batch, look: Look | None, proof: StepProof, shared: Array) -> None:
        """The own slices, each proven; the buffers move, too."""
        model = self.model
        before, after = self._buffers_before(batch)
        for position, part in enumerate(batch.own):
            if before:
                restore_buffers(model, before[position])
            shared[part.number] = self._proven(part, batch, look, proof)
            self._sum.part(position)(-1)
            look = None
        self._sum.start_rest()

        def make_again(part: Part) -> None:
            self._sum.finish(shared)  # what is under way writes into the gradients
            self._proven(part, batch, None, proof)

        proof.settle(make_again)
        if before:
            restore_buffers(model, after)

    def _buffers_before(self, batch: _Batch) -> tuple[list[Array], Array]:
        """The buffers before each own slice, and after the last of all, where other processes move them, too."""
        model = self.model
        if self.group.size == 1 or not vars(model.buffer):
            return [], packed_buffers(model)
        moving = [self.runner.kept(part, batch.input, batch.target) for part in batch.own]
        before = move_buffers(model, moving, self.group)
        return before, packed_buffers(model)

    def _proven(self, part: Part, batch: _Batch, look: Look | None, proof: StepProof) -> float:
        value = math.nan  # of a slice that is wrong, which `settle` raises
        with proof.slice(part):
            one_slice = self.runner.slice(part, batch.input, batch.target, look)
            value = one_slice.value
            one_slice.move_buffers()
        return value

    def share_suspicion(self, suspects: bool) -> bool:
        """Whether any process suspects that a number isn't finite: of several, they all know it a step later."""
        if self.group.size == 1:
            return suspects
        self._suspects = suspects
        return self._suspected

    def update_buffers(self) -> None:
        """Move the buffers, by one slice after the other."""
        move_buffers(self.model, self._moving, self.group)
        self._moving = []

    def update(self) -> None:
        """Clip the gradient, and move the parameters."""
        self.runner.update(self.max_norm)
        if self.sharded is not None:
            self.sharded.spread()


class _Batch(NamedTuple):
    """A batch, its slices, and those of this process."""

    parts: list[Part]
    own: list[Part]
    input: Array
    target: Array
