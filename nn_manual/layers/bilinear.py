"""Bilinear: a linear map of all products of two features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nn_manual.arrays import Array, Shape, size_of
from nn_manual.layers.base import Layer
from nn_manual.layers.fast_forms import rows, sum_rows, with_leading


@dataclass(eq=False)
class Bilinear(Layer):
    """Bilinear map of an input with itself, input (..., in1_features) to output (..., out_features).

    Parameters: weight (out_features, in1_features, in2_features), bias (out_features,) unless `bias` is false. It is
    torch.nn.Bilinear of one array twice, so in1_features and in2_features are the same number. All leading dimensions
    count as batch; `rows` makes one dimension of them.

        by_row      = rows(input)
        grads       = rows(grad_output)
        products    = (by_row[:, :, newaxis] * by_row[:, newaxis, :]).reshape(len(by_row), -1)
        matrix      = weight.reshape(out_features, -1)
        output      = (products @ matrix.T + bias).reshape(output_shape)
        mixed       = (grads @ matrix).reshape(len(by_row), in1_features, in2_features)
        grad_input  = ((mixed + mixed.mT) @ by_row[:, :, newaxis]).reshape(input_shape)
        grad_weight = (grads.T @ products).reshape(weight.shape)
        grad_bias   = grads.sum(axis=0)

    Derivation: output[n, o] = sum_ij input[n, i] weight[o, i, j] input[n, j] + bias[o] is the Linear of the products
    input[n, i] input[n, j], whose gradient is mixed[n, i, j] = sum_o grad_output[n, o] weight[o, i, j]. A feature
    k is the first factor of the products (k, j) and the second of (i, k), so grad_input[n, k] = sum_j mixed[n, k, j]
    input[n, j] + sum_i mixed[n, i, k] input[n, i].

    Raises ValueError for sizes below 1 or two different ones, for an input whose last dimension is another, and for a
    gradient that is not shaped as the output.
    """

    in1_features: int
    in2_features: int
    out_features: int
    bias: bool = True

    def __post_init__(self) -> None:
        for name in ("in1_features", "in2_features", "out_features"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.in2_features != self.in1_features:
            raise ValueError(
                f"in2_features must be in1_features={self.in1_features}, since it is the same input, "
                f"not {self.in2_features}"
            )

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """With and without bias, with two leading dimensions, of one feature, and all square."""
        return [
            (cls(3, 3, 2), (4, 3)),
            (cls(2, 2, 3, bias=False), (4, 2)),
            (cls(1, 1, 2), (2, 3, 1)),
            (cls(3, 3, 3), (3, 3)),
        ]

    def parameter_shapes(self) -> dict[str, Shape]:
        """weight (out_features, in1_features, in2_features), bias (out_features,)."""
        shapes: dict[str, Shape] = {"weight": (self.out_features, self.in1_features, self.in2_features)}
        return shapes | ({"bias": (self.out_features,)} if self.bias else {})

    def reset_parameters(self, generator: np.random.Generator) -> None:
        """weight and bias uniform in ±1/sqrt(in1_features), as torch.nn.Bilinear."""
        self.fill_uniformly(self.in1_features, generator)

    def initialize(self, fill: Callable[[str], None]) -> None:
        """weight from the initializer, bias 0."""
        fill("weight")
        if self.bias:
            self.param.bias[...] = 0

    def output_shape(self, input_shape: Shape) -> Shape:
        """(..., in1_features) to (..., out_features)."""
        if input_shape[-1:] != (self.in1_features,):
            raise ValueError(
                f"Bilinear takes in1_features={self.in1_features} in the last dimension, "
                f"the input has shape {input_shape}"
            )
        return (*input_shape[:-1], self.out_features)

    def num_products(self, input_shape: Shape) -> int:
        """The products of the features, and one of each weight, for each row."""
        return size_of(input_shape[:-1]) * self.in1_features * self.in2_features * (1 + self.out_features)

    def longest_sum(self, input_shape: Shape) -> int:
        """Over the products of a row, over the batch, or over the outputs and the pairs that a feature is in."""
        num_products = self.in1_features * self.in2_features
        return max(num_products, size_of(input_shape[:-1]), 2 * self.in1_features * self.out_features)

    def forward(self, input: Array) -> tuple[Array, Array]:
        """The output; saves the input."""
        self.output_shape(input.shape)
        output = self._products(input) @ self._matrix(self.param.weight).T
        if self.bias:
            output += self.param.bias
        return with_leading(output, input.shape), input

    def backward(self, saved: Array, grad_output: Array) -> Array:
        """Write grad_weight and grad_bias, return grad_input."""
        self.backward_parameters(saved, grad_output)
        mixed = (rows(grad_output) @ self._matrix(self.param.weight)).reshape(-1, *self.param.weight.shape[1:])
        grad_input: Array = ((mixed + mixed.mT) @ rows(saved)[:, :, np.newaxis])[:, :, 0]
        return with_leading(grad_input, saved.shape)

    def backward_parameters(self, saved: Array, grad_output: Array) -> None:
        """Write grad_weight and grad_bias only."""
        self.check_gradient(grad_output, self.output_shape(saved.shape))
        np.matmul(rows(grad_output).T, self._products(saved), out=self._matrix(self.grad.weight))
        if self.bias:
            sum_rows(grad_output, out=self.grad.bias)

    def _products(self, input: Array) -> Array:
        """Each feature of a row times each other one, (rows, in1_features * in2_features)."""
        by_row = rows(input)
        products: Array = by_row[:, :, np.newaxis] * by_row[:, np.newaxis, :]
        return products.reshape(len(by_row), self.in1_features * self.in2_features)

    def _matrix(self, weight: Array) -> Array:
        """A view, (out_features, in1_features * in2_features)."""
        return weight.reshape(len(weight), self.in1_features * self.in2_features)
