"""The batches of an epoch, several of them stacked: what one call of a plan takes."""

from __future__ import annotations

from typing import NamedTuple

from nn_manual.arrays import Array
from nn_manual.compile.gathering import Rows
from nn_manual.data import Examples
from nn_manual.data.batches import rows


class StackedBatches(NamedTuple):
    """Batches of the examples in an order; without one, they are one batch as they lie."""

    examples: Examples
    order: Array | None
    batch_size: int

    def batch(self, index: int) -> Examples:
        """One batch, by its index; the last one may be smaller."""
        if self.order is None:
            return self.examples
        selection = self.order[index * self.batch_size : (index + 1) * self.batch_size]
        return Examples(*(rows(array, selection) for array in self.examples))

    def inputs(self, first: int, count: int) -> Array:
        """Those of `count` whole batches from the index `first` on: (count, batch, ...), contiguous."""
        return self._stack(self.examples.input, first, count)

    def targets(self, first: int, count: int) -> Array:
        """As `inputs`."""
        return self._stack(self.examples.target, first, count)

    def rows(self, first: int, count: int) -> Rows | None:
        """As `inputs`, for steps that put their batches together themselves; None without an order."""
        return None if self.order is None else Rows(self.examples.input, self._orders(self.order, first, count))

    def _stack(self, array: Array, first: int, count: int) -> Array:
        if self.order is None:
            return array[None] if array.flags.c_contiguous else array.copy()[None]
        selection = self._orders(self.order, first, count)
        return rows(array, selection.ravel()).reshape(*selection.shape, *array.shape[1:])

    def _orders(self, order: Array, first: int, count: int) -> Array:
        return order[first * self.batch_size : (first + count) * self.batch_size].reshape(count, self.batch_size)
