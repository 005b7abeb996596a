"""The largest difference between two large arrays, a block at a time that stays in the processor's cache.

An array of a million numbers is read from memory once. The passes over it, for the difference and its largest and
smallest number, never leave the cache.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from nn_manual.arrays import Array

#: Elements of a block: 512 KiB in float32. With smaller ones, the calls of numpy take longer than the cache saves: with
#: a quarter of the size, the checked step of the 784-128-10 net takes 1.07 times as long.
BLOCK = 1 << 17


def worst_difference(ours: Array, reference: Array) -> tuple[Any, Any]:
    """max|ours - reference| and max|reference| of two arrays of one shape with at least one element. NaN anywhere, and
    infinity in both, give NaN. Either may be transposed.
    """
    ours, reference = in_order(ours, reference)
    with np.errstate(invalid="ignore"):  # infinity - infinity, which the caller sees as NaN
        return _worst_difference(ours, reference)


def in_order(ours: Array, reference: Array) -> tuple[Array, Array]:
    """Both with their last two axes exchanged, if the reference lies in memory in that order, as torch's gradients of
    weights do: it is read as it lies.
    """
    if reference.ndim > 1 and not reference.flags.c_contiguous and reference.mT.flags.c_contiguous:
        return ours.mT, reference.mT
    return ours, reference


def largest_magnitudes(rows: Array) -> Array:
    """max|number| of each row of (rows, numbers). Two reductions take less time than one over magnitudes, which would
    be written first.
    """
    largest: Array = np.maximum(np.maximum.reduce(rows, axis=1), -np.minimum.reduce(rows, axis=1))
    return largest


def _worst_difference(ours: Array, reference: Array) -> tuple[Any, Any]:
    if ours.size <= BLOCK:
        return _of_block(ours, reference)
    if ours.flags.c_contiguous and reference.flags.c_contiguous:
        ours, reference = ours.reshape(-1), reference.reshape(-1)
    num_rows = BLOCK * len(ours) // ours.size
    if num_rows:
        parts = [slice(start, start + num_rows) for start in range(0, len(ours), num_rows)]
        found = [_of_block(ours[part], reference[part]) for part in parts]
    else:
        found = [_worst_difference(*pair) for pair in zip(ours, reference, strict=True)]
    absolute, scale = np.max(found, axis=0)
    return absolute, scale


def _of_block(ours: Array, reference: Array) -> tuple[Any, Any]:
    if not reference.flags.c_contiguous:
        reference = np.ascontiguousarray(reference)
    difference = scratch(np.result_type(ours, reference))[: ours.size].reshape(ours.shape)
    np.subtract(ours, reference, out=difference)
    absolute, scale = (largest_magnitudes(array.reshape(1, -1)) for array in (difference, reference))
    return absolute[0], scale[0]


@functools.cache
def scratch(dtype: np.dtype[Any]) -> Array:
    """Memory for a difference, the same each time: fresh pages would cost more than the difference."""
    return np.empty(BLOCK, dtype)
