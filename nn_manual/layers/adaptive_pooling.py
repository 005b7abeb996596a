"""Adaptive average pooling in one, two and three dimensions: the number of means is given."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.layers.base import Layer
from nn_manual.layers.resampling import AlongEachDimension
from nn_manual.layers.windows import check_images, check_sizes, of_each


@dataclass(eq=False)
class AdaptiveAvgPool(AlongEachDimension):
    """Means over a given number of bins, input (batch, channels, *size) to (batch, channels, *output_size).

    A size of None is the input's. Bin i of n has the numbers from floor(i size / n) up to, but without,
    ceil((i + 1) size / n): bins can overlap. The matrix of a dimension (output size, size) is 1 / the bin's size if a
    number is in the bin, and 0 elsewhere. For images it is `rows` for the height and `columns` for the width:

        output     = rows @ input @ columns.T
        grad_input = rows.T @ grad_output @ columns

    Derivation: the mean over a rectangle is the mean over rows of means over columns: output[i, j] =
    sum_h sum_w rows[i, h] input[h, w] columns[j, w], so grad_input[h, w] = sum_i sum_j rows[i, h] grad_output[i, j]
    columns[j, w]. In one and three dimensions there is one matrix less, or one more. Raises ValueError for a size out
    of range, an input of another shape, and a gradient that is not shaped as the output.
    """

    num_dims: ClassVar[int]

    output_size: int | list[int | None]

    def __post_init__(self) -> None:
        check_sizes("output_size", self.output_size, self.num_dims, least=1)

    def output_shape(self, input_shape: Shape) -> Shape:
        """The channels stay."""
        name = type(self).__name__
        check_images(name, input_shape, self.num_dims)
        if min(input_shape[2:]) < 1:
            raise ValueError(f"{name} takes images with numbers in them, the input has shape {input_shape}")
        sizes = zip(of_each(self.output_size, self.num_dims), input_shape[2:], strict=True)
        return (*input_shape[:2], *(own if size is None else size for size, own in sizes))

    def matrices(self, input_shape: Shape, dtype: np.dtype[np.generic]) -> Iterator[Array]:
        """1 / the bin's size for the numbers in the bin, 0 elsewhere."""
        for num_bins, size in zip(self.output_shape(input_shape)[2:], input_shape[2:], strict=True):
            bins, place = np.arange(num_bins)[:, np.newaxis], np.arange(size)
            first, end = bins * size // num_bins, -(-(bins + 1) * size // num_bins)
            yield (((first <= place) & (place < end)) / (end - first)).astype(dtype)


@dataclass(eq=False)
class AdaptiveAvgPool1d(AdaptiveAvgPool):
    """Means over a given number of bins, input (batch, channels, length) to (batch, channels, output_size)."""

    num_dims = 1

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Bins that divide the sequence, and bins that overlap."""
        return [(cls(2), (2, 2, 4)), (cls([3]), (2, 2, 4)), (cls(1), (3, 3, 3))]


@dataclass(eq=False)
class AdaptiveAvgPool2d(AdaptiveAvgPool):
    """Means over a given number of bins, input (batch, channels, height, width) to (batch, channels, *output_size)."""

    num_dims = 2

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

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Bins that divide the volume, bins that overlap, and as many as there are rows."""
        return [(cls(2), (2, 2, 2, 4, 4)), (cls([1, None, 2]), (1, 2, 3, 2, 3))]
