"""Activations: elementwise functions without parameters, each a formula and its derivative."""

from __future__ import annotations

import functools
import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy  # loads scipy.special when a formula first asks for it

from nn_manual.arrays import Array, Shape
from nn_manual.layers.base import Layer
from nn_manual.layers.fast_forms import masked


def expit(input: Array) -> Array:
    """The logistic function 1 / (1 + exp(-input)), elementwise, as scipy.special.expit in half of its time.

    Both tails keep their digits: for a very negative input the result is 1 / exp(-input), for a very positive one 1.
    Where exp overflows to infinity, the quotient is 0.
    """
    result = np.negative(input, out=np.empty_like(input))
    with np.errstate(over="ignore"):
        np.exp(result, out=result)
    result += 1
    return np.divide(1, result, out=result)


class Activation(Layer):
    """An elementwise function, any shape: `forward` is its formula, `derivative` the formula's derivative.

        output     = f(input)
        grad_input = grad_output * f'(input)

    Derivation: output[i] depends on input[i] alone, so by the chain rule
    d loss / d input[i] = d loss / d output[i] * f'(input[i]).
    Raises ValueError for a gradient that is not shaped as the output.
    """

    @abstractmethod
    def derivative(self, saved: Any) -> Array:
        """f'(input), shaped as the input, from what forward saved."""

    def backward(self, saved: Any, grad_output: Array) -> Array:
        """Scale the gradient by the derivative."""
        derivative = self.derivative(saved)
        self.check_gradient(grad_output, derivative.shape)
        grad_input: Array = grad_output * derivative
        return grad_input


class Piecewise(Layer):
    """An elementwise function, any shape, in pieces that meet at some points."""

    @abstractmethod
    def breakpoints(self) -> tuple[float, ...]:
        """Where two pieces meet, and the slope, or the function, jumps."""

    def kink_distance(self, input: Array) -> Array:
        """How far each input is from the nearest of these points."""
        distances = (np.abs(input - point) for point in self.breakpoints())
        return functools.reduce(np.minimum, distances, np.full(input.shape, np.inf))


@dataclass(eq=False)
class ReLU(Piecewise):
    """Rectifier, any shape.

        output     = maximum(input, 0)
        grad_input = where(output > 0, grad_output, 0)

    Derivation: d output / d input is 1 where input > 0 and 0 where input < 0. At input = 0 the function has a
    kink; any value in [0, 1] is a subgradient and torch takes 0. output > 0 exactly where input > 0, so the
    output is all that backward needs. It is `where` and not a product because 0 times an infinite gradient is not a
    number.
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

    def breakpoints(self) -> tuple[float, ...]:
        """0."""
        return (0,)


@dataclass(eq=False)
class Tanh(Activation):
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

    def derivative(self, saved: Array) -> Array:
        """1 - output**2."""
        output = saved
        return 1 - output * output


@dataclass(eq=False)
class GELU(Activation):
    """Gaussian error linear unit, any shape: each number times the probability that a normal number lies below it.

        exponent    = (8 / pi)**0.5 * (input + 0.044715 * input**3)   where approximate = tanh
        slope       = (8 / pi)**0.5 * (1 + 3 * 0.044715 * input**2)   where approximate = tanh
        probability = ndtr(input)                                     where approximate = none
        probability = expit(exponent)                                 where approximate = tanh
        density     = exp(-(input**2) / 2) / (2 * pi)**0.5            where approximate = none
        density     = slope * expit(exponent) * expit(-exponent)      where approximate = tanh
        output      = input * probability
        grad_input  = grad_output * (probability + input * density)

    Derivation: (x F(x))' = F(x) + x F'(x) for any F, and the density is F'.

    Exact, F is the normal distribution, scipy's `ndtr`: the integral of exp(-t**2 / 2) / sqrt(2 pi) for t from
    -infinity to x. Its derivative is the integrand at x.

    With `approximate` "tanh" (Hendrycks and Gimpel 2016), F(x) = (1 + tanh(u)) / 2 with
    u = sqrt(2 / pi) (x + 0.044715 x**3). By tanh(u) = (1 - exp(-2 u)) / (1 + exp(-2 u)) this is 1 / (1 + exp(-2 u)),
    the logistic function, `expit`, of the exponent 2 u. For a negative x the sum 1 + tanh(u) would cancel and
    lose all digits; expit keeps them. Its derivative is exp(-z) / (1 + exp(-z))**2 = expit(z) expit(-z), which the
    chain rule multiplies by the slope of the exponent, 2 u'.

    Raises ValueError for another `approximate`, and for a gradient that is not shaped as the output.
    """

    approximate: Literal["none", "tanh"] = "none"

    def __post_init__(self) -> None:
        if self.approximate not in ("none", "tanh"):
            raise ValueError(f"approximate must be 'none' or 'tanh', not {self.approximate!r}")

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Exact and approximate, each with a square shape among them."""
        return [(cls(approximate), shape) for approximate in ("none", "tanh") for shape in ((4, 3), (3, 3))]

    def forward(self, input: Array) -> tuple[Array, Array]:
        """Elementwise; saves the derivative, which shares its exponentials with the output."""
        if not input.ndim:  # NumPy's results for such arrays are numbers, which can't be written to
            output, derivative = self.forward(input.reshape(1))
            return output.reshape(()), derivative.reshape(())
        probability, density = self._tanh(input) if self.approximate == "tanh" else self._exact(input)
        derivative = np.multiply(input, density, out=density)
        derivative += probability
        return np.multiply(input, probability, out=probability), derivative

    def derivative(self, saved: Array) -> Array:
        """probability + input * density."""
        return saved

    def reference(self, input: Any) -> Any:
        """torch.nn.GELU without the rounding of 1 + erf and 1 + tanh: below -8 this rounding leaves no right digit of
        torch.nn's output, not even in float64.
        """
        if self.approximate == "tanh":
            return input * (math.sqrt(8 / math.pi) * (input + 0.044715 * input**3)).sigmoid()
        return input * (input * -math.sqrt(1 / 2)).erfc() / 2

    def _exact(self, input: Array) -> tuple[Array, Array]:
        """probability and density."""
        density = input * input
        density /= -2
        np.exp(density, out=density)
        density /= math.sqrt(2 * math.pi)
        return scipy.special.ndtr(input), density

    def _tanh(self, input: Array) -> tuple[Array, Array]:
        """probability and density; the exponent is input * ((8 / pi)**0.5 + (8 / pi)**0.5 * 0.044715 * input**2)."""
        square = input * input
        exponent = square * (math.sqrt(8 / math.pi) * 0.044715)
        exponent += math.sqrt(8 / math.pi)
        exponent *= input
        probability, density = expit(exponent), expit(-exponent)
        slope = np.multiply(square, math.sqrt(8 / math.pi) * 3 * 0.044715, out=square)
        slope += math.sqrt(8 / math.pi)
        density *= probability
        density *= slope
        return probability, density


@dataclass(eq=False)
class Sigmoid(Activation):
    """Logistic function, any shape.

        output     = expit(input)
        grad_input = grad_output * output * (1 - output)

    with expit(x) = 1 / (1 + exp(-x)), which keeps the digits of both tails.

    Derivation: the derivative is exp(-x) / (1 + exp(-x))**2. This is the product of 1 / (1 + exp(-x)) and
    exp(-x) / (1 + exp(-x)), and the second factor is 1 minus the first.
    Raises ValueError for a gradient that is not shaped as the output.
    """

    def forward(self, input: Array) -> tuple[Array, Array]:
        """Elementwise; saves the output."""
        output = expit(input)
        return output, output

    def derivative(self, saved: Array) -> Array:
        """output * (1 - output)."""
        output = saved
        derivative: Array = output * (1 - output)
        return derivative


@dataclass(eq=False)
class SiLU(Activation):
    """Sigmoid linear unit, or swish, any shape: each number times its sigmoid.

        sigmoid    = expit(input)
        output     = input * sigmoid
        grad_input = grad_output * (sigmoid + output * expit(-input))

    Derivation: (x s(x))' = s(x) + x s'(x), and s'(x) = s(x) (1 - s(x)) = s(x) s(-x). So x s'(x) is the output times
    s(-x), which, unlike 1 - s(x), keeps its digits where s(x) is almost 1.
    Raises ValueError for a gradient that is not shaped as the output.
    """

    def forward(self, input: Array) -> tuple[Array, tuple[Array, Array]]:
        """Elementwise; saves the input and its sigmoid."""
        sigmoid = expit(input)
        return input * sigmoid, (input, sigmoid)

    def derivative(self, saved: tuple[Array, Array]) -> Array:
        """sigmoid + output * expit(-input)."""
        input, sigmoid = saved
        derivative: Array = sigmoid + input * sigmoid * expit(-input)
        return derivative
