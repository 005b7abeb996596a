"""Linear: the affine map."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nn_manual.arrays import Array, Shape, size_of
from nn_manual.layers.base import Layer
from nn_manual.layers.fast_forms import rows, sum_rows, with_leading


@dataclass(eq=False)
class Linear(Layer):
    """Affine map, input (..., in_features) to output (..., out_features).

    Parameters: weight (out_features, in_features), bias (out_features,) unless `bias` is false. All leading
    dimensions count as batch; `rows` makes one dimension of them: (..., features) becomes (batch, features).

        output      = input @ weight.T + bias
        grad_input  = grad_output @ weight
        grad_weight = rows(grad_output).T @ rows(input)
        grad_bias   = rows(grad_output).sum(axis=0)

    Derivation, with n over the batch: output[n, o] = sum_i input[n, i] weight[o, i] + bias[o], so

        d output[n, o] / d input[n, i]  = weight[o, i]   and grad_input[n, i]  = sum_o grad_output[n, o] weight[o, i]
        d output[n, o] / d weight[o, i] = input[n, i]    and grad_weight[o, i] = sum_n grad_output[n, o] input[n, i]
        d output[n, o] / d bias[o]      = 1              and grad_bias[o]      = sum_n grad_output[n, o]

    which are the three products above. Raises ValueError for an input whose last dimension is not in_features, and
    for a gradient that is not shaped as the output.
    """

    in_features: int
    out_features: int
    bias: bool = True

    def __post_init__(self) -> None:
        for name in ("in_features", "out_features"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """With and without bias, with two leading dimensions, and all square, where only values show a transpose."""
        return [(cls(3, 2), (4, 3)), (cls(3, 2, bias=False), (4, 3)), (cls(1, 4), (2, 5, 1)), (cls(3, 3), (3, 3))]

    def parameter_shapes(self) -> dict[str, Shape]:
        """weight (out_features, in_features), bias (out_features,)."""
        shapes: dict[str, Shape] = {"weight": (self.out_features, self.in_features)}
        if self.bias:
            shapes["bias"] = (self.out_features,)
        return shapes

    def reset_parameters(self, generator: np.random.Generator) -> None:
        """weight and bias uniform in ±1/sqrt(in_features), as torch.nn.Linear."""
        self.fill_uniformly(self.in_features, generator)

    def initialize(self, fill: Callable[[str], None]) -> None:
        """weight from the initializer, bias 0."""
        fill("weight")
        if self.bias:
            self.param.bias[...] = 0

    def output_shape(self, input_shape: Shape) -> Shape:
        """(..., in_features) to (..., out_features)."""
        if input_shape[-1:] != (self.in_features,):
            raise ValueError(
                f"Linear takes in_features={self.in_features} in the last dimension, the input has shape {input_shape}"
            )
        return (*input_shape[:-1], self.out_features)

    def num_products(self, input_shape: Shape) -> int:
        """One product of each weight for each row."""
        return size_of(input_shape[:-1]) * self.in_features * self.out_features

    def forward(self, input: Array) -> tuple[Array, Array]:
        """input (..., in_features) to output (..., out_features); saves the input."""
        self.output_shape(input.shape)
        output = rows(input) @ self.param.weight.T  # one product of all rows is faster than one for each example
        if self.bias:
            output += self.param.bias
        return with_leading(output, input.shape), input

    def backward(self, saved: Array, grad_output: Array) -> Array:
        """Write grad_weight and grad_bias, return grad_input."""
        self.backward_parameters(saved, grad_output)
        grad_input: Array = rows(grad_output) @ self.param.weight
        return with_leading(grad_input, saved.shape)

    def backward_parameters(self, saved: Array, grad_output: Array) -> None:
        """Write grad_weight and grad_bias only."""
        input = saved
        self.check_gradient(grad_output, self.output_shape(input.shape))
        np.matmul(rows(grad_output).T, rows(input), out=self.grad.weight)
        if self.bias:
            sum_rows(grad_output, out=self.grad.bias)
