"""Sums over the slices of a batch: a layer that runs in one slice needs the sums of all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nn_manual.arrays import Array
from nn_manual.step.slices.cut import BatchPart
from nn_manual.step.slices.lockstep import Lockstep
from nn_manual.step.slices.process_group import ProcessGroup


class BatchStatistics:
    """What a layer in one slice of a batch shares with itself in the other slices, on this process and on others.

        begin()      a batch has been cut
        gathered()   the layer calls it in every slice, with a row of numbers; it returns all rows
        end()        no slice calls it any more: processes without a slice of this batch may go on

    A process without a slice calls `attend` after `begin`, instead of `gathered` and `end`.
    """

    def __init__(self, num_slices: int, group: ProcessGroup) -> None:
        self._num_slices, self._group = num_slices, group
        self.lockstep = Lockstep()

    def begin(self, parts: Sequence[BatchPart], own: Sequence[BatchPart]) -> None:
        """These are the batch's slices, and this process's of them."""
        self.own, self.num_parts = own, len(parts)
        self.num_rows: int = parts[-1].rows.stop
        self._sizes = [part.rows.stop - part.rows.start for part in parts]
        num_each = self._num_slices // self._group.size
        #: Whether some process has no slice: the last one.
        self._is_attended = len(parts) <= self._num_slices - num_each

    def shares(self, dtype: np.dtype[Any]) -> Array:
        """Which part of the batch's rows each slice has, (slices, 1)."""
        shares: Array = np.array(self._sizes, dtype)[:, np.newaxis] / dtype.type(self.num_rows)
        return shares

    def gathered(self, row: Array) -> Array:
        """The rows of all slices in their order, (slices, size)."""
        return self.lockstep.meet(row, self._exchange)

    def _exchange(self, rows: list[Array]) -> Array:
        table = np.zeros((self._num_slices, rows[0].size), rows[0].dtype)
        first = self.own[0].number
        table[first : first + len(rows)] += rows  # not =: a sum with zeros, as on several processes, has no -0.0
        self._announce(rows[0].size)
        self._group.start_sum(table).wait()  # one process has the numbers of a row, and the others have zeros
        return table[: self.num_parts]

    def end(self) -> None:
        """No slice calls `gathered` any more."""
        self._announce(0)

    def _announce(self, size: int) -> None:
        if self._is_attended:
            self._group.broadcast(np.array([size]), 0)

    def attend(self, dtype: np.dtype[Any]) -> None:
        """Take part, without a slice, in all that the other processes exchange."""
        size = np.zeros(1, np.int64)
        while True:
            self._group.broadcast(size, 0)
            if not size[0]:
                return
            self._group.start_sum(np.zeros((self._num_slices, int(size[0])), dtype)).wait()
