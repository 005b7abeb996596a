"""The batches of an epoch, stacked for one call of a plan."""

from __future__ import annotations

from typing import NamedTuple

from nn_manual.arrays import Array
from nn_manual.compile.gathering import Rows
from nn_manual.data import Examples
from nn_manual.data.batches import rows


class StackedBatches(NamedTuple):
    """Batches of examples in a given order. Without an order all examples are one batch."""

    examples: Examples
    order: Array | None
    batch_size: int

    def batch(self, index: int) -> Examples:
        """The batch with this index. The last one may be smaller."""
        if self.order is None:
            return self.examples
        selection = self.order[index * self.batch_size : (index + 1) * self.batch_size]
        return Examples(*(rows(array, selection) for array in self.examples))

    def inputs(self, first: int, count: int) -> Array:
        """The inputs of `count` whole batches from the index `first` on: (count, batch, ...), contiguous."""
        return self._stack(self.examples.input, first, count)

    def targets(self, first: int, count: int) -> Array:
        """As `inputs`, the targets."""
        return self._stack(self.examples.target, first, count)

    def rows(self, first: int, count: int) -> Rows | None:
        """As `inputs`, for steps that put their batches together themselves; None without an order."""
        return None if self.order is None else Rows(self.examples.input, self._orders(self.order, first, count))

    def _stack(self, array: Array, first: int, count: int) -> Array:
        if self.order is None:
            return array[None] if array.flags.c_contiguous else array.copy()[None]
        selection = self._orders(self.order, first, count)
        stacked: Array = rows(array, selection.ravel()).reshape(*selection.shape, *array.shape[1:])
        return stacked

    def _orders(self, order: Array, first: int, count: int) -> Array:
        return order[first * self.batch_size : (first + count) * self.batch_size].reshape(count, self.batch_size)
