"""Pooling: a window of an image becomes one number."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.layers.base import Layer
from nn_manual.layers.fast_forms import masked
from nn_manual.layers.windows import Pair, Windows, check_pair, pair


@dataclass(eq=False)
class MaxPool2d(Layer):
    """The largest number of each window, input (batch, channels, height, width).

    A `stride` of None is the kernel's size. The frame of `padding` holds -infinity. `windows` has the numbers of all
    windows at one place of the window, and `place` is the first place, row by row, of each window's largest number:

        output     = maximum over the places of windows
        grad_input = the sum over the places, each added where the windows have it, of where(place, grad_output, 0)

    Derivation: d output / d input is 1 for the largest number of a window and 0 for the others. If several are the
    largest, the function has a kink, and torch takes the first. A number can be the largest of several windows: their
    gradients add. Raises ValueError for sizes out of range, padding of more than half the kernel, an input of another
    shape or smaller than the window, windows that lie in the padding alone, and a gradient that is not shaped as the
    output.
    """

    kernel_size: Pair
    stride: Pair | None = None
    padding: Pair = 0
    dilation: Pair = 1

    def __post_init__(self) -> None:
        self.windows = _windows(self.kernel_size, self.stride, self.padding, self.dilation)

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Windows side by side, and windows that overlap, with padding and with dilation."""
        return [
            (cls(2), (2, 2, 4, 4)),
            (cls([3, 2], stride=[2, 1], padding=1), (2, 1, 5, 4)),
            (cls(2, stride=1, dilation=2), (2, 2, 4, 3)),
        ]

    def output_shape(self, input_shape: Shape) -> Shape:
        """The channels stay; the size becomes the number of windows."""
        shape = _pooled("MaxPool2d", self.windows, input_shape)
        self.windows.check_none_outside("MaxPool2d", input_shape)
        return shape

    def longest_sum(self, input_shape: Shape) -> int:
        """Over the windows that contain a number, for its gradient."""
        return self.windows.most_windows("MaxPool2d", input_shape)

    def forward(self, input: Array) -> tuple[Array, tuple[Array, Shape]]:
        """The output. Saved are the place of the largest number of each window, and the input's shape."""
        self.output_shape(input.shape)
        first, *others = self.windows.of(input, outside=-np.inf)
        largest, place = first.copy(), np.zeros_like(first, np.min_scalar_type(len(others)))
        for number, window in enumerate(others, start=1):
            np.copyto(place, number, where=window > largest)
            np.maximum(largest, window, out=largest)  # a NaN stays
        return largest, (place, input.shape)

    def backward(self, saved: tuple[Array, Shape], grad_output: Array) -> Array:
        """Add each gradient to the place of the window's largest number."""
        place, input_shape = saved
        self.check_gradient(grad_output, place.shape)
        places = range(math.prod(pair(self.kernel_size)))
        return self.windows.back((masked(grad_output, place == number) for number in places), input_shape[2:])


@dataclass(eq=False)
class AvgPool2d(Layer):
    """The mean of each window, input (batch, channels, height, width).

    A `stride` of None is the kernel's size. The frame of `padding` holds 0, which counts unless `count_include_pad` is
    false. `windows` has the numbers of all windows at one place of the window, and `count` says how many numbers of
    each window count:

        output     = the sum over the places of windows, / count
        grad_input = the sum over the places, each added where the windows have it, of grad_output / count

    Derivation: d output / d input is 1 / count for each number of the window. If windows overlap, a number lies in
    several: their gradients add. Raises ValueError for sizes out of range, padding of more than half the kernel, an
    input of another shape or smaller than the window, and a gradient that is not shaped as the output.
    """

    kernel_size: Pair
    stride: Pair | None = None
    padding: Pair = 0
    count_include_pad: bool = True

    def __post_init__(self) -> None:
        self.windows = _windows(self.kernel_size, self.stride, self.padding, 1)

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Windows side by side, windows that overlap, and both ways to count the padding."""
        return [
            (cls(2), (2, 2, 4, 4)),
            (cls([3, 2], stride=[2, 1], padding=1), (2, 1, 5, 4)),
            (cls(3, stride=2, padding=1, count_include_pad=False), (2, 2, 4, 3)),
        ]

    def output_shape(self, input_shape: Shape) -> Shape:
        """The channels stay; the size becomes the number of windows."""
        return _pooled("AvgPool2d", self.windows, input_shape)

    def longest_sum(self, input_shape: Shape) -> int:  # noqa: ARG002 - whatever the shape
        """Over the numbers of a window."""
        return math.prod(pair(self.kernel_size))

    def forward(self, input: Array) -> tuple[Array, Shape]:
        """The output, and the input's shape, which backward needs."""
        self.output_shape(input.shape)
        first, *others = self.windows.of(input)
        total = first.copy()
        for window in others:
            total += window
        return total / self._count(input.shape, input.dtype), input.shape

    def backward(self, saved: Shape, grad_output: Array) -> Array:
        """Add each number's part of the gradient to its place in the image."""
        input_shape = saved
        self.check_gradient(grad_output, self.output_shape(input_shape))
        part = grad_output / self._count(input_shape, grad_output.dtype)
        return self.windows.back([part] * math.prod(pair(self.kernel_size)), input_shape[2:])

    def _count(self, input_shape: Shape, dtype: np.dtype[np.generic]) -> Array:
        """How many numbers of each window count, (height, width) or a scalar."""
        if self.count_include_pad:
            return np.asarray(math.prod(pair(self.kernel_size)), dtype)
        ones = np.ones((1, 1, *input_shape[2:]), dtype)
        count: Array = np.sum(list(self.windows.of(ones)), axis=0)[0, 0]
        return count


@dataclass(eq=False)
class AdaptiveAvgPool2d(Layer):
    """Means over a given number of bins, input (batch, channels, height, width) to (batch, channels, *output_size).

    A size of None is the input's. Bin i of n has the numbers from floor(i size / n) up to, but without,
    ceil((i + 1) size / n): bins can overlap. `rows` (output height, height) is 1 / the bin's size if a row of the image
    is in the bin, and 0 elsewhere; `columns` is the same for the width:

        output     = rows @ input @ columns.T
        grad_input = rows.T @ grad_output @ columns

    Derivation: the mean over a rectangle is the mean over rows of means over columns: output[i, j] =
    sum_h sum_w rows[i, h] input[h, w] columns[j, w], so grad_input[h, w] = sum_i sum_j rows[i, h] grad_output[i, j]
    columns[j, w]. Raises ValueError for a size out of range, an input of another shape, and a gradient that is not
    shaped as the output.
    """

    output_size: int | list[int | None]

    def __post_init__(self) -> None:
        check_pair("output_size", self.output_size, least=1)

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Bins that divide the image, bins that overlap, a single one, and as many as there are columns."""
        return [
            (cls(2), (2, 2, 4, 4)),
            (cls([3, 2]), (2, 1, 4, 5)),
            (cls(1), (2, 3, 3, 2)),
            (cls([2, None]), (1, 2, 3, 3)),
        ]

    def output_shape(self, input_shape: Shape) -> Shape:
        """The channels stay."""
        if len(input_shape) != 4 or min(input_shape[2:]) < 1:
            raise ValueError(_no_images("AdaptiveAvgPool2d", input_shape))
        return (*input_shape[:2], *self._sizes(input_shape[2:]))

    def _sizes(self, image_size: Shape) -> list[int]:
        """output_size for height and width, with the image's size in place of None."""
        given = self.output_size
        sizes = [given] * 2 if isinstance(given, int) else given
        return [own if size is None else size for size, own in zip(sizes, image_size, strict=True)]

    def forward(self, input: Array) -> tuple[Array, Shape]:
        """Saves the input's shape."""
        rows, columns = self._rows_and_columns(input.shape, input.dtype)
        return rows @ input @ columns.T, input.shape

    def backward(self, saved: Shape, grad_output: Array) -> Array:
        """Give each number of a bin its part of the gradient."""
        self.check_gradient(grad_output, self.output_shape(saved))
        rows, columns = self._rows_and_columns(saved, grad_output.dtype)
        grad_input: Array = rows.T @ grad_output @ columns
        return grad_input

    def _rows_and_columns(self, input_shape: Shape, dtype: np.dtype[np.generic]) -> Iterator[Array]:
        """The two matrices of the formula."""
        sizes = zip(self.output_shape(input_shape)[2:], input_shape[2:], strict=True)
        return (_bins(num_bins, size, dtype) for num_bins, size in sizes)


def _bins(num_bins: int, size: int, dtype: np.dtype[np.generic]) -> Array:
    """(num_bins, size): 1 / the bin's size for the numbers in the bin, 0 elsewhere."""
    bins, place = np.arange(num_bins)[:, np.newaxis], np.arange(size)
    first, end = bins * size // num_bins, -(-(bins + 1) * size // num_bins)
    inside: Array = ((first <= place) & (place < end)) / (end - first)
    return inside.astype(dtype)


def _windows(kernel_size: Pair, stride: Pair | None, padding: Pair, dilation: Pair) -> Windows:
    windows = Windows(kernel_size, kernel_size if stride is None else stride, padding, dilation)
    if any(2 * frame > size for frame, size in zip(pair(padding), pair(kernel_size), strict=True)):
        raise ValueError(f"padding must be at most half of kernel_size={kernel_size}, not {padding}")
    return windows


def _pooled(name: str, windows: Windows, input_shape: Shape) -> Shape:
    if len(input_shape) != 4 or min(input_shape[1:]) < 1:
        raise ValueError(_no_images(name, input_shape))
    return (*input_shape[:2], *windows.output_size(name, input_shape))


def _no_images(name: str, input_shape: Shape) -> str:
    return f"{name} takes (batch, channels, height, width), the input has shape {input_shape}"
