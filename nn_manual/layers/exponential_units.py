"""Exponential linear units: the input above 0, an exponential that ends in a constant below."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.layers.activations import Activation, Piecewise
from nn_manual.layers.base import Layer


@dataclass(eq=False)
class ELU(Piecewise, Activation):
    """Exponential linear unit, any shape.

        output     = where(input > 0, input, alpha * expm1(minimum(input, 0)))
        grad_input = grad_output * where(input > 0, 1, alpha * exp(minimum(input, 0)))

    Derivation: the derivative of alpha (exp(x) - 1) is alpha exp(x). At 0 torch takes that slope, too. The minimum only
    keeps the unused half from overflowing.
    Raises ValueError for a gradient that is not shaped as the output.
    """

    alpha: float = 1.0

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Without a kink at 0, and with one."""
        return [(cls(), (4, 3)), (cls(0.7), (3, 3))]

    def forward(self, input: Array) -> tuple[Array, Array]:
        """Elementwise; saves the input."""
        return np.where(input > 0, input, self.alpha * np.expm1(np.minimum(input, 0))), input

    def derivative(self, saved: Array) -> Array:
        """1, or alpha * exp(input)."""
        input = saved
        return np.where(input > 0, 1, self.alpha * np.exp(np.minimum(input, 0)))

    def breakpoints(self) -> tuple[float, ...]:
        """0, where the slope jumps unless alpha is 1."""
        return () if self.alpha == 1 else (0,)


@dataclass(eq=False)
class CELU(Activation):
    """Continuously differentiable exponential linear unit, any shape.

        scaled     = minimum(input, 0) / alpha
        output     = maximum(input, 0) + alpha * expm1(scaled)
        grad_input = grad_output * exp(scaled)

    Derivation: below 0 the derivative of alpha (exp(x / alpha) - 1) is exp(x / alpha). Above 0 it is 1, and so is
    exp(0), because the minimum is 0 there.
    Raises ValueError for an alpha that is not positive, and for a gradient that is not shaped as the output.
    """

    alpha: float = 1.0

    def __post_init__(self) -> None:
        if not self.alpha > 0:
            raise ValueError(f"alpha must be positive, not {self.alpha}")

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """torch's alpha, and another one."""
        return [(cls(), (4, 3)), (cls(0.7), (3, 3))]

    def forward(self, input: Array) -> tuple[Array, Array]:
        """Elementwise; saves what is scaled."""
        scaled = np.minimum(input, 0) / self.alpha
        return np.maximum(input, 0) + self.alpha * np.expm1(scaled), scaled

    def reference(self, input: Any) -> Any:
        """torch.nn.CELU, whose gradient takes 1 / alpha in float32, in float64 too (torch 2.13). The gradient of
        torch's expm1 is its result plus 1, which leaves no digit of a small exponential.
        """
        scaled = input.clamp(max=0) / self.alpha
        below = scaled.expm1().where(scaled > -0.5, scaled.exp() - 1)
        return input.where(input > 0, self.alpha * below)

    def derivative(self, saved: Array) -> Array:
        """exp(scaled)."""
        scaled = saved
        derivative: Array = np.exp(scaled)
        return derivative


@dataclass(eq=False)
class SELU(Piecewise, Activation):
    """Scaled exponential linear unit, any shape.

        output     = SCALE * where(input > 0, input, ALPHA * expm1(minimum(input, 0)))
        grad_input = grad_output * SCALE * where(input > 0, 1, ALPHA * exp(minimum(input, 0)))

    Derivation: as ELU's, times SCALE. At 0 torch takes the exponential's slope. The two numbers keep mean 0 and
    variance 1 from layer to layer (Klambauer et al. 2017).
    Raises ValueError for a gradient that is not shaped as the output.
    """

    ALPHA: ClassVar[float] = 1.6732632423543772
    SCALE: ClassVar[float] = 1.0507009873554805

    def forward(self, input: Array) -> tuple[Array, Array]:
        """Elementwise; saves the input."""
        return self.SCALE * np.where(input > 0, input, self.ALPHA * np.expm1(np.minimum(input, 0))), input

    def derivative(self, saved: Array) -> Array:
        """SCALE, or SCALE * ALPHA * exp(input)."""
        input = saved
        below = self.ALPHA * np.exp(np.minimum(input, 0))
        return self.SCALE * np.where(input > 0, 1, below)

    def breakpoints(self) -> tuple[float, ...]:
        """0."""
        return (0,)
