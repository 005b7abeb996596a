"""The windows of an image as columns, and images as sums of columns."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.layers.base import Layer
from nn_manual.layers.windows import Sizes, Windows, check_images, check_sizes, of_each


class Folding(Layer):
    """A layer between images (batch, channels, height, width) and the columns of their windows (batch, channels kernel,
    windows), each of which has the numbers of a window: those of the first channel, row by row, then of the second.
    """

    kernel_size: Sizes
    dilation: Sizes
    padding: Sizes
    stride: Sizes

    def __post_init__(self) -> None:
        self.windows = Windows(2, self.kernel_size, self.stride, self.padding, self.dilation)

    @property
    def kernel(self) -> int:
        """How many numbers of a channel a window has."""
        return math.prod(self.windows.kernel)

    def num_windows(self, images_shape: Shape) -> Shape:
        """How many windows there are along height and width."""
        return self.windows.output_size(type(self).__name__, images_shape)

    def columns(self, images: Array) -> Array:
        """The columns of images."""
        num_windows = self.num_windows(images.shape)
        columns = np.stack(list(self.windows.of(images, num_windows)), axis=2)
        return columns.reshape(len(images), images.shape[1] * self.kernel, math.prod(num_windows))

    def images(self, columns: Array, size: Shape) -> Array:
        """Images of this size, in which each number of a column is added to its place."""
        channels = columns.shape[1] // self.kernel
        num_windows = self.num_windows((len(columns), channels, *size))
        parts = columns.reshape(len(columns), channels, self.kernel, *num_windows)
        return self.windows.back(np.moveaxis(parts, 2, 0), size)

    def most_windows(self, images_shape: Shape) -> int:
        """How many windows have the same number, at most."""
        return self.windows.most_windows(type(self).__name__, images_shape)


@dataclass(eq=False)
class Unfold(Folding):
    """The windows of images as columns, input (batch, channels, height, width) to (batch, channels kernel, windows).

        output     = columns(input)
        grad_input = images(grad_output)

    `columns` has a column for each window, row by row, with the window's numbers: those of the first channel, row by
    row, then of the second. `images` adds each number of a column to its place in an image. Derivation: each number of
    the output is one of the input or a 0 of the frame. A number that lies in several windows gets the sum of their
    gradients. Raises ValueError for sizes out of range, an input of another shape or smaller than the window, and a
    gradient that is not shaped as the output.
    """

    kernel_size: Sizes
    dilation: Sizes = 1
    padding: Sizes = 0
    stride: Sizes = 1

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Windows that overlap, and each setting with sizes that differ."""
        return [
            (cls(2), (2, 2, 3, 3)),
            (cls([3, 2], dilation=[1, 2], padding=[1, 0], stride=[2, 1]), (1, 2, 4, 5)),
            (cls(2, padding=1, stride=2), (2, 1, 2, 4)),
        ]

    def output_shape(self, input_shape: Shape) -> Shape:
        """(batch, channels kernel, windows)."""
        check_images("Unfold", input_shape, 2)
        if min(input_shape[1:]) < 1:
            raise ValueError(f"Unfold takes images with numbers in them, the input has shape {input_shape}")
        return input_shape[0], input_shape[1] * self.kernel, math.prod(self.num_windows(input_shape))

    def longest_sum(self, input_shape: Shape) -> int:
        """Over the windows that have a number, for its gradient."""
        return self.most_windows(input_shape)

    def forward(self, input: Array) -> tuple[Array, Shape]:
        """Saves the input's shape."""
        self.output_shape(input.shape)
        return self.columns(input), input.shape

    def backward(self, saved: Shape, grad_output: Array) -> Array:
        """Add each gradient to its number's."""
        self.check_gradient(grad_output, self.output_shape(saved))
        return self.images(grad_output, saved[2:])


@dataclass(eq=False)
class Fold(Folding):
    """Images as sums of columns, input (batch, channels kernel, windows) to (batch, channels, *output_size).

        output     = images(input)
        grad_input = columns(grad_output)

    `images` and `columns` are those of Unfold, for images of this size. Derivation: each number of the input is added
    to one of the output, or to the frame, which is cut off: so its gradient is that number's, or 0. Raises ValueError
    for sizes out of range, an input of another shape or with another number of windows than such images have, and a
    gradient that is not shaped as the output.
    """

    output_size: Sizes
    kernel_size: Sizes
    dilation: Sizes = 1
    padding: Sizes = 0
    stride: Sizes = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_sizes("output_size", self.output_size, 2, least=1)

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Windows that overlap, and each setting with sizes that differ."""
        return [
            (cls(3, 2), (2, 8, 4)),
            (cls([4, 5], [3, 2], dilation=[1, 2], padding=[1, 0], stride=[2, 1]), (1, 12, 6)),
            (cls([2, 4], 2, padding=1, stride=2), (2, 4, 6)),
        ]

    def output_shape(self, input_shape: Shape) -> Shape:
        """(batch, channels, *output_size)."""
        if len(input_shape) != 3 or not input_shape[1] or input_shape[1] % self.kernel:
            raise ValueError(
                f"Fold takes (batch, a multiple of {self.kernel} numbers, windows), the input has shape {input_shape}"
            )
        shape = (input_shape[0], input_shape[1] // self.kernel, *of_each(self.output_size, 2))
        num_windows = math.prod(self.num_windows(shape))
        if input_shape[2] != num_windows:
            raise ValueError(f"Fold takes {num_windows} windows, the input has shape {input_shape}")
        return shape

    def longest_sum(self, input_shape: Shape) -> int:
        """Over the windows that have a number."""
        return self.most_windows(self.output_shape(input_shape))

    def forward(self, input: Array) -> tuple[Array, Shape]:
        """Saves the input's shape."""
        return self.images(input, self.output_shape(input.shape)[2:]), input.shape

    def backward(self, saved: Shape, grad_output: Array) -> Array:
        """The gradient of the place of each number."""
        self.check_gradient(grad_output, self.output_shape(saved))
        return self.columns(grad_output)
