"""Fractional max pooling in two and three dimensions: windows whose distances are drawn at random."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.layers.base import Layer
from nn_manual.layers.dropout import check_mask
from nn_manual.layers.max_pooling import OfLargest
from nn_manual.layers.windows import Sizes, check_images, check_sizes, of_each
from nn_manual.layers.with_noise import LayerWithNoise
from nn_manual.streams import RowGenerator

#: Where the corner of each window lies in the flat input, the place of its largest number, and the input's shape.
Saved: TypeAlias = tuple[Array, Array, Shape]


@dataclass(eq=False)
class FractionalMaxPool(OfLargest, LayerWithNoise):
    """The largest number of each of a given number of windows, input (batch, channels, *size).

    The output's size is `output_size`, or a size of the input times `output_ratio`, rounded down. Along a dimension of
    `size` numbers, with `count` windows of `kernel` numbers, `sample` is drawn evenly between 0 and 1 in training, for
    each example, channel and dimension. So the distances between windows are drawn, and the mean distance is `step`:

        step       = (size - kernel) / (count - 1)
        first      = floor((i + sample) * step) - floor(sample * step)    of window i, and size - kernel of the last one
        output     = maximum over the places of each window
        grad_input = the sum over the windows that have the number, of where(place == number, grad_output, 0)

    where `place` is the first place, row by row, of the window's largest number. In evaluation, each `sample` is 1/2:
    torch draws there, too.

    Derivation: the windows don't depend on the input, so d output / d input is as in MaxPool2d, with its ties and its
    NaN. Source: Graham, 2014. Raises ValueError for a size or a ratio out of range, or none or both of them, for an
    input of another shape, or smaller than output_size + kernel_size - 1, which must be larger in volumes, and for a
    gradient that is not shaped as the output.
    """

    num_dims: ClassVar[int]
    #: Of each dimension, which of the samples is its own, as in torch.
    sample_of: ClassVar[tuple[int, ...]]
    #: How many numbers a dimension must have beyond those that windows at a distance of 1 need, as in torch.
    num_spare: ClassVar[int]

    kernel_size: Sizes
    output_size: Sizes | None = None
    output_ratio: float | list[float] | None = None

    def __post_init__(self) -> None:
        check_sizes("kernel_size", self.kernel_size, self.num_dims, least=1)
        self.kernel: tuple[int, ...] = of_each(self.kernel_size, self.num_dims)
        if (self.output_size is None) == (self.output_ratio is None):
            raise ValueError(
                f"output_size or output_ratio must be given, and not both: they are {self.output_size} and "
                f"{self.output_ratio}"
            )
        if self.output_size is not None:
            check_sizes("output_size", self.output_size, self.num_dims, least=1)
        elif len(self._ratios) != self.num_dims or not all(0 < ratio < 1 for ratio in self._ratios):
            raise ValueError(
                f"output_ratio must be between 0 and 1, or a list of {self.num_dims} such numbers, "
                f"not {self.output_ratio}"
            )

    @property
    def _ratios(self) -> tuple[float, ...]:
        ratio = self.output_ratio
        return tuple(ratio) if isinstance(ratio, list) else (float(ratio or 0),) * self.num_dims

    def output_shape(self, input_shape: Shape) -> Shape:
        """The channels stay; the size becomes the number of windows."""
        name, size = type(self).__name__, input_shape[2:]
        check_images(name, input_shape, self.num_dims)
        if self.output_size is not None:
            counts = of_each(self.output_size, self.num_dims)
        else:
            counts = tuple(int(number * ratio) for number, ratio in zip(size, self._ratios, strict=True))
        needed = tuple(count + kernel - 1 + self.num_spare for count, kernel in zip(counts, self.kernel, strict=True))
        has_room = all(number >= least for number, least in zip(size, needed, strict=True))
        if not (input_shape[1] and min(counts) and has_room):
            raise ValueError(
                f"{name} makes {counts} windows of {self.kernel} here: it takes images with channels, and with "
                f"{needed} numbers at least, the input has shape {input_shape}"
            )
        return (*input_shape[:2], *counts)

    def longest_sum(self, input_shape: Shape) -> int:
        """Over the windows that have a number, for its gradient: at most as many as begin at one of its neighbours."""
        counts = self.output_shape(input_shape)[2:]
        return math.prod(min(pair) for pair in zip(self.kernel, counts, strict=True))

    def noise_shapes(self, input_shape: Shape) -> dict[str, Shape]:
        """samples (batch, channels, num_dims)."""
        return {"samples": (*self.output_shape(input_shape)[:2], self.num_dims)}

    def draw_noise(self, generator: RowGenerator) -> None:
        """Fill the samples."""
        self.noise.samples[...] = generator.random(self.noise.samples.shape)

    def forward(self, input: Array) -> tuple[Array, Saved]:
        """The output. Saved are the windows' corners, the places of the largest numbers, and the input's shape."""
        self.output_shape(input.shape)
        check_mask(self, input.shape, "samples")
        corner = self._corners(input.shape, self.noise.samples)
        largest, place = self._largest(input, corner)
        return largest, (corner, place, input.shape)

    def infer(self, input: Array) -> Array:
        """With the middle of what is drawn."""
        samples = np.full_like(input, 0.5, order="C", shape=self.noise_shapes(input.shape)["samples"])
        return self._largest(input, self._corners(input.shape, samples))[0]

    def backward(self, saved: Saved, grad_output: Array) -> Array:
        """Add each gradient to the place of the window's largest number."""
        corner, place, input_shape = saved
        self.check_gradient(grad_output, place.shape)
        at = corner + np.array(self._offsets(input_shape), like=corner)[place.astype(np.int64)]
        grad_input = np.zeros_like(grad_output, order="C", shape=math.prod(input_shape))
        np.add.at(grad_input, at.ravel(), grad_output.ravel())
        return grad_input.reshape(input_shape)

    def _largest(self, input: Array, corner: Array) -> tuple[Array, Array]:
        """The largest number of each window, and its place in the window."""
        flat, offsets = input.ravel(), self._offsets(input.shape)
        largest = flat.take(corner)
        place = np.zeros_like(corner, np.min_scalar_type(len(offsets)))
        for number, offset in enumerate(offsets[1:], start=1):
            self._take_larger(largest, place, flat.take(corner + offset), number)
        return largest, place

    def _corners(self, input_shape: Shape, samples: Array) -> Array:
        """The index in the flat input of each window's first number, (batch, channels, *counts)."""
        size, counts = input_shape[2:], self.output_shape(input_shape)[2:]
        corner = np.arange(0, math.prod(input_shape), max(1, math.prod(size)))  # of each image: the last axis
        for axis in range(self.num_dims):
            sample = samples[:, :, self.sample_of[axis]].ravel()
            first = self._first(sample, size[axis] - self.kernel[axis], counts[axis])
            behind = self.num_dims - 1 - axis
            corner = corner + first.reshape(counts[axis], *[1] * behind, -1) * math.prod(size[axis + 1 :])
        return np.moveaxis(corner, -1, 0).reshape(*input_shape[:2], *counts)

    def _first(self, sample: Array, last: int, count: int) -> Array:
        """The first number of each window along a dimension, (count, images), of samples (images,) in their dtype, as
        torch. The last window ends with the image.
        """
        step = sample.dtype.type(last) / sample.dtype.type(max(1, count - 1))
        number = np.arange(count, dtype=sample.dtype)[:, np.newaxis]
        # A floor is how many whole numbers are reached, of those from 1 on; a plan makes no integer of a float, and
        # unroll shows no array without elements, which these may be up to last.
        whole = np.arange(1, last + 2, dtype=sample.dtype)
        reached = ((number + sample) * step)[:, :, np.newaxis] >= whole
        drawn = reached.sum(axis=-1) - ((sample * step)[:, np.newaxis] >= whole).sum(axis=-1)
        first: Array = np.where(number == count - 1, last, drawn)
        return first

    def _offsets(self, input_shape: Shape) -> list[int]:
        """How far the numbers of a window lie behind its first one in the flat input, row by row."""
        strides = [math.prod(input_shape[axis + 1 :]) for axis in range(2, len(input_shape))]
        places = np.indices(self.kernel).reshape(self.num_dims, -1)
        offsets: list[int] = (np.array(strides) @ places).tolist()
        return offsets


@dataclass(eq=False)
class FractionalMaxPool2d(FractionalMaxPool):
    """The largest number of each of a given number of windows of an image, input (batch, channels, height, width)."""

    num_dims = 2
    sample_of = (1, 0)
    num_spare = 0

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """A size for both dimensions, one for each, a ratio, windows that overlap, and a single window."""
        return [
            (cls(2, 3), (2, 2, 5, 7)),
            (cls([2, 3], [4, 3]), (2, 1, 7, 6)),
            (cls(2, output_ratio=0.5), (2, 3, 5, 7)),
            (cls(3, output_ratio=[0.7, 0.3]), (3, 1, 6, 5)),
            (cls([1, 2], 1), (2, 2, 3, 2)),
        ]


@dataclass(eq=False)
class FractionalMaxPool3d(FractionalMaxPool):
    """The largest number of each of a given number of windows of a volume, input (batch, channels, depth, height,
    width).
    """

    num_dims = 3
    sample_of = (0, 1, 2)
    num_spare = 1

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """A size for each dimension, and a ratio."""
        return [(cls([2, 1, 3], [2, 3, 1]), (2, 2, 4, 4, 4)), (cls(2, output_ratio=0.6), (2, 1, 3, 5, 4))]
