"""Power-average pooling in one, two and three dimensions: the norm of a window's numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.layers.base import Layer
from nn_manual.layers.fast_forms import masked
from nn_manual.layers.pooling import Pooling
from nn_manual.layers.windows import Sizes


@dataclass(eq=False)
class LPPool(Pooling):
    """The norm of each window, input (batch, channels, *size).

    A `stride` of None is the kernel's size. With `ceil_mode`, the last window along a dimension may reach beyond the
    image, if it begins inside. `windows` has the numbers of all windows at one place of the window, p is `norm_type`,
    and `scale` is the window's size by how many of its numbers lie in the image, as in torch:

        output     = (scale * the sum over the places of windows**p)**(1 / p)
        grad_input = the sum over the places, each added where the windows have it, of
                     where(output == 0, 0, scale * grad_output * (windows / output)**(p - 1))

    Derivation: with t = output**p, d output / d t = output**(1 - p) / p, and d t / d number = scale p number**(p - 1).
    If windows overlap, a number lies in several: their gradients add. Where the sum is 0, torch takes 0. With
    another p than 1 and the even ones, the numbers must be positive: a negative one has no such power, or its sum no
    root. Both are NaN. Raises ValueError for a p that isn't above 0 and finite, for sizes out of range, an input of
    another shape or smaller than the window, and a gradient that is not shaped as the output.
    """

    padding = 0

    norm_type: float
    kernel_size: Sizes
    stride: Sizes | None = None
    ceil_mode: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.norm_type < math.inf:
            raise ValueError(f"norm_type must be above 0 and finite, not {self.norm_type}")
        if self.norm_type != 1 and self.norm_type % 2:
            self.domain = "positive"
        self.windows = self._windows(1)

    def output_shape(self, input_shape: Shape) -> Shape:
        """The channels stay; the size becomes the number of windows."""
        return self._pooled(self.windows, input_shape)

    def longest_sum(self, input_shape: Shape) -> int:
        """Over the numbers of a window, or over the windows that have a number, for its gradient."""
        return max(math.prod(self.windows.kernel), self.windows.most_windows(type(self).__name__, input_shape))

    def forward(self, input: Array) -> tuple[Array, tuple[Array, Array]]:
        """The output, which backward needs, too, with the input."""
        num_windows = self.output_shape(input.shape)[2:]
        first, *others = self.windows.of(input, num_windows)
        total = first**self.norm_type
        for window in others:
            total += window**self.norm_type
        output: Array = (total * self._scale(input)) ** (1 / self.norm_type)
        return output, (input, output)

    def backward(self, saved: tuple[Array, Array], grad_output: Array) -> Array:
        """Add each number's part of the gradient to its place in the image."""
        input, output = saved
        self.check_gradient(grad_output, output.shape)
        has_slope = output != 0
        part, norm = masked(grad_output * self._scale(input), has_slope), np.where(has_slope, output, 1)
        windows = self.windows.of(input, output.shape[2:])
        return self.windows.back((part * (each / norm) ** (self.norm_type - 1) for each in windows), input.shape[2:])

    def _scale(self, input: Array) -> Array:
        """The size of a window by how many of its numbers lie in the image."""
        size = np.asarray(math.prod(self.windows.kernel), input.dtype)
        if not self.ceil_mode:
            return np.ones_like(size)
        scale: Array = size / self.windows.counts(input.shape[2:], self.output_shape(input.shape)[2:], input.dtype)
        return scale


@dataclass(eq=False)
class LPPool1d(LPPool):
    """The norm of each window of a sequence, input (batch, channels, length)."""

    num_dims = 1

    kernel_size: int  # torch takes no list here

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Windows side by side, windows that overlap, one that reaches beyond, and the sum."""
        return [
            (cls(2, 2), (2, 2, 4)),
            (cls(4, 2, stride=[1]), (3, 3, 3)),
            (cls(2, 2, ceil_mode=True), (2, 2, 5)),
            (cls(1, 3), (1, 2, 3)),
        ]


@dataclass(eq=False)
class LPPool2d(LPPool):
    """The norm of each window of an image, input (batch, channels, height, width)."""

    num_dims = 2

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Windows side by side, windows that overlap, some that reach beyond, and the sum."""
        return [
            (cls(2, 2), (2, 2, 4, 4)),
            (cls(4, [3, 2], stride=[2, 1]), (2, 1, 5, 4)),
            (cls(2, [2, 3], stride=2, ceil_mode=True), (1, 2, 3, 4)),
            (cls(1, 2), (1, 1, 2, 4)),
        ]


@dataclass(eq=False)
class LPPool3d(LPPool):
    """The norm of each window of a volume, input (batch, channels, depth, height, width)."""

    num_dims = 3

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Windows side by side, and windows that overlap."""
        return [(cls(2, 2), (2, 2, 2, 4, 2)), (cls(4, [1, 3, 2], stride=[1, 2, 1]), (1, 2, 2, 4, 4))]
