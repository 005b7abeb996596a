"""One half of the numbers, each times how far the other half opens its gate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.layers.activations import expit
from nn_manual.layers.base import Layer


@dataclass(eq=False)
class GLU(Layer):
    """Gated linear unit, any shape: the first half along dimension `dim` times a gate of the second half.

        value      = split(input, 2, axis=dim)[0]
        gate       = expit(split(input, 2, axis=dim)[1])
        output     = value * gate
        grad_value = grad_output * gate
        grad_gate  = grad_output * output * (1 - gate)
        grad_input = concatenate([grad_value, grad_gate], axis=dim)

    with expit(x) = 1 / (1 + exp(-x)).

    Derivation: output is a product, so d output / d value = gate and d output / d gate = value. With gate = expit(x),
    expit'(x) = gate (1 - gate), so d output / d x = value gate (1 - gate) = output (1 - gate).
    Source: Dauphin, Fan, Auli and Grangier, 2016. Raises ValueError for a dimension that the input doesn't have or that
    can't be halved, and for a gradient that is not shaped as the output.
    """

    dim: int = -1

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """The last dimension, and one before the last."""
        return [(cls(), (2, 3, 4)), (cls(1), (2, 4, 3))]

    def output_shape(self, input_shape: Shape) -> Shape:
        """The input's shape with half of dimension `dim`."""
        num_dims = len(input_shape)
        if not -num_dims <= self.dim < num_dims:
            raise ValueError(f"GLU halves dimension {self.dim}, the input has shape {input_shape}")
        axis, size = self.dim % num_dims, input_shape[self.dim]
        if size % 2:
            raise ValueError(f"GLU halves dimension {self.dim}, which has {size} entries in the shape {input_shape}")
        return (*input_shape[:axis], size // 2, *input_shape[axis + 1 :])

    def forward(self, input: Array) -> tuple[Array, tuple[Array, Array]]:
        """The output; saves it and the gate."""
        half = self.output_shape(input.shape)[self.dim]
        before = (slice(None),) * (self.dim % input.ndim)
        gate = expit(input[(*before, slice(half, None))])
        output: Array = input[(*before, slice(half))] * gate
        return output, (output, gate)

    def backward(self, saved: tuple[Array, Array], grad_output: Array) -> Array:
        """The gradients of both halves."""
        output, gate = saved
        self.check_gradient(grad_output, output.shape)
        grad_value = grad_output * gate
        grad_gate = grad_output * output * (1 - gate)
        return np.concatenate([grad_value, grad_gate], axis=self.dim)
