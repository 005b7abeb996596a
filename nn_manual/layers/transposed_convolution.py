"""Transposed convolution: the map that takes a convolution's gradient back to its input, as a layer."""

from __future__ import annotations

import math
from dataclasses import dataclass

from nn_manual.arrays import Array, Shape
from nn_manual.layers.base import Layer
from nn_manual.layers.windowed_map import WindowedMap
from nn_manual.layers.windows import Sizes, check_sizes, of_each


@dataclass(eq=False)
class TransposedConvolution(WindowedMap):
    """Transposed convolution, input (batch, in_channels, *size) to output (batch, out_channels, *output size).

    Parameters: weight (in_channels, out_channels / groups, *kernel_size), bias (out_channels,) unless `bias` is false.
    The output's size is (size - 1) stride - 2 padding + dilation (kernel_size - 1) + output_padding + 1 in each
    dimension: a convolution with the same settings makes the input's size of it. `places` is the input, shaped (batch,
    groups, in_channels / groups, places), and the weight is shaped (groups, in_channels / groups, out_channels / groups
    * kernel). For each place of the input, `columns(image)` has one column with the numbers of its window in an image
    of the output's size, and `back` adds each number of such a column to its place in this image:

        output      = back(weight.mT @ places) + bias
        grad_input  = weight @ columns(grad_output)
        grad_weight = (places @ columns(grad_output).mT).sum(axis=0)
        grad_bias   = grad_output.sum(over the batch and all places)

    Derivation: in the output stands weight[i, k] input[n, i, p] at the k-th number of the window of place p, summed
    over all i, k and p that reach it. So d output / d input[n, i, p] is weight[i, k] there: the gradient of this number
    is the sum over the window's gradients, each times its weight. That of weight[i, k] is the sum over all examples and
    places of the input's number times the gradient at the k-th number of its window. This is Convolution with output
    and input exchanged.

    Raises ValueError for sizes out of range, an output_padding that isn't below stride or dilation, groups that don't
    divide both channels, an input of another shape, an output without numbers, and a gradient that is not shaped as the
    output.
    """

    in_channels: int
    out_channels: int
    kernel_size: Sizes
    stride: Sizes = 1
    padding: Sizes = 0
    output_padding: Sizes = 0
    groups: int = 1
    bias: bool = True
    dilation: Sizes = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_sizes("output_padding", self.output_padding, self.num_dims, least=0)
        each = (of_each(value, self.num_dims) for value in (self.output_padding, self.stride, self.dilation))
        if any(more >= max(stride, dilation) for more, stride, dilation in zip(*each, strict=True)):
            raise ValueError(
                f"output_padding must be below stride={self.stride} or dilation={self.dilation}, "
                f"not {self.output_padding}"
            )

    def window_padding(self) -> Sizes:
        """padding."""
        return self.padding

    @property
    def weight_shape(self) -> Shape:
        """(in_channels, out_channels / groups, *kernel_size)."""
        return self.in_channels, self.out_channels // self.groups, *self.windows.kernel

    def output_shape(self, input_shape: Shape) -> Shape:
        """(batch, out_channels, *output size)."""
        self._check_input(input_shape)
        name = type(self).__name__
        if min(input_shape[2:]) < 1:
            raise ValueError(f"{name} takes images with numbers in them, the input has shape {input_shape}")
        size = self.windows.image_size(name, input_shape, of_each(self.output_padding, self.num_dims))
        return (input_shape[0], self.out_channels, *size)

    def longest_sum(self, input_shape: Shape) -> int:
        """Over the batch and the input's places, for grad_weight, or the output's, for grad_bias; over a window, for
        grad_input; or over the input's channels and all windows that contain a number, for the output.
        """
        output_shape = self.output_shape(input_shape)
        places = input_shape[0] * math.prod((output_shape if self.bias else input_shape)[2:])
        of_number = self.in_channels // self.groups * self.windows.most_windows(type(self).__name__, output_shape)
        return max(places, math.prod(self.weight_shape[1:]), of_number)

    def num_products(self, input_shape: Shape) -> int:
        """One product of each weight for each place of each example of the input."""
        return input_shape[0] * math.prod(input_shape[2:]) * math.prod(self.weight_shape)

    def forward(self, input: Array) -> tuple[Array, Array]:
        """The output. Saved is the input."""
        output = self._image(input, self.output_shape(input.shape)[2:])
        self._add_bias(output)
        return output, input

    def backward(self, saved: Array, grad_output: Array) -> Array:
        """Write grad_weight and grad_bias, return grad_input."""
        self.backward_parameters(saved, grad_output)
        return self._places(grad_output, saved.shape[2:])

    def backward_parameters(self, saved: Array, grad_output: Array) -> None:
        """Write grad_weight and grad_bias only."""
        self.check_gradient(grad_output, self.output_shape(saved.shape))
        self._write_grad_weight(grad_output, saved)
        self._write_grad_bias(grad_output)


@dataclass(eq=False)
class ConvTranspose1d(TransposedConvolution):
    """Transposed convolution of sequences, input (batch, in_channels, length)."""

    num_dims = 1

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Each setting, alone and with others."""
        return [
            (cls(2, 3, 2), (2, 2, 4)),
            (cls(1, 2, [3], stride=[2], padding=[1], output_padding=[1]), (3, 1, 4)),
            (cls(4, 2, 2, dilation=2, groups=2, bias=False), (2, 4, 3)),
            (cls(3, 3, 1, stride=2), (3, 3, 3)),
        ]


@dataclass(eq=False)
class ConvTranspose2d(TransposedConvolution):
    """Transposed convolution of images, input (batch, in_channels, height, width)."""

    num_dims = 2

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Each setting, alone and with others, sizes that differ, and a kernel of one number."""
        return [
            (cls(2, 3, 2), (2, 2, 4, 3)),
            (cls(1, 2, [3, 2], stride=[2, 1], padding=[1, 0], output_padding=[1, 0]), (3, 1, 3, 4)),
            (cls(2, 2, 2, dilation=2, output_padding=1, bias=False), (2, 2, 3, 4)),
            (cls(4, 2, 3, stride=2, padding=1, groups=2), (2, 4, 3, 3)),
            (cls(3, 3, 1, stride=2), (1, 3, 3, 2)),
        ]


@dataclass(eq=False)
class ConvTranspose3d(TransposedConvolution):
    """Transposed convolution of volumes, input (batch, in_channels, depth, height, width)."""

    num_dims = 3

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Each setting, with sizes that differ."""
        return [
            (cls(2, 3, 2), (2, 2, 2, 3, 2)),
            (cls(2, 4, [1, 3, 2], [1, 2, 1], padding=[0, 1, 1], output_padding=[0, 1, 0], groups=2), (1, 2, 2, 2, 3)),
            (cls(1, 2, 2, dilation=2, bias=False), (2, 1, 2, 2, 2)),
        ]
