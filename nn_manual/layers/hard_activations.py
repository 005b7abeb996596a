"""Activations that are lines in the place of curves, and those that make small numbers 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.layers.activations import Piecewise
from nn_manual.layers.base import Layer
from nn_manual.layers.fast_forms import masked
from nn_manual.layers.piecewise_activations import Gate


@dataclass(eq=False)
class Shrink(Gate):
    """An elementwise function, any shape, that is 0 where the input's magnitude is at most lambd."""

    lambd: float = 0.5

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """torch's default, and a tie's value."""
        return [(cls(), (4, 3)), (cls(1.0), (3, 3))]

    def passes(self, input: Array) -> Array:
        """Where the magnitude is above lambd."""
        return np.abs(input) > self.lambd

    def breakpoints(self) -> tuple[float, ...]:
        """lambd and -lambd."""
        return -self.lambd, self.lambd


@dataclass(eq=False)
class Hardshrink(Shrink):
    """The input where its magnitude is above lambd, and 0 elsewhere, any shape.

        output     = where(abs(input) > lambd, input, 0)
        grad_input = where(abs(input) > lambd, grad_output, 0)

    At lambd and -lambd the function jumps. Raises ValueError for a gradient that is not shaped as the output.
    """

    def function(self, input: Array) -> Array:
        """The large numbers."""
        return masked(input, self.passes(input))


@dataclass(eq=False)
class Softshrink(Shrink):
    """The input, nearer to 0 by lambd, any shape.

        output     = sign(input) * maximum(abs(input) - lambd, 0)
        grad_input = where(abs(input) > lambd, grad_output, 0)

    At lambd and -lambd the slope is 0, as in torch. Raises ValueError for a negative lambd, and for a gradient that is
    not shaped as the output.
    """

    def __post_init__(self) -> None:
        if not self.lambd >= 0:
            raise ValueError(f"lambd must be at least 0, not {self.lambd}")

    def function(self, input: Array) -> Array:
        """What is left of the large numbers."""
        left: Array = np.sign(input) * np.maximum(np.abs(input) - self.lambd, 0)
        return left


@dataclass(eq=False)
class Hardsigmoid(Piecewise):
    """A line in the place of the logistic function, any shape.

        output     = minimum(maximum(input + 3, 0), 6) / 6
        grad_input = where((-3 < input) & (input < 3), grad_output / 6, 0)

    At -3 and 3 the slope is 0, as in torch. Raises ValueError for a gradient that is not shaped as the output.
    """

    def reference(self, input: Any) -> Any:
        """torch.nn.Hardsigmoid, whose slope is a sixth that is rounded to float32, in float64 too (torch 2.13)."""
        return ((input + 3) / 6).where((input > -3) & (input < 3), (input >= 3).to(input.dtype))

    def forward(self, input: Array) -> tuple[Array, Array]:
        """Elementwise; saves the input."""
        return np.minimum(np.maximum(input + 3, 0), 6) / 6, input

    def backward(self, saved: Array, grad_output: Array) -> Array:
        """A sixth of the gradient between -3 and 3."""
        input = saved
        self.check_gradient(grad_output, input.shape)
        return masked(grad_output / 6, (input > -3) & (input < 3))

    def breakpoints(self) -> tuple[float, ...]:
        """-3 and 3."""
        return -3, 3


@dataclass(eq=False)
class Hardswish(Piecewise):
    """Each number times its Hardsigmoid, any shape.

        gate       = minimum(maximum(input + 3, 0), 6) / 6
        output     = input * gate
        grad_input = where(input <= -3, 0, where(input < 3, grad_output * (input / 3 + 0.5), grad_output))

    Derivation: between -3 and 3 the function is (x**2 + 3 x) / 6, with the derivative x / 3 + 1 / 2; below it is 0,
    above x. At -3 torch takes the slope 0, at 3 the slope 1.
    Raises ValueError for a gradient that is not shaped as the output.
    """

    def forward(self, input: Array) -> tuple[Array, Array]:
        """Elementwise; saves the input."""
        gate = np.minimum(np.maximum(input + 3, 0), 6) / 6
        return input * gate, input

    def backward(self, saved: Array, grad_output: Array) -> Array:
        """The gradient times the slope, above -3."""
        input = saved
        self.check_gradient(grad_output, input.shape)
        scaled = np.where(input < 3, grad_output * (input / 3 + 0.5), grad_output)
        return masked(scaled, input > -3)

    def breakpoints(self) -> tuple[float, ...]:
        """-3 and 3."""
        return -3, 3
