"""Softmax: numbers become probabilities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.layers.base import Layer


@dataclass(eq=False)
class Softmax(Layer):
    """Softmax along dimension `dim`, any shape: numbers above 0 that add up to 1.

        exponential = exp(input - input.max(axis=dim, keepdims=True))
        output      = exponential / exponential.sum(axis=dim, keepdims=True)
        grad_input  = output * (grad_output - (grad_output * output).sum(axis=dim, keepdims=True))

    Derivation: with y = exp(x) / s and s the sum of all exp(x[k]), d y[i] / d x[j] = y[i] [i = j] - y[i] y[j] by the
    quotient rule. So sum_i g[i] d y[i] / d x[j] = y[j] (g[j] - sum_i g[i] y[i]). The maximum is subtracted from all, so
    no exponential overflows; this changes no quotient.
    Raises ValueError for a dimension that the input doesn't have, and for a gradient that is not shaped as the output.
    """

    dim: int

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """The last dimension, another one, and a square shape."""
        return [(cls(-1), (4, 3)), (cls(1), (2, 3, 4)), (cls(-1), (3, 3))]

    def output_shape(self, input_shape: Shape) -> Shape:
        """The input's shape."""
        num_dims = max(1, len(input_shape))  # as in torch: a number alone is a vector of one
        if not -num_dims <= self.dim < num_dims:
            raise ValueError(f"Softmax runs along dimension {self.dim}, the input has shape {input_shape}")
        return input_shape

    def longest_sum(self, input_shape: Shape) -> int:
        """Over dimension `dim`."""
        return input_shape[self.dim] if input_shape else 1

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


def largest(array: Array, dim: int) -> Array:
    """array.max(axis=dim, keepdims=True); the array itself where it has no elements or no dimensions."""
    return array.max(axis=dim, keepdims=True) if array.size and array.ndim else array


def total(array: Array, dim: int) -> Array:
    """array.sum(axis=dim, keepdims=True); the array itself where it has no dimensions."""
    return array.sum(axis=dim, keepdims=True) if array.ndim else array
