"""A rectifier whose slope below 0 is drawn at random in training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.layers.activations import Piecewise
from nn_manual.layers.base import Layer
from nn_manual.layers.dropout import check_mask
from nn_manual.layers.with_noise import LayerWithNoise
from nn_manual.streams import RowGenerator


@dataclass(eq=False)
class RReLU(Piecewise, LayerWithNoise):
    """Rectifier with random slopes below 0 in training, any shape whose first dimension is the batch.

        output     = where(input > 0, input, slope * input)
        grad_input = where(input > 0, grad_output, slope * grad_output)

    The slope of each element is drawn evenly between `lower` and `upper`. In evaluation all have the middle of both.

    Derivation: the slope doesn't depend on the input, so the derivative is 1 above 0 and the slope below. At 0 torch
    takes the lower line. Source: Xu et al., 2015. Raises ValueError for bounds that are not in their order, and for a
    gradient that is not shaped as the output.
    """

    lower: float = 1 / 8
    upper: float = 1 / 3

    def __post_init__(self) -> None:
        if not self.lower <= self.upper:
            raise ValueError(f"lower must be at most upper={self.upper}, not {self.lower}")

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """torch's bounds, others, and a single slope."""
        return [(cls(), (4, 3)), (cls(-0.5, 2.0), (3, 3)), (cls(0.25, 0.25), (2, 3, 2))]

    def noise_shapes(self, input_shape: Shape) -> dict[str, Shape]:
        """slope, shaped as the input."""
        return {"slope": input_shape}

    def draw_noise(self, generator: RowGenerator) -> None:
        """Fill the slope between the bounds."""
        slope = self.noise.slope
        even = generator.random(slope.shape or (1,)).reshape(slope.shape)  # a number alone is a row of one
        slope[...] = self.lower + (self.upper - self.lower) * even

    def forward(self, input: Array) -> tuple[Array, tuple[Array, Array]]:
        """Elementwise; saves the input and the slopes."""
        check_mask(self, input.shape, "slope")
        slope: Array = self.noise.slope
        return np.where(input > 0, input, slope * input), (input, slope)

    def infer(self, input: Array) -> Array:
        """With the middle of the bounds for a slope."""
        return np.where(input > 0, input, (self.lower + self.upper) / 2 * input)

    def backward(self, saved: tuple[Array, Array], grad_output: Array) -> Array:
        """Scale the gradient where the input isn't positive."""
        input, slope = saved
        self.check_gradient(grad_output, input.shape)
        return np.where(input > 0, grad_output, slope * grad_output)

    def breakpoints(self) -> tuple[float, ...]:
        """0."""
        return (0,)

    def reference(self, input: Any, slope: Any) -> Any:
        """The definition, on torch tensors: torch's class would draw other slopes."""
        return input.where(input > 0, slope * input)
