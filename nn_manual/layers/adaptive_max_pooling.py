"""Adaptive max pooling in one, two and three dimensions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.layers.adaptive_pooling import AdaptivePooling, Bins
from nn_manual.layers.base import Layer
from nn_manual.layers.fast_forms import masked
from nn_manual.layers.max_pooling import OfLargest
from nn_manual.layers.windows import along

#: The places of the largest numbers along each dimension, the last one first, and the shape of the input.
Saved: TypeAlias = tuple[list[Array], Shape]


class AdaptiveMaxPool(OfLargest, AdaptivePooling):
    """The largest number of each of a given number of bins, input (batch, channels, *size).

    A size of None is the input's. Bin i of n has the numbers from floor(i size / n) up to, but without,
    ceil((i + 1) size / n): bins can overlap. One dimension after the other, the last one first, where `place` says
    which number of the dimension is the first of the bin's largest:

        output     = the maximum of each bin
        grad_input = the sum over the bins that have the number, of where(place == number, grad_output, 0)

    Derivation: the maximum of a rectangle is the maximum over its rows of their maxima. Its derivative is 1 for the
    largest number and 0 for the others. If several are the largest, the function has a kink, and torch takes the first,
    row by row: it is the first one of the first row that has it. A number can be the largest of several bins: their
    gradients add. What is no number is larger than all, and the last one of several is the largest, as in torch. Raises
    ValueError for a size out of range, an input of another shape, and a gradient that is not shaped as the output.
    """

    def output_shape(self, input_shape: Shape) -> Shape:
        """As in every adaptive pooling."""
        shape = super().output_shape(input_shape)
        if not input_shape[1]:
            raise ValueError(f"{type(self).__name__} takes images with channels, the input has shape {input_shape}")
        return shape

    def longest_sum(self, input_shape: Shape) -> int:
        """Over the bins that have a number, for its gradient."""
        dimensions = self.bins(input_shape)
        places = (np.concatenate([np.arange(first, end) for first, end in bins]) for _, bins in dimensions)
        return math.prod(int(np.bincount(of_dimension).max()) for of_dimension in places)

    def forward(self, input: Array) -> tuple[Array, Saved]:
        """The output. Saved are the places of the largest numbers, and the input's shape."""
        output, places = input, []
        for axis, bins in reversed(self.bins(input.shape)):
            output, place = self._largest(output, axis, bins)
            places.append(place)
        return output, (places, input.shape)

    def backward(self, saved: Saved, grad_output: Array) -> Array:
        """Add each gradient to the place of the bin's largest number."""
        places, input_shape = saved
        self.check_gradient(grad_output, self.output_shape(input_shape))
        grad_input = grad_output
        for (axis, bins), place in zip(self.bins(input_shape), reversed(places), strict=True):
            grad_input = self._to_places(grad_input, place, axis, bins, input_shape[axis])
        return grad_input

    def _largest(self, images: Array, axis: int, bins: Bins) -> tuple[Array, Array]:
        """The largest number of each bin along an axis, and its place there."""
        shape = (*images.shape[:axis], len(bins), *images.shape[axis + 1 :])
        largest = np.empty_like(images, order="C", shape=shape)
        place = np.empty_like(images, np.min_scalar_type(images.shape[axis]), order="C", shape=shape)
        for number, (first, end) in enumerate(bins):
            of_bin = along(axis, slice(number, number + 1))
            largest[of_bin], place[of_bin] = images[along(axis, slice(first, first + 1))], first
            for at in range(first + 1, end):
                self._take_larger(largest[of_bin], place[of_bin], images[along(axis, slice(at, at + 1))], at)
        return largest, place

    def _to_places(self, grads: Array, place: Array, axis: int, bins: Bins, size: int) -> Array:
        """The gradients of the numbers along an axis, from those of the bins' largest."""
        grad_input = np.zeros_like(grads, order="C", shape=(*grads.shape[:axis], size, *grads.shape[axis + 1 :]))
        for number, (first, end) in enumerate(bins):
            of_bin = along(axis, slice(number, number + 1))
            places = np.arange(first, end).reshape(-1, *[1] * (grads.ndim - 1 - axis))
            grad_input[along(axis, slice(first, end))] += masked(grads[of_bin], place[of_bin] == places)
        return grad_input


@dataclass(eq=False)
class AdaptiveMaxPool1d(AdaptiveMaxPool):
    """The largest number of each of a given number of bins, input (batch, channels, length)."""

    num_dims = 1

    output_size: int | list[int]

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Bins that divide the sequence, so many that some have almost equal numbers, bins that overlap, and more bins
        than numbers.
        """
        return [(cls(8), (2, 16, 16)), (cls([3]), (2, 2, 4)), (cls(1), (3, 3, 3)), (cls(5), (1, 2, 3))]


@dataclass(eq=False)
class AdaptiveMaxPool2d(AdaptiveMaxPool):
    """The largest number of each of a given number of bins, input (batch, channels, height, width)."""

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
class AdaptiveMaxPool3d(AdaptiveMaxPool):
    """The largest number of each of a given number of bins, input (batch, channels, depth, height, width)."""

    num_dims = 3

    output_size: int | list[int | None]

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Bins that divide the volume, bins that overlap, and as many as there are rows."""
        return [(cls(2), (2, 2, 2, 4, 4)), (cls([1, None, 2]), (1, 2, 3, 2, 3))]
