"""Convolution: the same linear map of the window at each place of an image."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.layers.base import Layer
from nn_manual.layers.windows import Pair, Windows, pair

#: At most so many numbers of columns are in memory at a time, or those of one example: 1 MB of float32 stays in the
#: cache.
NUM_COLUMNS = 1 << 18


@dataclass(eq=False)
class Conv2d(Layer):
    """Convolution of images, input (batch, in_channels, height, width) to output (batch, out_channels, ...).

    Parameters: weight (out_channels, in_channels / groups, *kernel_size), bias (out_channels,) unless `bias` is false.
    The output's height is (height + 2 padding - dilation (kernel_size - 1) - 1) // stride + 1, and its width likewise.
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
    sum of theirs; zeros in the padding have none.

    Raises ValueError for sizes out of range, groups that don't divide both channels, an input of another shape or
    smaller than the kernel, and a gradient that is not shaped as the output.
    """

    in_channels: int
    out_channels: int
    kernel_size: Pair
    stride: Pair = 1
    padding: Pair = 0
    dilation: Pair = 1
    groups: int = 1
    bias: bool = True

    def __post_init__(self) -> None:
        for name in ("in_channels", "out_channels", "groups"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        for name in ("in_channels", "out_channels"):
            if getattr(self, name) % self.groups:
                raise ValueError(f"groups must divide {name}={getattr(self, name)}, {self.groups} doesn't")
        self.windows = Windows(self.kernel_size, self.stride, self.padding, self.dilation)

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

    def parameter_shapes(self) -> dict[str, Shape]:
        """weight (out_channels, in_channels / groups, *kernel_size), bias (out_channels,)."""
        kernel = pair(self.kernel_size)
        shapes: dict[str, Shape] = {"weight": (self.out_channels, self.in_channels // self.groups, *kernel)}
        return shapes | ({"bias": (self.out_channels,)} if self.bias else {})

    def reset_parameters(self, generator: np.random.Generator) -> None:
        """weight and bias uniform in ±1/sqrt(in_channels / groups * kernel), as torch.nn.Conv2d."""
        bound = 1 / math.sqrt(math.prod(self.param.weight.shape[1:]))
        for parameter in vars(self.param).values():
            parameter[...] = generator.uniform(-bound, bound, parameter.shape)

    def initialize(self, fill: Callable[[str], None]) -> None:
        """weight from the initializer, bias 0."""
        fill("weight")
        if self.bias:
            self.param.bias[...] = 0

    def output_shape(self, input_shape: Shape) -> Shape:
        """(batch, out_channels, *output height and width)."""
        if len(input_shape) != 4 or input_shape[1] != self.in_channels:
            raise ValueError(
                f"Conv2d takes (batch, in_channels={self.in_channels}, height, width), "
                f"the input has shape {input_shape}"
            )
        return (input_shape[0], self.out_channels, *self.windows.output_size("Conv2d", input_shape))

    def longest_sum(self, input_shape: Shape) -> int:
        """Over the batch and all places, for grad_weight and grad_bias; over a window, for the output; or over the
        output's channels and all windows that contain a number, for its gradient.
        """
        batch, _, height, width = self.output_shape(input_shape)
        of_number = self.out_channels // self.groups * self.windows.most_windows("Conv2d", input_shape)
        return max(batch * height * width, math.prod(self.parameter_shapes()["weight"][1:]), of_number)

    def num_products(self, input_shape: Shape) -> int:
        """One product of each weight for each place of each example."""
        batch, _, height, width = self.output_shape(input_shape)
        return batch * height * width * math.prod(self.parameter_shapes()["weight"])

    def forward(self, input: Array) -> tuple[Array, Array]:
        """The output. Saved is the input: its columns take more memory, and backward computes them again."""
        output = np.empty_like(input, order="C", shape=self.output_shape(input.shape))  # places is a view
        weight, places = self._grouped(self.param.weight), self._grouped_places(output)
        for part in self._parts(input.shape):
            np.matmul(weight, self._columns(input[part]), out=places[part])
        if self.bias:
            output += self.param.bias[:, np.newaxis, np.newaxis]
        return output, input

    def backward(self, saved: Array, grad_output: Array) -> Array:
        """Write grad_weight and grad_bias, return grad_input."""
        self.backward_parameters(saved, grad_output)
        grad_input = np.empty_like(saved)
        weight, grads = self._grouped(self.param.weight).mT, self._grouped_places(grad_output)
        of_window = (self.in_channels, math.prod(pair(self.kernel_size)), *grad_output.shape[2:])
        for part in self._parts(saved.shape):
            columns = (weight @ grads[part]).reshape(-1, *of_window)
            grad_input[part] = self.windows.back(np.moveaxis(columns, 2, 0), saved.shape[2:])
        return grad_input

    def backward_parameters(self, saved: Array, grad_output: Array) -> None:
        """Write grad_weight and grad_bias only."""
        input = saved
        self.check_gradient(grad_output, self.output_shape(input.shape))
        grad_weight, grads = self._grouped(self.grad.weight), self._grouped_places(grad_output)
        grad_weight[...] = 0
        for part in self._parts(input.shape):
            grad_weight += (grads[part] @ self._columns(input[part]).mT).sum(axis=0)
        if self.bias:
            np.sum(grad_output, axis=(0, 2, 3), out=self.grad.bias)

    def _columns(self, input: Array) -> Array:
        """(batch, groups, in_channels / groups * kernel, places)."""
        windows = list(self.windows.of(input))
        columns = np.stack(windows, axis=2)  # (batch, in_channels, kernel, height, width)
        of_group = self.in_channels // self.groups * len(windows)
        return columns.reshape(len(input), self.groups, of_group, math.prod(windows[0].shape[2:]))

    def _grouped(self, weight: Array) -> Array:
        """(groups, out_channels / groups, in_channels / groups * kernel), a view."""
        return weight.reshape(self.groups, self.out_channels // self.groups, -1)

    def _grouped_places(self, images: Array) -> Array:
        """(batch, groups, out_channels / groups, places)."""
        num_places = math.prod(images.shape[2:])
        return images.reshape(len(images), self.groups, self.out_channels // self.groups, num_places)

    def _parts(self, input_shape: Shape) -> Iterator[slice]:
        """Slices of the batch: the columns of each have at most NUM_COLUMNS numbers, or are those of one example."""
        size = math.prod(self.output_shape(input_shape)[2:]) * self.in_channels * math.prod(pair(self.kernel_size))
        step = max(1, NUM_COLUMNS // size)
        return (slice(start, start + step) for start in range(0, input_shape[0], step))
