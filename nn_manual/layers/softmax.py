"""Softmax and its relatives: numbers become probabilities, or logarithms of probabilities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.layers.base import Layer
from nn_manual.layers.windows import check_images


@dataclass(eq=False)
class AlongDimension(Layer):
    """A function of the numbers along dimension `dim`, which keeps the shape."""

    dim: int

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """The last dimension, another one, and a square shape."""
        return [(cls(-1), (4, 3)), (cls(1), (2, 3, 4)), (cls(-1), (3, 3))]

    def output_shape(self, input_shape: Shape) -> Shape:
        """The input's shape."""
        num_dims = max(1, len(input_shape))  # as in torch: a number alone is a vector of one
        if not -num_dims <= self.dim < num_dims:
            name = type(self).__name__
            raise ValueError(f"{name} runs along dimension {self.dim}, the input has shape {input_shape}")
        return input_shape

    def longest_sum(self, input_shape: Shape) -> int:
        """Over dimension `dim`."""
        return input_shape[self.dim] if input_shape else 1


class OfShares(Layer):
    """Softmax along dimension `dim`: its formulas are in the docstrings of the classes."""

    dim: int

    def forward(self, input: Array) -> tuple[Array, Array]:
        """The output, which is also what backward needs."""
        self.output_shape(input.shape)
        exponential = np.exp(input - largest(input, self.dim))
        output: Array = exponential / total(exponential, self.dim)
        return output, output

    def backward(self, saved: Array, grad_output: Array) -> Array:
        """The gradient minus its mean, weighted by the output, times the output."""
        output = saved
        self.check_gradient(grad_output, output.shape)
        grad_input: Array = output * (grad_output - total(grad_output * output, self.dim))
        return grad_input


@dataclass(eq=False)
class Softmax(OfShares, AlongDimension):
    """Softmax along dimension `dim`, any shape: numbers above 0 that add up to 1.

        exponential = exp(input - input.max(axis=dim, keepdims=True))
        output      = exponential / exponential.sum(axis=dim, keepdims=True)
        grad_input  = output * (grad_output - (grad_output * output).sum(axis=dim, keepdims=True))

    Derivation: with y = exp(x) / s and s the sum of all exp(x[k]), d y[i] / d x[j] = y[i] [i = j] - y[i] y[j] by the
    quotient rule. So sum_i g[i] d y[i] / d x[j] = y[j] (g[j] - sum_i g[i] y[i]). The maximum is subtracted from all, so
    no exponential overflows; this changes no quotient.
    Raises ValueError for a dimension that the input doesn't have, and for a gradient that is not shaped as the output.
    """


@dataclass(eq=False)
class Softmax2d(OfShares):
    """Softmax over the channels of images, input (batch, channels, height, width): at each place they add up to 1.

        exponential = exp(input - input.max(axis=1, keepdims=True))
        output      = exponential / exponential.sum(axis=1, keepdims=True)
        grad_input  = output * (grad_output - (grad_output * output).sum(axis=1, keepdims=True))

    Derivation: as Softmax's, along dimension 1. Raises ValueError for an input of another shape, and for a gradient
    that is not shaped as the output.
    """

    dim = 1

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Two images, and all square."""
        return [(cls(), (2, 3, 2, 4)), (cls(), (3, 3, 3, 3))]

    def output_shape(self, input_shape: Shape) -> Shape:
        """The input's shape."""
        check_images("Softmax2d", input_shape, 2)
        return input_shape

    def longest_sum(self, input_shape: Shape) -> int:
        """Over the channels."""
        return input_shape[1]


@dataclass(eq=False)
class Softmin(AlongDimension):
    """Softmax of the negative numbers along dimension `dim`, any shape: the smallest number has the largest share.

        exponential = exp(input.min(axis=dim, keepdims=True) - input)
        output      = exponential / exponential.sum(axis=dim, keepdims=True)
        grad_input  = output * ((grad_output * output).sum(axis=dim, keepdims=True) - grad_output)

    Derivation: as Softmax's, of -input; the derivative of -input is -1, which swaps the two terms.
    Raises ValueError for a dimension that the input doesn't have, and for a gradient that is not shaped as the output.
    """

    def forward(self, input: Array) -> tuple[Array, Array]:
        """The output, which is also what backward needs."""
        self.output_shape(input.shape)
        exponential = np.exp(smallest(input, self.dim) - input)
        output: Array = exponential / total(exponential, self.dim)
        return output, output

    def backward(self, saved: Array, grad_output: Array) -> Array:
        """The gradient's mean, weighted by the output, minus the gradient, times the output."""
        output = saved
        self.check_gradient(grad_output, output.shape)
        grad_input: Array = output * (total(grad_output * output, self.dim) - grad_output)
        return grad_input


@dataclass(eq=False)
class LogSoftmax(AlongDimension):
    """Logarithm of Softmax along dimension `dim`, any shape: the exponentials add up to 1.

        shifted    = input - input.max(axis=dim, keepdims=True)
        output     = shifted - log(exp(shifted).sum(axis=dim, keepdims=True))
        grad_input = grad_output - exp(output) * grad_output.sum(axis=dim, keepdims=True)

    Derivation: y[i] = x[i] - log(sum_k exp(x[k])), so d y[i] / d x[j] = [i = j] - exp(x[j]) / sum_k exp(x[k])
    = [i = j] - exp(y[j]), and sum_i g[i] d y[i] / d x[j] = g[j] - exp(y[j]) sum_i g[i]. The maximum is subtracted from
    all, so no exponential overflows; this changes no y.
    Raises ValueError for a dimension that the input doesn't have, and for a gradient that is not shaped as the output.
    """

    def forward(self, input: Array) -> tuple[Array, Array]:
        """The output, which is also what backward needs."""
        self.output_shape(input.shape)
        shifted = input - largest(input, self.dim)
        with np.errstate(divide="ignore"):  # without elements, the logarithm of 0 is subtracted from none
            output: Array = shifted - np.log(total(np.exp(shifted), self.dim))
        return output, output

    def backward(self, saved: Array, grad_output: Array) -> Array:
        """The gradient minus each probability's share of its sum."""
        output = saved
        self.check_gradient(grad_output, output.shape)
        grad_input: Array = grad_output - np.exp(output) * total(grad_output, self.dim)
        return grad_input


def largest(array: Array, dim: int) -> Array:
    """array.max(axis=dim, keepdims=True); the array itself where it has no elements or no dimensions."""
    return array.max(axis=dim, keepdims=True) if array.size and array.ndim else array


def smallest(array: Array, dim: int) -> Array:
    """array.min(axis=dim, keepdims=True); the array itself where it has no elements or no dimensions."""
    return array.min(axis=dim, keepdims=True) if array.size and array.ndim else array


def total(array: Array, dim: int) -> Array:
    """array.sum(axis=dim, keepdims=True); the array itself where it has no dimensions."""
    return array.sum(axis=dim, keepdims=True) if array.ndim else array
