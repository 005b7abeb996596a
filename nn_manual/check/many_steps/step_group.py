"""Steps of one plan, proven together: the ring that keeps them, and their comparison with torch."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from nn_manual.arrays import Array
from nn_manual.check.compare.threads import in_threads
from nn_manual.check.many_steps.one_layer import NoRoom
from nn_manual.check.many_steps.restored_step import Past, received
from nn_manual.check.many_steps.ring import Ring
from nn_manual.check.many_steps.ring_memory import RingMemory
from nn_manual.check.many_steps.row_comparison import RowComparison
from nn_manual.check.many_steps.thread_count import ThreadCount
from nn_manual.check.step.fast_structure import Glance
from nn_manual.check.step.plan import Plan
from nn_manual.check.twin.model import reference_settings, threads_for
from nn_manual.check.twin.optimizers import UpdateInputs

if TYPE_CHECKING:
    from nn_manual.check.whole_step.checker import GradientChecker

#: From so many parameters on, updates are proven step by step: the ring would have to keep what they made, and fewer
#: steps would fit. In the 784-128-10 net, with 101,770 parameters, updates that are proven together take 0.8 times as
#: long.
LARGE_UPDATE = 1 << 17


class StepGroup:
    """Steps of one plan: the `ring` that keeps them, and their comparison with torch on `threads` threads, or on the
    faster number of them.

    Raises CannotStack where the steps can't be proven together, NoRoom where `memory` has no room for them.
    """

    def __init__(self, checker: GradientChecker, plan: Plan, memory: RingMemory, threads: int | None = None) -> None:
        assert checker.optimizer is not None  # a trainer's checker has one
        self.optimizer, self.plan, self._checker = checker.optimizer, plan, checker
        self.proves_updates = checker.model.num_parameters < LARGE_UPDATE
        self.ring = Ring(
            plan, checker.recorded, checker.model, checker.optimizer, memory, with_updates=self.proves_updates
        )
        if not self.ring.num_steps:
            raise NoRoom(self.ring.reason)
        self.glance = Glance(plan, checker.recorded)
        #: One for each thread: the others are made when the ring is proven on several for the first time.
        self._comparisons = [RowComparison(checker, self.ring, self.ring.num_rows)]
        self._count = ThreadCount(threads)
        gets = received(plan.chain, "input", "loss.grad_prediction")
        self._grad_outputs = {item.label: names.grad_output for item, names in gets}
        self.past = Past(checker, self.ring)

    def keep_first(self, checker: GradientChecker, row: int = 0) -> bool:
        """Keep the step that the checker has just recorded by itself, if it has the form of those that wait."""
        update = checker.update
        assert update is not None  # a trainer's checker has one
        self.ring.start(row, update.start, update.num_steps)
        return self.ring.end(row, checker.recorded)

    def found(self, start: int, stop: int) -> tuple[Array, Array]:
        """What RowComparison finds of the steps in these rows of the ring. What is found of a step depends neither on
        the number of threads nor on how many steps wait.
        """
        rows, is_full = self.ring.padded(start, stop), stop - start == self.ring.num_steps
        with _reference_on_threads(), self._count.proving(is_full=is_full) as number:
            shares = list(self._shares(rows, number))
            for _ in shares[len(self._comparisons) :]:
                most = self._rows_of_share(self.ring.num_rows, number)
                self._comparisons.append(RowComparison(self._checker, self.ring, most))
            pairs = list(zip(self._comparisons, shares, strict=False))
            parts = in_threads(lambda pair: pair[0].found(pair[1]), pairs)
        wanted = slice(start - rows.start, stop - rows.start)
        absolute, scale = (np.concatenate(arrays)[wanted] for arrays in zip(*parts, strict=True))
        return absolute, scale

    def _shares(self, rows: slice, number: int) -> Iterator[slice]:
        """The rows in up to so many parts."""
        size = self._rows_of_share(rows.stop - rows.start, number)
        for start in range(rows.start, rows.stop, size):
            yield slice(start, min(start + size, rows.stop))

    def _rows_of_share(self, num_rows: int, number: int) -> int:
        """How many rows each of so many parts has: as many as torch computes at once, or a multiple of that."""
        return self.ring.multiple * -(-num_rows // (self.ring.multiple * number))

    def update_inputs(self, i: int) -> UpdateInputs:
        """The inputs of the `i`-th update, which is proven here."""
        ring = self.ring
        before = ring.before.map(lambda rows: rows[i])
        return UpdateInputs(before, ring.grad[i], ring.scheduled[i], ring.num_updates[i])

    def largest_grad_output(self, step: int, index: int) -> float:
        """max|grad_output| of the layer whose tensor is the plan's `index`-th; 0 where it has none."""
        layer = [*self.plan.forward, *self.plan.backward][index].layer
        tensor = self.ring.tensors.get(self._grad_outputs.get(layer, ""))
        return 0.0 if tensor is None else float(np.abs(tensor[step]).max())


@contextmanager
def _reference_on_threads() -> Iterator[None]:
    """The context in which several threads may compare rows: what a process has only one of is set before they begin,
    and set back when all have ended.
    """
    with threads_for(0), reference_settings(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "There is a performance drop")  # a loop over the steps is right, too
        yield
