"""Arrays of many steps compared with torch's, a block at a time that stays in the processor's cache."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nn_manual.arrays import Array

#: Elements of a block: 128 KiB in float32, so that it and the block it is compared with fit into a second-level cache.
BLOCK = 1 << 15


def stacked_differences(ours: Sequence[Array], references: Sequence[Array]) -> tuple[Array, Array]:
    """max|ours - reference| and max|reference| of each pair in each step, (steps, pairs), in the arrays' dtype. NaN
    anywhere, and infinity in both, give NaN. The arrays are (steps, ...), with at least one element in each step.
    """
    num_steps = len(ours[0])
    absolute, scale = np.empty((2, num_steps, len(ours)), np.result_type(*ours))
    for i, pair in enumerate(zip(ours, references, strict=True)):
        own, reference = (array.reshape(num_steps, -1) for array in pair)
        absolute[:, i], scale[:, i] = _differences(own, reference)
    return absolute, scale


def _differences(ours: Array, reference: Array) -> tuple[Array, Array]:
    num_steps, size = ours.shape
    if size > BLOCK:
        blocks = [slice(start, start + BLOCK) for start in range(0, size, BLOCK)]
        rows = [[_largest(ours[i, block], reference[i, block]) for block in blocks] for i in range(num_steps)]
        absolute, scale = np.array(rows).max(axis=1).T
        return absolute, scale
    together = max(1, BLOCK // size)
    blocks = [slice(start, start + together) for start in range(0, num_steps, together)]
    found = [_largest(ours[block], reference[block]) for block in blocks]
    return np.concatenate([absolute for absolute, _ in found]), np.concatenate([scale for _, scale in found])


def _largest(ours: Array, reference: Array) -> tuple[Array, Array]:
    """max|ours - reference| and max|reference| along the last axis."""
    with np.errstate(invalid="ignore"):  # infinity - infinity, which the caller sees as NaN
        difference = ours - reference
    np.abs(difference, out=difference)
    absolute = difference.max(axis=-1)
    np.abs(reference, out=difference)
    return absolute, difference.max(axis=-1)
