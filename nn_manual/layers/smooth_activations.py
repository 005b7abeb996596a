"""Softplus, what is made of it, and other smooth activations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.layers.activations import Activation, Piecewise, expit
from nn_manual.layers.base import Layer


def softplus(input: Array) -> Array:
    """log(1 + exp(input)), elementwise: with exp(-|input|), which can't overflow, and which keeps both tails' digits.

    log(1 + exp(x)) = x + log(1 + exp(-x)): for a positive x, this is the maximum of x and 0, plus log(1 + exp(-|x|)).
    """
    result: Array = np.maximum(input, 0) + np.log1p(np.exp(-np.abs(input)))
    return result


@dataclass(eq=False)
class Softplus(Piecewise, Activation):
    """A smooth rectifier, any shape.

        scaled     = beta * input
        output     = where(scaled > threshold, input, softplus(scaled) / beta)
        grad_input = grad_output * where(scaled > threshold, 1, expit(scaled))

    with softplus(x) = log(1 + exp(x)) and expit(x) = 1 / (1 + exp(-x)).

    Derivation: log(1 + exp(x))' = exp(x) / (1 + exp(x)) = 1 / (1 + exp(-x)); the chain rule's beta cancels 1 / beta.
    Above the threshold torch takes the line, which the function nears.
    Raises ValueError for beta = 0, and for a gradient that is not shaped as the output.
    """

    beta: float = 1.0
    threshold: float = 20.0

    def __post_init__(self) -> None:
        if not self.beta:
            raise ValueError("beta must not be 0")

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """torch's settings, and a threshold within the inputs."""
        return [(cls(), (4, 3)), (cls(2.0, 1.5), (3, 3))]

    def forward(self, input: Array) -> tuple[Array, Array]:
        """Elementwise; saves beta * input."""
        scaled = self.beta * input
        return np.where(scaled > self.threshold, input, softplus(scaled) / self.beta), scaled

    def derivative(self, saved: Array) -> Array:
        """expit(scaled), or 1 above the threshold."""
        scaled = saved
        return np.where(scaled > self.threshold, 1, expit(scaled))

    def breakpoints(self) -> tuple[float, ...]:
        """The input at the threshold."""
        return (self.threshold / self.beta,)


@dataclass(eq=False)
class LogSigmoid(Activation):
    """Logarithm of the logistic function, any shape.

        output     = -softplus(-input)
        grad_input = grad_output * expit(-input)

    with softplus(x) = log(1 + exp(x)) and expit(x) = 1 / (1 + exp(-x)).

    Derivation: log(1 / (1 + exp(-x))) = -log(1 + exp(-x)), whose derivative is exp(-x) / (1 + exp(-x)), expit(-x).
    Raises ValueError for a gradient that is not shaped as the output.
    """

    def forward(self, input: Array) -> tuple[Array, Array]:
        """Elementwise; saves the input."""
        return -softplus(-input), input

    def derivative(self, saved: Array) -> Array:
        """expit(-input)."""
        input = saved
        return expit(-input)


@dataclass(eq=False)
class Mish(Activation):
    """Each number times the hyperbolic tangent of its softplus, any shape.

        decay      = exp(-2 * softplus(input))
        gate       = -expm1(-2 * softplus(input)) / (1 + decay)
        output     = input * gate
        grad_input = grad_output * (gate + input * expit(input) * 4 * decay / (1 + decay)**2)

    with softplus(x) = log(1 + exp(x)) and expit(x) = 1 / (1 + exp(-x)).

    Derivation: tanh(s) = (1 - exp(-2 s)) / (1 + exp(-2 s)), with s = softplus(x) and s' = expit(x). By the product rule
    (x tanh(s))' = tanh(s) + x s' (1 - tanh(s)**2), and 1 - tanh(s)**2 = 4 exp(-2 s) / (1 + exp(-2 s))**2, which keeps
    its digits where tanh(s) is almost 1.
    Raises ValueError for a gradient that is not shaped as the output.
    """

    def forward(self, input: Array) -> tuple[Array, tuple[Array, Array, Array]]:
        """Elementwise; saves the input, its gate and its decay."""
        exponent = -2 * softplus(input)
        decay = np.exp(exponent)
        gate = -np.expm1(exponent) / (1 + decay)
        return input * gate, (input, gate, decay)

    def derivative(self, saved: tuple[Array, Array, Array]) -> Array:
        """gate + input * expit(input) * 4 * decay / (1 + decay)**2."""
        input, gate, decay = saved
        total = 1 + decay
        derivative: Array = gate + input * expit(input) * (4 * decay / (total * total))
        return derivative


@dataclass(eq=False)
class Softsign(Activation):
    """Each number by one more than its magnitude, any shape.

        total      = 1 + abs(input)
        output     = input / total
        grad_input = grad_output / total**2

    Derivation: for a positive x, (x / (1 + x))' = 1 / (1 + x)**2 by the quotient rule; the function is odd, so its
    derivative is even. At 0 both halves have the slope 1.
    Raises ValueError for a gradient that is not shaped as the output.
    """

    def forward(self, input: Array) -> tuple[Array, Array]:
        """Elementwise; saves the total."""
        total = 1 + np.abs(input)
        return input / total, total

    def derivative(self, saved: Array) -> Array:
        """1 / total**2."""
        total = saved
        derivative: Array = 1 / (total * total)
        return derivative


@dataclass(eq=False)
class Tanhshrink(Activation):
    """What the hyperbolic tangent leaves of a number, any shape.

        output     = input - tanh(input)
        grad_input = grad_output * tanh(input)**2

    Derivation: (x - tanh(x))' = 1 - (1 - tanh(x)**2) = tanh(x)**2.
    Raises ValueError for a gradient that is not shaped as the output.
    """

    def forward(self, input: Array) -> tuple[Array, Array]:
        """Elementwise; saves the hyperbolic tangent."""
        tanh = np.tanh(input)
        return input - tanh, tanh

    def derivative(self, saved: Array) -> Array:
        """The square of the hyperbolic tangent."""
        tanh = saved
        return tanh * tanh
