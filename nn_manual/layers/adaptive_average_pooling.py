"""Adaptive average pooling in one, two and three dimensions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.layers.adaptive_pooling import AdaptivePooling
from nn_manual.layers.base import Layer
from nn_manual.layers.resampling import AlongEachDimension


class AdaptiveAvgPool(AdaptivePooling, AlongEachDimension):
    """Means over a given number of bins, input (batch, channels, *size) to (batch, channels, *output_size).

    A size of None is the input's. Bin i of n has the numbers from floor(i size / n) up to, but without,
    ceil((i + 1) size / n): bins can overlap. The matrix of a dimension (output size, size) is 1 / the bin's size if a
    number is in the bin, and 0 elsewhere. For images it is `rows` for the height and `columns` for the width:

        output     = rows @ input @ columns.T
        grad_input = rows.T @ grad_output @ columns

    Derivation: the mean over a rectangle is the mean over rows of means over columns: output[i, j] =
    sum_h sum_w rows[i, h] input[h, w] columns[j, w], so grad_input[h, w] = sum_i sum_j rows[i, h] grad_output[i, j]
    columns[j, w]. In one and three dimensions there is one matrix less, or one more. 0 times infinity is not a number:
    so infinity and NaN spread over their whole row and column, and in torch over their bins alone. Products are four
    times as fast as sums over bins. Raises ValueError for a size out of range, an input of another shape, and a
    gradient that is not shaped as the output.
    """

    def matrices(self, input_shape: Shape, dtype: np.dtype[np.generic]) -> Iterator[Array]:
        """1 / the bin's size for the numbers in the bin, 0 elsewhere."""
        for axis, bins in self.bins(input_shape):
            matrix = np.zeros((len(bins), input_shape[axis]), dtype)
            for row, (first, end) in zip(matrix, bins, strict=True):
                row[first:end] = 1 / (end - first)
            yield matrix


@dataclass(eq=False)
class AdaptiveAvgPool1d(AdaptiveAvgPool):
    """Means over a given number of bins, input (batch, channels, length) to (batch, channels, output_size)."""

    num_dims = 1

    output_size: int | list[int]

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Bins that divide the sequence, and bins that overlap."""
        return [(cls(2), (2, 2, 4)), (cls([3]), (2, 2, 4)), (cls(1), (3, 3, 3))]


@dataclass(eq=False)
class AdaptiveAvgPool2d(AdaptiveAvgPool):
    """Means over a given number of bins, input (batch, channels, height, width) to (batch, channels, *output_size)."""

    num_dims = 2

    output_size: int | list[int | None]

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Bins that divide the image, bins that overlap, a single one, and as many as there are columns."""
        return [
            (cls(2), (2, 2, 4, 4)),
            (cls([3, 2]), (2, 1, 4, 5)),
            (cls(1), (2, 3, 3, 2)),
            (cls([2, None]), (1, 2, 3, 3)),
        ]


@dataclass(eq=False)
class AdaptiveAvgPool3d(AdaptiveAvgPool):
    """Means over a given number of bins, input (batch, channels, depth, height, width)."""

    num_dims = 3

    output_size: int | list[int | None]

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Bins that divide the volume, bins that overlap, and as many as there are rows."""
        return [(cls(2), (2, 2, 2, 4, 4)), (cls([1, None, 2]), (1, 2, 3, 2, 3))]
