"""Convolution in one, two and three dimensions: the same linear map of the window at each place of an image."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from nn_manual.arrays import Array, Shape
from nn_manual.layers.base import Layer
from nn_manual.layers.padding import Padding
from nn_manual.layers.padding_classes import (
    CircularPad1d,
    CircularPad2d,
    CircularPad3d,
    ReflectionPad1d,
    ReflectionPad2d,
    ReflectionPad3d,
    ReplicationPad1d,
    ReplicationPad2d,
    ReplicationPad3d,
    ZeroPad1d,
    ZeroPad2d,
    ZeroPad3d,
)
from nn_manual.layers.windowed_map import WindowedMap
from nn_manual.layers.windows import Sizes, check_sizes, of_each

#: The frames of each padding_mode, in one, two and three dimensions.
FRAMES = {
    "zeros": (ZeroPad1d, ZeroPad2d, ZeroPad3d),
    "reflect": (ReflectionPad1d, ReflectionPad2d, ReflectionPad3d),
    "replicate": (ReplicationPad1d, ReplicationPad2d, ReplicationPad3d),
    "circular": (CircularPad1d, CircularPad2d, CircularPad3d),
}


@dataclass(eq=False)
class Convolution(WindowedMap):
    """Convolution of images, input (batch, in_channels, *size) to output (batch, out_channels, *output size).

    Parameters: weight (out_channels, in_channels / groups, *kernel_size), bias (out_channels,) unless `bias` is false.
    The output's size is (size + 2 padding - dilation (kernel_size - 1) - 1) // stride + 1 in each dimension. A padding
    of "valid" is 0. With "same", and a stride of 1, the output has the input's size: of an odd number of zeros, one
    more stands behind. Instead of zeros, `padding_mode` can put numbers of the image there, as ReflectionPad2d,
    ReplicationPad2d or CircularPad2d does: then `input` below is the input in this frame, and the frame takes
    grad_input back to the image.

    `columns` has one column for each place of the output, with the numbers of the window there:
    (batch, groups, in_channels / groups * kernel, places). `back` adds each number of such a column to the place in the
    input that it came from. The weight is shaped (groups, out_channels / groups, in_channels / groups * kernel), and
    `grads` is the gradient of the output, shaped (batch, groups, out_channels / groups, places):

        output      = weight @ columns(input) + bias
        grad_input  = back(weight.mT @ grads)
        grad_weight = (grads @ columns(input).mT).sum(axis=0)
        grad_bias   = grads.sum(axis=(0, 3))

    Derivation: within a group, output[n, o, p] = sum_k weight[o, k] columns[n, k, p] + bias[o]: Linear, for each
    example and place, and so are its gradients. A number of the input stands in several columns, so its gradient is the
    sum of theirs; zeros in the padding have none. These products are WindowedMap's.

    Raises ValueError for sizes out of range, groups that don't divide both channels, "same" with a stride, an input of
    another shape or smaller than the kernel, and a gradient that is not shaped as the output.
    """

    in_channels: int
    out_channels: int
    kernel_size: Sizes
    stride: Sizes = 1
    padding: Sizes | Literal["same", "valid"] = 0
    dilation: Sizes = 1
    groups: int = 1
    bias: bool = True
    padding_mode: Literal["zeros", "reflect", "replicate", "circular"] = "zeros"

    def window_padding(self) -> Sizes:
        """The padding where all sides of a dimension have as many zeros, else 0: then there is a `frame`."""
        if self.padding_mode not in FRAMES:
            raise ValueError(f"padding_mode must be one of {', '.join(FRAMES)}, not {self.padding_mode!r}")
        sides = self._sides()
        if self.padding_mode == "zeros" and all(before == behind for before, behind in sides):
            self.frame: Padding | None = None
            return [before for before, _ in sides]
        self.frame = FRAMES[self.padding_mode][self.num_dims - 1]([side for both in reversed(sides) for side in both])
        return 0

    def _sides(self) -> list[tuple[int, int]]:
        """How many numbers stand before and behind each dimension."""
        if not isinstance(self.padding, str):
            check_sizes("padding", self.padding, self.num_dims, least=0)
            return [(size, size) for size in of_each(self.padding, self.num_dims)]
        if self.padding == "valid":
            return [(0, 0)] * self.num_dims
        if self.padding != "same":
            raise ValueError(f"padding is a number, one for each dimension, same or valid, not {self.padding!r}")
        settings = {"kernel_size": self.kernel_size, "stride": self.stride, "dilation": self.dilation}
        for name, value in settings.items():
            check_sizes(name, value, self.num_dims, least=1)
        if any(stride != 1 for stride in of_each(self.stride, self.num_dims)):
            raise ValueError(f"padding is same, which takes a stride of 1, not {self.stride}")
        kernels, dilations = (of_each(value, self.num_dims) for value in (self.kernel_size, self.dilation))
        zeros = [dilation * (kernel - 1) for kernel, dilation in zip(kernels, dilations, strict=True)]
        return [(count // 2, count - count // 2) for count in zeros]

    @property
    def weight_shape(self) -> Shape:
        """(out_channels, in_channels / groups, *kernel_size)."""
        return self.out_channels, self.in_channels // self.groups, *self.windows.kernel

    def output_shape(self, input_shape: Shape) -> Shape:
        """(batch, out_channels, *output size)."""
        self._check_input(input_shape)
        size = self.windows.output_size(type(self).__name__, self._framed_shape(input_shape))
        return (input_shape[0], self.out_channels, *size)

    def _framed_shape(self, input_shape: Shape) -> Shape:
        return input_shape if self.frame is None else self.frame.output_shape(input_shape)

    def _framed(self, input: Array) -> Array:
        return input if self.frame is None else self.frame.around(input)

    def longest_sum(self, input_shape: Shape) -> int:
        """Over the batch and all places, for grad_weight and grad_bias; over a window, for the output; or over the
        output's channels and all windows that contain a number, for its gradient.
        """
        batch, _, *size = self.output_shape(input_shape)
        framed = self._framed_shape(input_shape)
        of_number = self.out_channels // self.groups * self.windows.most_windows(type(self).__name__, framed)
        return max(batch * math.prod(size), math.prod(self.weight_shape[1:]), of_number)

    def num_products(self, input_shape: Shape) -> int:
        """One product of each weight for each place of each example."""
        batch, _, *size = self.output_shape(input_shape)
        return batch * math.prod(size) * math.prod(self.weight_shape)

    def forward(self, input: Array) -> tuple[Array, Array]:
        """The output. Saved is the input: its columns take more memory, and backward computes them again."""
        output_size = self.output_shape(input.shape)[2:]
        output = self._places(self._framed(input), output_size)
        self._add_bias(output)
        return output, input

    def backward(self, saved: Array, grad_output: Array) -> Array:
        """Write grad_weight and grad_bias, return grad_input."""
        self.backward_parameters(saved, grad_output)
        grad_input = self._image(grad_output, self._framed_shape(saved.shape)[2:])
        return grad_input if self.frame is None else self.frame.back(grad_input)

    def backward_parameters(self, saved: Array, grad_output: Array) -> None:
        """Write grad_weight and grad_bias only."""
        self.check_gradient(grad_output, self.output_shape(saved.shape))
        self._write_grad_weight(self._framed(saved), grad_output)
        self._write_grad_bias(grad_output)


@dataclass(eq=False)
class Conv1d(Convolution):
    """Convolution of sequences, input (batch, in_channels, length) to output (batch, out_channels, output length)."""

    num_dims = 1

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Each setting, alone and with others, and a kernel of one number."""
        return [
            (cls(2, 3, 2), (2, 2, 4)),
            (cls(1, 2, [3], stride=[2], padding=[1]), (3, 1, 5)),
            (cls(4, 2, 2, dilation=2, groups=2, bias=False), (2, 4, 5)),
            (cls(3, 3, 1, stride=2), (3, 3, 3)),
            (cls(1, 2, 4, padding="same"), (2, 1, 5)),
            (cls(2, 3, 3, padding=2, padding_mode="reflect"), (1, 2, 3)),
        ]


@dataclass(eq=False)
class Conv2d(Convolution):
    """Convolution of images, input (batch, in_channels, height, width) to output (batch, out_channels, ...)."""

    num_dims = 2

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Each setting, alone and with others, sizes that differ, and a kernel of one number."""
        return [
            (cls(2, 3, 2), (2, 2, 4, 3)),
            (cls(1, 2, [3, 2], stride=[2, 1], padding=[1, 0]), (3, 1, 5, 4)),
            (cls(2, 2, 2, dilation=2, bias=False), (2, 2, 4, 5)),
            (cls(4, 2, 3, padding=1, groups=2), (2, 4, 3, 3)),
            (cls(3, 3, 1, stride=2), (1, 3, 3, 4)),
            (cls(2, 1, [2, 3], padding="same", padding_mode="circular"), (1, 2, 3, 4)),
            (cls(1, 2, 3, stride=2, padding=[1, 0], padding_mode="replicate"), (2, 1, 3, 3)),
        ]


@dataclass(eq=False)
class Conv3d(Convolution):
    """Convolution of volumes, input (batch, in_channels, depth, height, width) to output (batch, out_channels, ...)."""

    num_dims = 3

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Each setting, with sizes that differ."""
        return [
            (cls(2, 3, 2), (2, 2, 3, 4, 3)),
            (cls(2, 4, [1, 3, 2], stride=[1, 2, 1], padding=[0, 1, 1], groups=2), (1, 2, 2, 3, 4)),
            (cls(1, 2, 2, dilation=2, bias=False), (2, 1, 3, 3, 3)),
            (cls(1, 1, [2, 1, 2], padding="valid"), (1, 1, 2, 3, 2)),
        ]
