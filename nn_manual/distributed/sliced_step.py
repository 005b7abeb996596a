"""A training step whose batch is cut into slices: on one process one after the other, on several side by side."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from nn_manual.arrays import Array
from nn_manual.distributed.buffers import move_buffers, packed_buffers, restore_buffers
from nn_manual.distributed.gradient_sum import Exchanged, Filled, GradientSum, InOrder, Reduced
from nn_manual.distributed.group import ALONE, Group
from nn_manual.distributed.sharded import ShardedOptimizer
from nn_manual.distributed.slices import Part, loss_of, parts_of, share
from nn_manual.losses import Loss, as_number
from nn_manual.model import Sequential
from nn_manual.optim import Optimizer, clip_grad_norm

#: Looks at the input of a slice and the prediction for it.
Look = Callable[[Array, Array], None]


@dataclass(frozen=True)
class Slicing:
    """How a batch is cut, and who computes it: `num_slices` slices, of which each process of the group has as many.
    With `bitwise`, the gradients of all slices are added up one by one in their order: the same slices give the same
    bits on any number of processes. With `shard_optimizer`, each process keeps a part of the optimizer's vectors.

    Raises ValueError where the processes don't divide the slices.
    """

    num_slices: int = 1
    group: Group = ALONE
    bitwise: bool = False
    shard_optimizer: bool = False

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

    def settle(self, make_again: Callable[[Part], object]) -> None:
        """The processes tell each other what they have found. A slice that is wrong somewhere is made again."""

    def compare_sum(self, value: float) -> None:
        """The model holds the sum of the gradients, `value` is the loss of the batch."""


class SlicedStep:
    """Forward, backward, the sum of the gradients and the update of one model, slice by slice."""

    def __init__(
        self, model: Sequential, loss: Loss, optimizer: Optimizer, max_norm: float | None, slicing: Slicing
    ) -> None:
        self.model, self.loss, self.optimizer, self.max_norm = model, loss, optimizer, max_norm
        self.slicing, self.group = slicing, slicing.group
        self.sharded: ShardedOptimizer | None = None
        self._sum = self._new_sum()
        self._kept: list[Any] = []
        self._suspects = self._suspected = False

    def _new_sum(self) -> GradientSum:
        slicing, model = self.slicing, self.model
        if self.group.size == 1:
            return InOrder(model)
        if not (slicing.bitwise or slicing.shard_optimizer):
            return Reduced(model, self.group)
        # Clipping needs the whole gradient, for one process's norm bit for bit.
        spread = not slicing.shard_optimizer or self.max_norm is not None
        exchanged = Exchanged(model, self.group, len(slicing.own), by_slice=slicing.bitwise, spread=spread)
        if slicing.shard_optimizer:
            self.sharded = ShardedOptimizer(self.optimizer, self.group, exchanged.pieces)
        return exchanged

    def whole_vectors(self, *, changed: bool = False) -> AbstractContextManager[None]:
        """The context in which the optimizer has its whole vectors. Every process must enter it. With `changed`, each
        keeps its part of what they are at its end.
        """
        return nullcontext() if self.sharded is None else self.sharded.whole(changed=changed)

    def gradients(self, input: Array, target: Array, look: Look | None, proof: StepProof | None) -> float:
        """Leave the gradient of the batch's loss in the model, and return the loss. `look` is called with the first
        slice's input and prediction. With a `proof`, the buffers have moved, too.
        """
        parts = parts_of(self.loss, target, self.slicing.num_slices)
        own = [part for part in parts if part.number in self.slicing.own]
        #: The losses of the slices, what signal has asked each process to stop, and who suspects a number.
        shared = np.zeros(self.slicing.num_slices + self.group.size + 1)
        shared[self.slicing.num_slices + self.group.rank] = self.group.signum
        shared[-1] = self._suspects
        self._kept = []
        self._sum.begin(own, len(parts), whole=proof is not None)
        try:
            if proof is not None:
                self._prove(parts, own, input, target, look, proof, shared)
            else:
                for position, part in enumerate(own):
                    shared[part.number] = self._slice(part, input, target, look, self._sum.part(position))
                    look = None
        finally:
            self.model.first_row = 0
        self._sum.finish(shared)
        self.group.agreed_signum = int(shared[self.slicing.num_slices : -1].max())
        self._suspected = bool(shared[-1])
        value = loss_of(self.loss, parts, shared[: len(parts)].tolist())
        if proof is not None:
            proof.compare_sum(value)
        return value

    def _prove(
        self,
        parts: list[Part],
        own: list[Part],
        input: Array,
        target: Array,
        look: Look | None,
        proof: StepProof,
        shared: Array,
    ) -> None:
        """The own slices, each proven; the buffers move, too."""
        model = self.model
        proof.begin(parts, target)
        before, after = self._buffers_before(own, input)
        for position, part in enumerate(own):
            if before:
                restore_buffers(model, before[position])
            shared[part.number] = self._proven(part, input, target, look, proof)
            self._sum.part(position)(-1)
            look = None
        self._sum.start_rest()
        proof.settle(lambda part: self._proven(part, input, target, None, proof))
        if before:
            restore_buffers(model, after)

    def _buffers_before(self, own: list[Part], input: Array) -> tuple[list[Array], Array]:
        """The buffers before each own slice, and after the last of all, where other processes move them, too."""
        if self.group.size == 1 or not vars(self.model.buffer):
            return [], packed_buffers(self.model)
        for part in own:
            self.model.first_row = part.rows.start
            self._kept.append(self.model.kept_for_buffers(self.model.forward(input[part.rows])[1]))
        before = move_buffers(self.model, self._kept, self.group)
        self._kept = []
        return before, packed_buffers(self.model)

    def _slice(
        self,
        part: Part,
        input: Array,
        target: Array,
        look: Look | None,
        filled: Filled | None,
    ) -> float:
        """Forward and backward of a slice, and its loss."""
        model, loss = self.model, self.loss
        model.first_row = part.rows.start
        prediction, saved = model.forward(input[part.rows])
        if look is not None:
            look(input[part.rows], prediction)
        has_value = loss.has_value(part.denominator)  # else it is a mean over nothing, and its gradient is 0
        with nullcontext() if has_value else np.errstate(invalid="ignore"):
            value, loss_saved = loss.forward(prediction, target[part.rows])
        number = as_number(loss, value)
        model.backward_parameters(saved, loss.backward(loss_saved), filled)
        self._kept.append(model.kept_for_buffers(saved))
        return number

    def _proven(
        self, part: Part, input: Array, target: Array, look: Look | None, proof: StepProof
    ) -> float:
        value = math.nan  # of a slice that is wrong, which `settle` raises
        with proof.slice(part):
            value = self._slice(part, input, target, look, None)
            self.model.update_buffers(self._kept.pop())
        return value

    def share_suspicion(self, suspects: bool) -> bool:
        """Whether any process suspects that a number isn't finite: of several, they all know it a step later."""
        if self.group.size == 1:
            return suspects
        self._suspects = suspects
        return self._suspected

    def update_buffers(self) -> None:
        """Move the buffers, by one slice after the other."""
        move_buffers(self.model, self._kept, self.group)
        self._kept = []

    def update(self) -> None:
        """Clip the gradient, and move the parameters."""
        if self.max_norm is not None:
            clip_grad_norm(self.model.grad_arena, self.max_norm)
        if self.sharded is not None:
            self.sharded.step()
        else:
            self.optimizer.step()
