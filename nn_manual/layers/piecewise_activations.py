"""Activations in pieces, most of them straight lines. Where two pieces meet, the slope is the one that torch takes."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.layers.activations import Piecewise
from nn_manual.layers.base import Layer
from nn_manual.layers.fast_forms import masked


class Gate(Piecewise):
    """An elementwise function, any shape, that passes some gradients as they are and stops all others.

        output     = f(input)
        grad_input = where(passes, grad_output, 0)

    Derivation: where f(input) is the input plus a constant, its derivative is 1; where it is constant, 0. It is `where`
    and not a product because 0 times an infinite gradient is not a number.
    """

    @abstractmethod
    def function(self, input: Array) -> Array:
        """f(input)."""

    @abstractmethod
    def passes(self, input: Array) -> Array:
        """Where the slope is 1, as bools; elsewhere it is 0."""

    def forward(self, input: Array) -> tuple[Array, Array]:
        """Elementwise; saves the input."""
        return self.function(input), input

    def backward(self, saved: Array, grad_output: Array) -> Array:
        """Pass the gradient where the slope is 1. Raises ValueError for one that is not shaped as the output."""
        input = saved
        self.check_gradient(grad_output, input.shape)
        return masked(grad_output, self.passes(input))


@dataclass(eq=False)
class Hardtanh(Gate):
    """The input between two bounds, any shape.

        output     = minimum(maximum(input, min_val), max_val)
        grad_input = where((min_val < input) & (input < max_val), grad_output, 0)

    At the bounds the slope is 0, as in torch. Raises ValueError for bounds that are not in their order, and for a
    gradient that is not shaped as the output.
    """

    min_val: float = -1.0
    max_val: float = 1.0

    def __post_init__(self) -> None:
        if not self.min_val < self.max_val:
            raise ValueError(f"min_val must be below max_val, not {self.min_val} and {self.max_val}")

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """torch's bounds, and others."""
        return [(cls(), (4, 3)), (cls(-0.5, 2.0), (3, 3))]

    def function(self, input: Array) -> Array:
        """Cut off at the bounds."""
        cut: Array = np.minimum(np.maximum(input, self.min_val), self.max_val)
        return cut

    def passes(self, input: Array) -> Array:
        """Between the bounds."""
        return (self.min_val < input) & (input < self.max_val)

    def breakpoints(self) -> tuple[float, ...]:
        """The bounds."""
        return self.min_val, self.max_val


@dataclass(eq=False)
class ReLU6(Gate):
    """Rectifier that ends at 6, any shape.

        output     = minimum(maximum(input, 0), 6)
        grad_input = where((0 < input) & (input < 6), grad_output, 0)

    At 0 and at 6 the slope is 0, as in torch. Raises ValueError for a gradient that is not shaped as the output.
    """

    def function(self, input: Array) -> Array:
        """Cut off at 0 and 6."""
        cut: Array = np.minimum(np.maximum(input, 0), 6)
        return cut

    def passes(self, input: Array) -> Array:
        """Between 0 and 6."""
        return (input > 0) & (input < 6)

    def breakpoints(self) -> tuple[float, ...]:
        """0 and 6."""
        return 0, 6


@dataclass(eq=False)
class Threshold(Gate):
    """The input above a threshold, and a constant elsewhere, any shape.

        output     = where(input > threshold, input, value)
        grad_input = where(input > threshold, grad_output, 0)

    At the threshold the function may jump. Raises ValueError for a gradient that is not shaped as the output.
    """

    threshold: float
    value: float

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """With a jump, and without one, at an input that is tied to others."""
        return [(cls(0.5, -2.0), (4, 3)), (cls(1.0, 1.0), (3, 3))]

    def function(self, input: Array) -> Array:
        """The input, or the constant."""
        return np.where(input > self.threshold, input, self.value)

    def passes(self, input: Array) -> Array:
        """Above the threshold."""
        return input > self.threshold

    def breakpoints(self) -> tuple[float, ...]:
        """The threshold."""
        return (self.threshold,)


@dataclass(eq=False)
class LeakyReLU(Piecewise):
    """Rectifier with a small slope below 0, any shape.

        output     = where(input > 0, input, negative_slope * input)
        grad_input = where(input > 0, grad_output, negative_slope * grad_output)

    Derivation: each of the two lines has its slope. At 0 torch takes the slope of the lower line.
    Raises ValueError for a gradient that is not shaped as the output.
    """

    negative_slope: float = 0.01

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """torch's slope, and a negative one."""
        return [(cls(), (4, 3)), (cls(-0.5), (3, 3))]

    def forward(self, input: Array) -> tuple[Array, Array]:
        """Elementwise; saves the input."""
        return np.where(input > 0, input, self.negative_slope * input), input

    def backward(self, saved: Array, grad_output: Array) -> Array:
        """Scale the gradient where the input isn't positive."""
        input = saved
        self.check_gradient(grad_output, input.shape)
        return np.where(input > 0, grad_output, self.negative_slope * grad_output)

    def breakpoints(self) -> tuple[float, ...]:
        """0."""
        return (0,)
