"""Max pooling in one, two and three dimensions."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.layers.base import Layer
from nn_manual.layers.fast_forms import masked
from nn_manual.layers.pooling import Pooling
from nn_manual.layers.windows import Sizes


class OfLargest(Layer):
    """A layer that takes the largest of several numbers, and remembers its place."""

    def _take_larger(self, largest: Array, place: Array, numbers: Array, number: int) -> None:
        """Write those of the `numbers` to `largest` that are larger, or that are no numbers, and to `place` the
        `number` of the place that they come from, which is larger than all before. So of equal ones the first stays,
        and of those that are no numbers the last, as in torch.
        """
        takes = numbers > largest
        np.maximum(largest, numbers, out=largest)  # a NaN stays
        takes |= numbers != numbers
        np.maximum(place, takes * place.dtype.type(number), out=place)  # in half the time of copyto(where=takes)


@dataclass(eq=False)
class MaxPool(OfLargest, Pooling):
    """The largest number of each window, input (batch, channels, *size).

    A `stride` of None is the kernel's size. The frame of `padding` holds -infinity. With `ceil_mode`, the last window
    along a dimension may reach beyond the frame, if it begins inside of the image or of the frame before it. `windows`
    has the numbers of all windows at one place of the window, and `place` is the first place, row by row, of each
    window's largest number:

        output     = maximum over the places of windows
        grad_input = the sum over the places, each added where the windows have it, of where(place, grad_output, 0)

    Derivation: d output / d input is 1 for the largest number of a window and 0 for the others. If several are the
    largest, the function has a kink, and torch takes the first. A number can be the largest of several windows: their
    gradients add. What is no number is larger than all, and the last one of several is the largest, as in torch. Raises
    ValueError for sizes out of range, padding of more than half the kernel, an input of another shape or smaller than
    the window, windows that lie in the padding alone, and a gradient that is not shaped as the output.
    """

    kernel_size: Sizes
    stride: Sizes | None = None
    padding: Sizes = 0
    dilation: Sizes = 1
    ceil_mode: bool = field(default=False, kw_only=True)  # before it, torch has return_indices

    def __post_init__(self) -> None:
        self.windows = self._windows(self.dilation)

    def output_shape(self, input_shape: Shape) -> Shape:
        """The channels stay; the size becomes the number of windows."""
        shape = self._pooled(self.windows, input_shape)
        self.windows.check_none_outside(type(self).__name__, input_shape)
        return shape

    def longest_sum(self, input_shape: Shape) -> int:
        """Over the windows that contain a number, for its gradient."""
        return self.windows.most_windows(type(self).__name__, input_shape)

    def forward(self, input: Array) -> tuple[Array, tuple[Array, Shape]]:
        """The output. Saved are the place of the largest number of each window, and the input's shape."""
        num_windows = self.output_shape(input.shape)[2:]
        first, *others = self.windows.of(input, num_windows, outside=-np.inf)
        largest = first.copy()
        place = np.full_like(first, self.windows.first_inside(num_windows), np.min_scalar_type(len(others)))
        for number, window in enumerate(others, start=1):
            self._take_larger(largest, place, window, number)
        return largest, (place, input.shape)

    def backward(self, saved: tuple[Array, Shape], grad_output: Array) -> Array:
        """Add each gradient to the place of the window's largest number."""
        place, input_shape = saved
        self.check_gradient(grad_output, place.shape)
        places = range(math.prod(self.windows.kernel))
        return self.windows.back((masked(grad_output, place == number) for number in places), input_shape[2:])


@dataclass(eq=False)
class MaxPool1d(MaxPool):
    """The largest number of each window of a sequence, input (batch, channels, length)."""

    num_dims = 1

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Windows side by side, windows that overlap, with padding, with dilation, and one that reaches beyond."""
        return [
            (cls(2), (2, 2, 4)),
            (cls([3], stride=[2], padding=1), (3, 3, 3)),
            (cls(2, stride=1, dilation=2), (2, 2, 5)),
            (cls(2, ceil_mode=True), (2, 2, 5)),
        ]


@dataclass(eq=False)
class MaxPool2d(MaxPool):
    """The largest number of each window of an image, input (batch, channels, height, width)."""

    num_dims = 2

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Windows side by side, windows that overlap, with padding, with dilation, and some that reach beyond."""
        return [
            (cls(2), (2, 2, 4, 4)),
            (cls([3, 2], stride=[2, 1], padding=1), (2, 1, 5, 4)),
            (cls(2, stride=1, dilation=2), (2, 2, 4, 3)),
            (cls([2, 3], stride=[2, 2], padding=[0, 1], ceil_mode=True), (1, 2, 3, 4)),
        ]


@dataclass(eq=False)
class MaxPool3d(MaxPool):
    """The largest number of each window of a volume, input (batch, channels, depth, height, width)."""

    num_dims = 3

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Windows side by side, and windows that overlap, with padding and dilation."""
        return [
            (cls(2), (2, 2, 2, 4, 2)),
            (cls([1, 3, 2], stride=[1, 2, 1], padding=[0, 1, 0], dilation=[1, 1, 2], ceil_mode=True), (1, 2, 2, 4, 4)),
        ]
