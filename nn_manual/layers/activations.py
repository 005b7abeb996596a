"""Activations: elementwise functions without parameters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nn_manual.arrays import Array, masked
from nn_manual.layers.base import Layer


@dataclass(eq=False)
class ReLU(Layer):
    """Rectifier, any shape.

        output     = maximum(input, 0)
        grad_input = where(output > 0, grad_output, 0)

    Derivation: d output / d input is 1 where input > 0 and 0 where input < 0. At input = 0 the function has a
    kink; any value in [0, 1] is a subgradient and torch takes 0. output > 0 exactly where input > 0, so the
    output is all that backward needs. `where` and not a product: 0 times an infinite gradient is not a number.
    Raises ValueError for a gradient that is not shaped as the output.
    """

    def forward(self, input: Array) -> tuple[Array, Array]:
        """Elementwise; saves the output."""
        output = np.maximum(input, 0)
        return output, output

    def backward(self, saved: Array, grad_output: Array) -> Array:
        """Pass the gradient where the output is positive."""
        output = saved
        self.check_gradient(grad_output, output.shape)
        return masked(grad_output, output > 0)

    def kink_distance(self, input: Array) -> Array:
        """How far each input is from the kink at 0."""
        distance: Array = np.abs(input)
        return distance


@dataclass(eq=False)
class Tanh(Layer):
    """Hyperbolic tangent, any shape.

        output     = tanh(input)
        grad_input = grad_output * (1 - output**2)

    Derivation: tanh = sinh / cosh, so by the quotient rule tanh' = (cosh**2 - sinh**2) / cosh**2 = 1 - tanh**2.
    Raises ValueError for a gradient that is not shaped as the output.
    """

    def forward(self, input: Array) -> tuple[Array, Array]:
        """Elementwise; saves the output."""
        output = np.tanh(input)
        return output, output

    def backward(self, saved: Array, grad_output: Array) -> Array:
        """Scale the gradient by 1 - output**2."""
        output = saved
        self.check_gradient(grad_output, output.shape)
        grad_input: Array = grad_output * (1 - output * output)
        return grad_input
