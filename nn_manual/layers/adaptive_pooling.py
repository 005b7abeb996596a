"""Adaptive pooling in one, two and three dimensions: a given number of bins. What mean and maximum share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, TypeAlias

from nn_manual.arrays import Shape
from nn_manual.layers.base import Layer
from nn_manual.layers.windows import check_images, check_sizes, of_each

#: Where the bins along a dimension begin and end.
Bins: TypeAlias = list[tuple[int, int]]


class AdaptivePooling(Layer):
    """One number for each of a given number of bins, input (batch, channels, *size) to (batch, channels, *output_size).

    A size of None is the input's. Bin i of n has the numbers from floor(i size / n) up to, but without,
    ceil((i + 1) size / n): bins can overlap.
    """

    num_dims: ClassVar[int]

    output_size: int | Sequence[int | None]

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

    def bins(self, input_shape: Shape) -> list[tuple[int, Bins]]:
        """Each dimension with its bins."""
        sizes = zip(self.output_shape(input_shape)[2:], input_shape[2:], strict=True)
        return [
            (axis, [(i * size // count, -(-(i + 1) * size // count)) for i in range(count)])
            for axis, (count, size) in enumerate(sizes, start=2)
        ]
