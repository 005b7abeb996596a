"""Convolution, and its transpose: the same linear map of the window at each place of an image."""

from __future__ import annotations

import math
from dataclasses import dataclass

from nn_manual.arrays import Array, Shape
from nn_manual.layers.base import Layer
from nn_manual.layers.windowed_map import WindowedMap
from nn_manual.layers.windows import Sizes


@dataclass(eq=False)
class Convolution(WindowedMap):
    """Convolution of images, input (batch, in_channels, *size) to output (batch, out_channels, *output size).

    Parameters: weight (out_channels, in_channels / groups, *kernel_size), bias (out_channels,) unless `bias` is false.
    The output's size is (size + 2 padding - dilation (kernel_size - 1) - 1) // stride + 1 in each dimension.
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

    Raises ValueError for sizes out of range, groups that don't divide both channels, an input of another shape or
    smaller than the kernel, and a gradient that is not shaped as the output.
    """

    in_channels: int
    out_channels: int
    kernel_size: Sizes
    stride: Sizes = 1
    padding: Sizes = 0
    dilation: Sizes = 1
    groups: int = 1
    bias: bool = True

    @property
    def weight_shape(self) -> Shape:
        """(out_channels, in_channels / groups, *kernel_size)."""
        return self.out_channels, self.in_channels // self.groups, *self.windows.kernel

    def output_shape(self, input_shape: Shape) -> Shape:
        """(batch, out_channels, *output size)."""
        self._check_input(input_shape)
        return (input_shape[0], self.out_channels, *self.windows.output_size(type(self).__name__, input_shape))

    def longest_sum(self, input_shape: Shape) -> int:
        """Over the batch and all places, for grad_weight and grad_bias; over a window, for the output; or over the
        output's channels and all windows that contain a number, for its gradient.
        """
        batch, _, *size = self.output_shape(input_shape)
        of_number = self.out_channels // self.groups * self.windows.most_windows(type(self).__name__, input_shape)
        return max(batch * math.prod(size), math.prod(self.weight_shape[1:]), of_number)

    def num_products(self, input_shape: Shape) -> int:
        """One product of each weight for each place of each example."""
        batch, _, *size = self.output_shape(input_shape)
        return batch * math.prod(size) * math.prod(self.weight_shape)

    def forward(self, input: Array) -> tuple[Array, Array]:
        """The output. Saved is the input: its columns take more memory, and backward computes them again."""
        output = self._places(input, self.output_shape(input.shape)[2:])
        self._add_bias(output)
        return output, input

    def backward(self, saved: Array, grad_output: Array) -> Array:
        """Write grad_weight and grad_bias, return grad_input."""
        self.backward_parameters(saved, grad_output)
        return self._image(grad_output, saved.shape[2:])

    def backward_parameters(self, saved: Array, grad_output: Array) -> None:
        """Write grad_weight and grad_bias only."""
        self.check_gradient(grad_output, self.output_shape(saved.shape))
        self._write_grad_weight(saved, grad_output)
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
        ]
