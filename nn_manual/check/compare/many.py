"""Arrays of many steps compared with torch's, a block at a time that stays in the processor's cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nn_manual.arrays import Array
from nn_manual.check.compare.blocks import BLOCK, in_order, largest_magnitudes, worst_difference

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
        self._block = np.empty(max(BLOCK, self._num_small), dtype)

    def differences(self, ours: Sequence[Array], references: Sequence[Array]) -> tuple[Array, Array]:
        """max|ours - reference| and max|reference| of each pair in each step, (steps, tensors). NaN anywhere, and
        infinity in both, give NaN.
        """
        num_steps = len(ours[0])
        absolute, scale = np.empty((2, num_steps, len(ours)), self._dtype)
        for i in self._large:
            if self._sizes[i] > BLOCK:
                found = [worst_difference(*pair) for pair in zip(ours[i], references[i], strict=True)]
                absolute[:, i], scale[:, i] = np.transpose(found)
            else:
                self._compare(*in_order(ours[i], references[i]), absolute[:, i], scale[:, i])
        if self._small:
            own, reference = (
                np.concatenate([arrays[i].reshape(num_steps, -1) for i in self._small], axis=1)
                for arrays in (ours, references)
            )
            absolute[:, self._small], scale[:, self._small] = self._compared_side_by_side(own, reference)
        return absolute, scale

    def _compare(self, ours: Array, reference: Array, absolute: Array, scale: Array) -> None:
        together = BLOCK // (ours.size // len(ours))
        for start in range(0, len(ours), together):
            steps = slice(start, start + together)
            difference, part = self._difference(ours[steps], reference[steps]), reference[steps]
            for array, largest in ((difference, absolute), (part, scale)):
                largest[steps] = largest_magnitudes(array.reshape(len(part), -1))

    def _compared_side_by_side(self, ours: Array, reference: Array) -> tuple[Array, Array]:
        together = max(1, BLOCK // self._num_small)
        found = []
        for start in range(0, len(ours), together):
            steps = slice(start, start + together)
            difference, part = self._difference(ours[steps], reference[steps]), reference[steps]
            absolute = np.maximum.reduceat(np.abs(difference, out=difference), self._starts, axis=1)
            found.append((absolute, np.maximum.reduceat(np.abs(part, out=difference), self._starts, axis=1)))
        absolute, scale = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
        return absolute, scale

    def _difference(self, ours: Array, reference: Array) -> Array:
        """ours - reference, until it is asked for the next one."""
        difference = self._block[: ours.size].reshape(ours.shape)
        with np.errstate(invalid="ignore"):  # infinity - infinity, which the caller sees as NaN
            return np.subtract(ours, reference, out=difference)
