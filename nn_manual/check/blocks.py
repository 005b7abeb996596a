"""The largest difference between two large arrays, a block at a time that stays in the processor's cache.

An array of a million numbers is read from memory once. What is computed of it in passes, the difference, its largest
and its smallest number, never leaves the cache.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from nn_manual.arrays import Array

#: Elements of a block: 128 KiB in float32, so that two blocks and their difference fit into a second-level cache.
BLOCK = 1 << 15


def worst_difference(ours: Array, reference: Array) -> tuple[Any, Any]:
    """max|ours - reference| and max|reference| of two arrays of one shape with at least one element. NaN anywhere, and
    infinity in both, give NaN. Either may be transposed.
    """
    if ours.size <= BLOCK:
        return _of_block(ours, reference)
    if ours.flags.c_contiguous and reference.flags.c_contiguous:
        ours, reference = ours.reshape(-1), reference.reshape(-1)
    num_rows = BLOCK * len(ours) // ours.size
    if num_rows:
        parts = [slice(start, start + num_rows) for start in range(0, len(ours), num_rows)]
        found = [_of_block(ours[part], reference[part]) for part in parts]
    else:
        found = [worst_difference(*pair) for pair in zip(ours, reference, strict=True)]
    absolute, scale = np.max(found, axis=0)
    return absolute, scale


def _of_block(ours: Array, reference: Array) -> tuple[Any, Any]:
    if not reference.flags.c_contiguous:
        reference = np.ascontiguousarray(reference)
    difference = _scratch(np.result_type(ours, reference))[: ours.size].reshape(ours.shape)
    with np.errstate(invalid="ignore"):  # infinity - infinity, which the caller sees as NaN
        np.subtract(ours, reference, out=difference)
    # Two reductions take less time than magnitudes, which are written, and one.
    return _largest_magnitude(difference), _largest_magnitude(reference)


def _largest_magnitude(array: Array) -> Any:
    return np.maximum(array.max(), -array.min())


@functools.cache
def _scratch(dtype: np.dtype[Any]) -> Array:
    """Memory for a difference, the same each time: fresh pages would cost more than the difference."""
    return np.empty(BLOCK, dtype)
