"""Average pooling in one, two and three dimensions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.layers.base import Layer
from nn_manual.layers.pooling import Pooling
from nn_manual.layers.windows import Sizes, Windows, of_each


@dataclass(eq=False)
class AvgPool(Pooling):
    """The mean of each window, input (batch, channels, *size).

    A `stride` of None is the kernel's size. The frame of `padding` holds 0, which counts unless `count_include_pad` is
    false. With `ceil_mode`, the last window along a dimension may reach beyond the frame, if it begins inside of the
    image or of the frame before it: nothing there counts. `windows` has the numbers of all windows at one place of the
    window, and `count` says how many numbers of each window count, or is `divisor_override`:

        output     = the sum over the places of windows, / count
        grad_input = the sum over the places, each added where the windows have it, of grad_output / count

    Derivation: d output / d input is 1 / count for each number of the window. If windows overlap, a number lies in
    several: their gradients add. Raises ValueError for sizes out of range, padding of more than half the kernel, an
    input of another shape or smaller than the window, and a gradient that is not shaped as the output.
    """

    kernel_size: Sizes
    stride: Sizes | None = None
    padding: Sizes = 0
    ceil_mode: bool = False
    count_include_pad: bool = True

    def __post_init__(self) -> None:
        self.windows = self._windows(1)

    @property
    def divisor(self) -> int | None:
        """What the sum is divided by in the place of the count."""
        return None

    def output_shape(self, input_shape: Shape) -> Shape:
        """The channels stay; the size becomes the number of windows."""
        return self._pooled(self.windows, input_shape)

    def longest_sum(self, input_shape: Shape) -> int:  # noqa: ARG002 - whatever the shape
        """Over the numbers of a window."""
        return math.prod(self.windows.kernel)

    def forward(self, input: Array) -> tuple[Array, Shape]:
        """The output, and the input's shape, which backward needs."""
        first, *others = self.windows.of(input, self.output_shape(input.shape)[2:])
        total = first.copy()
        for window in others:
            total += window
        return total / self._count(input.shape, input.dtype), input.shape

    def backward(self, saved: Shape, grad_output: Array) -> Array:
        """Add each number's part of the gradient to its place in the image."""
        input_shape = saved
        self.check_gradient(grad_output, self.output_shape(input_shape))
        part = grad_output / self._count(input_shape, grad_output.dtype)
        return self.windows.back([part] * math.prod(self.windows.kernel), input_shape[2:])

    def _count(self, input_shape: Shape, dtype: np.dtype[np.generic]) -> Array:
        """How many numbers of each window count, one for each window or for all."""
        if self.divisor is not None:
            return np.asarray(self.divisor, dtype)
        if self.count_include_pad and not self.ceil_mode:
            return np.asarray(math.prod(self.windows.kernel), dtype)
        windows, size, num_windows = self.windows, input_shape[2:], self.output_shape(input_shape)[2:]
        if self.count_include_pad:  # the frame is a part of the image
            windows = Windows(self.num_dims, windows.kernel_size, windows.stride, 0)
            size = tuple(n + 2 * frame for n, frame in zip(size, of_each(self.padding, self.num_dims), strict=True))
        return windows.counts(size, num_windows, dtype)


@dataclass(eq=False)
class AvgPool1d(AvgPool):
    """The mean of each window of a sequence, input (batch, channels, length)."""

    num_dims = 1

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Windows side by side, windows that overlap, and both ways to count the padding and what lies beyond."""
        return [
            (cls(2), (2, 2, 4)),
            (cls([3], stride=[2], padding=1), (3, 3, 3)),
            (cls(3, stride=2, padding=1, ceil_mode=True, count_include_pad=False), (2, 2, 6)),
            (cls(4, stride=3, padding=2, ceil_mode=True), (2, 2, 5)),
        ]


@dataclass(eq=False)
class _WithDivisor(AvgPool):
    """AvgPool with torch's setting `divisor_override`. Raises ValueError for a divisor of 0, too."""

    divisor_override: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.divisor_override == 0:
            raise ValueError("divisor_override must not be 0")

    @property
    def divisor(self) -> int | None:
        """divisor_override."""
        return self.divisor_override


@dataclass(eq=False)
class AvgPool2d(_WithDivisor):
    """The mean of each window of an image, input (batch, channels, height, width)."""

    num_dims = 2

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Windows side by side, windows that overlap, both ways to count the padding, and a divisor."""
        return [
            (cls(2), (2, 2, 4, 4)),
            (cls([3, 2], stride=[2, 1], padding=1), (2, 1, 5, 4)),
            (cls(3, stride=2, padding=1, count_include_pad=False), (2, 2, 4, 3)),
            (cls([2, 3], stride=2, padding=[0, 1], ceil_mode=True), (1, 2, 3, 4)),
            (cls(2, divisor_override=3), (2, 1, 4, 2)),
        ]


@dataclass(eq=False)
class AvgPool3d(_WithDivisor):
    """The mean of each window of a volume, input (batch, channels, depth, height, width)."""

    num_dims = 3

    def output_shape(self, input_shape: Shape) -> Shape:
        """As in every average pooling. torch takes no volume smaller than the window, whatever the padding."""
        shape = super().output_shape(input_shape)
        if any(size < kernel for size, kernel in zip(input_shape[2:], self.windows.kernel, strict=True)):
            raise ValueError(
                f"AvgPool3d takes volumes of at least the window's size, kernel_size={self.kernel_size}, "
                f"the input has shape {input_shape}"
            )
        return shape

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Windows side by side, windows that overlap and reach beyond, and a divisor."""
        return [
            (cls(2), (2, 2, 2, 4, 2)),
            (cls([1, 3, 2], stride=[1, 2, 1], padding=[0, 1, 1], ceil_mode=True), (1, 2, 2, 4, 3)),
            (cls(2, stride=1, padding=1, count_include_pad=False, divisor_override=5), (1, 1, 2, 2, 3)),
        ]
