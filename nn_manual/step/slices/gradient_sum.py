"""The sum of the gradients of a batch's slices, each times its weight.

    InOrder     one process: slice after slice
    Reduced     several processes: each adds up its own slices, then an all-reduce adds these sums, in its own order
    Exchanged   several processes: each adds up one piece of the arena, for all slices in their order

The file is long because the same sum is made in three ways.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from nn_manual.arrays import Array, blocks
from nn_manual.model import Sequential
from nn_manual.step.slices.buckets import Bucket, buckets_of
from nn_manual.step.slices.cut import BatchPart, cut
from nn_manual.step.slices.process_group import ProcessGroup, Work

#: How many buckets of the processes' own sums are held at once: the first one is added up before another one is sent.
#: docs/machines.md says what that saves.
NUM_UNDER_WAY = 2

#: Backward calls this with the number of each layer whose gradients it has filled in, and with -1 at its end.
Filled = Callable[[int], None]


class GradientSum(Protocol):
    """The sum of a step: `begin`, then `part` for each of this process's slices, then `finish`. Before `finish`,
    `model.grad_arena` holds the gradient of a slice, and after it the sum. `other` is summed over the processes on the
    way.
    """

    def begin(self, own: Sequence[BatchPart], num_parts: int, *, whole: bool) -> None:
        """Begin the sum of `num_parts` slices, of which `own` are this process's. With `whole`, each process gets all
        of the sum.
        """

    def part(self, position: int) -> Filled:
        """The function that the backward of the `position`-th own slice must call. A call with -1 is enough."""

    def start_rest(self) -> None:
        """All own slices are there. A process with fewer slices than others now starts the exchanges that are left,
        before it exchanges anything else with them.
        """

    def finish(self, other: Array) -> None:
        """Return when the sum is there."""


class InOrder:
    """The sum on one process: total = weight * grad of the first slice, then total = total + weight * grad."""

    def __init__(self, model: Sequential) -> None:
        self._grad, self._total = model.grad_arena, np.empty_like(model.grad_arena)

    def begin(self, own: Sequence[BatchPart], num_parts: int, *, whole: bool) -> None:  # noqa: ARG002 - one process has all
        """See GradientSum."""
        self._own = own

    def part(self, position: int) -> Filled:
        """See GradientSum."""

        def filled(layer: int) -> None:
            if layer < 0:
                for block in blocks(self._grad.size):
                    self.add(position, block)

        return filled

    def add(self, position: int, where: slice) -> None:
        """Add a piece of the gradient of an own slice. For the last slice, the sum replaces that piece."""
        weight, grad, total = self._own[position].weight, self._grad[where], self._total[where]
        if position == len(self._own) - 1:
            np.multiply(grad, weight, out=grad)
            if position:
                grad += total
        elif position:
            total += weight * grad
        else:
            np.multiply(grad, weight, out=total)

    def start_rest(self) -> None:
        """See GradientSum."""

    def finish(self, other: Array) -> None:
        """See GradientSum."""


class Reduced:
    """The sum over several processes. Each bucket is on its way as soon as the last own slice has filled it."""

    def __init__(self, model: Sequential, group: ProcessGroup) -> None:
        self._grad, self._group, self._own_sum = model.grad_arena, group, InOrder(model)
        self._buckets = buckets_of(model)

    def begin(self, own: Sequence[BatchPart], num_parts: int, *, whole: bool) -> None:
        """See GradientSum."""
        self._own_sum.begin(own, num_parts, whole=whole)
        self._works, self._num_own = list[Work](), len(own)
        if not own:  # it has nothing to add, and takes part all the same
            self._grad.fill(0)

    def part(self, position: int) -> Filled:
        """See GradientSum."""
        if position < self._num_own - 1:
            return self._own_sum.part(position)

        def filled(layer: int) -> None:
            for bucket in _ready(self._buckets, len(self._works), layer):
                self._own_sum.add(position, bucket.where)
                self._works.append(self._group.start_sum(self._grad[bucket.where]))

        return filled

    def start_rest(self) -> None:
        """See GradientSum."""
        for bucket in self._buckets[len(self._works) :]:
            self._works.append(self._group.start_sum(self._grad[bucket.where]))

    def finish(self, other: Array) -> None:
        """See GradientSum."""
        self.start_rest()
        self._works.append(self._group.start_sum(other))
        for work in self._works:
            work.wait()


class Exchanged:
    """The sum over several processes, each of which adds up one piece of each bucket. With `by_slice`, it adds all
    slices in their order, so that the sum doesn't depend on the number of processes; else it adds the processes' own
    sums.

    A process gets only the sums of its own pieces, unless a step asks for the whole.
    """

    def __init__(self, model: Sequential, group: ProcessGroup, num_own: int, *, by_slice: bool) -> None:
        self._grad, self._group, self._own_sum = model.grad_arena, group, InOrder(model)
        self._buckets, self._by_slice, self._num_own = buckets_of(model), by_slice, num_own if by_slice else 1
        #: For each bucket, the piece of each process.
        self.pieces = [pieces_of(bucket.where, group.size) for bucket in self._buckets]
        # The last own gradient is sent from where it lies.
        self._sent = np.zeros((self._num_own - 1, self._grad.size), self._grad.dtype)
        #: What is received for each bucket, by row and process. With a single row, buckets share their memory.
        self._received = self._memory_of([_size(pieces[group.rank]) for pieces in self.pieces])

    def _memory_of(self, sizes: Sequence[int]) -> list[Array]:
        shape = self._num_own, self._group.size
        if self._by_slice:  # all rows of a piece are needed at once
            return [np.zeros((*shape, size), self._grad.dtype) for size in sizes]
        shared = [np.zeros(self._group.size * max(sizes), self._grad.dtype) for _ in range(NUM_UNDER_WAY)]
        return [shared[i % NUM_UNDER_WAY][: shape[1] * size].reshape(*shape, size) for i, size in enumerate(sizes)]

    def begin(self, own: Sequence[BatchPart], num_parts: int, *, whole: bool) -> None:
        """See GradientSum."""
        self._own, self._num_parts, self._whole = own, num_parts, whole
        self._own_sum.begin(own, num_parts, whole=whole)
        self._works, self._others, self._num_settled = list[Work](), list[Work](), 0
        if not own:  # it has nothing to add, and takes part all the same
            self._grad.fill(0)

    def part(self, position: int) -> Filled:
        """See GradientSum."""
        if not self._by_slice and position < len(self._own) - 1:
            return self._own_sum.part(position)
        row = position if self._by_slice else 0

        def filled(layer: int) -> None:
            done = len(self._works) - row * len(self._buckets)
            for bucket in _ready(self._buckets, done, layer):
                if self._by_slice:
                    sent = self._sent_of(row)[bucket.where]
                    np.multiply(self._grad[bucket.where], self._own[position].weight, out=sent)
                else:
                    self._own_sum.add(position, bucket.where)
                self._start()

        return filled

    def _sent_of(self, row: int) -> Array:
        """The array from which an own slice is sent."""
        return self._sent[row] if row < self._num_own - 1 else self._grad

    def _start(self) -> None:
        """Start the next exchange. On every process, all exchanges of the first own slice come before those of the
        second.
        """
        row, index = divmod(len(self._works), len(self._buckets))
        while not self._by_slice and self._num_settled <= index - NUM_UNDER_WAY:
            self._settle()
        pieces, received = self.pieces[index], self._received[index][row]
        sent = self._sent_of(row)[self._buckets[index].where]
        sizes = [_size(received_piece) for received_piece in pieces]
        count = sizes[self._group.rank]
        work = self._group.start_exchange(sent, sizes, received.reshape(-1), [count] * self._group.size)
        self._works.append(work)

    def start_rest(self) -> None:
        """See GradientSum."""
        while len(self._works) < self._num_own * len(self._buckets):
            self._start()

    def finish(self, other: Array) -> None:
        """See GradientSum."""
        self.start_rest()
        self._others.append(self._group.start_sum(other))
        while self._num_settled < len(self._buckets):
            self._settle()
        for work in self._others:
            work.wait()

    def _settle(self) -> None:
        """Wait for the next bucket, and add it up."""
        index = self._num_settled
        for work in self._works[index :: len(self._buckets)]:
            work.wait()
        pieces = self.pieces[index]
        self._add_up(index, self._grad[pieces[self._group.rank]])
        if self._whole:
            self._others += [self._group.start_broadcast(self._grad[piece], rank) for rank, piece in enumerate(pieces)]
        self._num_settled += 1

    def _add_up(self, index: int, total: Array) -> None:
        """Write the sum of all that was received for a bucket's piece, in the order of the slices."""
        received = self._received[index]
        in_order = [received[row, rank] for rank in range(self._group.size) for row in range(self._num_own)]
        if self._by_slice:  # empty slices are the last ones: nothing was received for them
            in_order = in_order[: self._num_parts]
        for block in blocks(total.size):
            np.copyto(total[block], in_order[0][block])
            for part in in_order[1:]:
                total[block] += part[block]


def pieces_of(where: slice, num_processes: int) -> list[slice]:
    """The piece of a bucket that each process adds up."""
    pieces = cut(where.stop - where.start, num_processes)
    return [slice(where.start + piece.start, where.start + piece.stop) for piece in pieces]


def _size(where: slice) -> int:
    size: int = where.stop - where.start
    return size


def _ready(buckets: Sequence[Bucket], num_started: int, layer: int) -> list[Bucket]:
    """The buckets that can be sent now that this layer has run, in their order: all processes send them in this order.
    """
    ready = []
    for bucket in buckets[num_started:]:
        if bucket.layer < layer:
            break
        ready.append(bucket)
    return ready
