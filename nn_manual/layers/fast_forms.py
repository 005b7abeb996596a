"""Faster forms of NumPy's operations, for several layers: the same values, in less time."""

from __future__ import annotations

import numpy as np

from nn_manual.arrays import Array, Shape

#: Integers by their size in bytes.
_INTEGERS = {size: np.dtype(f"i{size}") for size in (1, 2, 4, 8)}


def masked(array: Array, mask: Array) -> Array:
    """`np.where(mask, array, 0)` for floats, any shape: each number's bits, as an integer, times 0 or 1.

    `np.where` branches at each element, and the processor can't predict the branches: on (128, 512) float32 values with
    a random mask it takes 290 us, and this takes 23 us. A product of floats isn't the same: 0 times infinity is not a
    number.
    """
    selected: Array = (array.view(_INTEGERS[array.itemsize]) * mask).view(array.dtype)
    return selected


def rows(array: Array) -> Array:
    """`(..., features)` seen as `(rows, features)`: every leading dimension counts as batch."""
    if array.ndim == 2:  # as most are: a reshape takes longer than this test
        return array
    return array.reshape(-1, array.shape[-1])


def with_leading(by_row: Array, shape: Shape) -> Array:
    """The inverse of `rows`: `(rows, features)` with the leading dimensions of `shape`."""
    return by_row if len(shape) == 2 else by_row.reshape(*shape[:-1], by_row.shape[-1])


def sum_rows(array: Array, out: Array) -> None:
    """Write rows(array).sum(axis=0) to `out`, as a product with ones: it takes half the time and rounds less."""
    by_row = rows(array)
    np.matmul(np.ones(len(by_row), by_row.dtype), by_row, out=out)


def mean_over(array: Array, axes: int | tuple[int, ...]) -> Array:
    """array.mean(axis=axes, keepdims=True); 0 for an array without values, where nothing is computed with it."""
    mean: Array = array.mean(axis=axes, keepdims=True) if array.size else array.sum(axis=axes, keepdims=True)
    return mean
