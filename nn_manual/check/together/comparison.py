"""Arrays of many steps compared with torch's, a block at a time that stays in the processor's cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nn_manual.arrays import Array, size_of

#: Elements of a block: 128 KiB in float32, so that it and the block it is compared with fit into a second-level cache.
BLOCK = 1 << 15

#: Smaller tensors are compared side by side: each call of numpy takes longer than what there is to compare.
SMALL = 1 << 9


class StackedComparison:
    """Compares tensors of these sizes, (steps, ...) each. What it needs for a block is made once."""

    def __init__(self, sizes: Sequence[int], dtype: np.dtype[Any]) -> None:
        """The sizes are those of one step, at least 1."""
        self._sizes, self._dtype = list(sizes), dtype
        self._large = [i for i, size in enumerate(sizes) if size >= SMALL]
        self._small = [i for i, size in enumerate(sizes) if size < SMALL]
        small_sizes = [sizes[i] for i in self._small]
        self._starts = np.cumsum([0, *small_sizes])[:-1]
        self._num_small = sum(small_sizes)
        self._block = np.empty(max(BLOCK, self._num_small, *sizes), dtype)

    def differences(self, ours: Sequence[Array], references: Sequence[Array]) -> tuple[Array, Array]:
        """max|ours - reference| and max|reference| of each pair in each step, (steps, tensors). NaN anywhere, and
        infinity in both, give NaN.
        """
        num_steps = len(ours[0])
        absolute, scale = np.empty((2, num_steps, len(ours)), self._dtype)
        for i in self._large:
            if references[i].flags.c_contiguous or self._sizes[i] <= BLOCK:
                own, reference = (arrays[i].reshape(num_steps, -1) for arrays in (ours, references))
                self._compare(own, reference, absolute[:, i], scale[:, i])
            else:
                self._compare_strided(ours[i], references[i], absolute[:, i], scale[:, i])
        if self._small:
            own, reference = (
                np.concatenate([arrays[i].reshape(num_steps, -1) for i in self._small], axis=1)
                for arrays in (ours, references)
            )
            absolute[:, self._small], scale[:, self._small] = self._compared_side_by_side(own, reference)
        return absolute, scale

    def _compare(self, ours: Array, reference: Array, absolute: Array, scale: Array) -> None:
        num_steps, size = ours.shape
        if size <= BLOCK:
            together = BLOCK // size
            for start in range(0, num_steps, together):
                steps = slice(start, start + together)
                difference = self._difference(ours[steps], reference[steps])
                np.max(difference, axis=1, out=absolute[steps])
                np.max(np.abs(reference[steps], out=difference), axis=1, out=scale[steps])
            return
        for i in range(num_steps):
            found = [
                (self._difference(ours[i, block], reference[i, block]).max(), _magnitude(reference[i, block]))
                for start in range(0, size, BLOCK)
                for block in (slice(start, start + BLOCK),)
            ]
            absolute[i], scale[i] = np.max(found, axis=0)

    def _compare_strided(self, ours: Array, reference: Array, absolute: Array, scale: Array) -> None:
        """Some rows of one step at a time, made contiguous: torch's gradient of a weight is transposed."""
        num_rows = max(1, BLOCK // size_of(ours.shape[2:]))
        for i in range(len(ours)):
            found = []
            for start in range(0, ours.shape[1], num_rows):
                rows = slice(start, start + num_rows)
                contiguous = np.ascontiguousarray(reference[i, rows])
                found.append((self._difference(ours[i, rows], contiguous).max(), _magnitude(contiguous)))
            absolute[i], scale[i] = np.max(found, axis=0)

    def _compared_side_by_side(self, ours: Array, reference: Array) -> tuple[Array, Array]:
        together = max(1, BLOCK // self._num_small)
        found = []
        for start in range(0, len(ours), together):
            steps = slice(start, start + together)
            difference = self._difference(ours[steps], reference[steps])
            absolute = np.maximum.reduceat(difference, self._starts, axis=1)
            np.abs(reference[steps], out=difference)
            found.append((absolute, np.maximum.reduceat(difference, self._starts, axis=1)))
        absolute, scale = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
        return absolute, scale

    def _difference(self, ours: Array, reference: Array) -> Array:
        """|ours - reference|, until it is asked for the next one."""
        difference = self._block[: ours.size].reshape(ours.shape)
        with np.errstate(invalid="ignore"):  # infinity - infinity, which the caller sees as NaN
            np.subtract(ours, reference, out=difference)
        return np.abs(difference, out=difference)


def _magnitude(array: Array) -> Any:
    return np.maximum(array.max(), -array.min())
