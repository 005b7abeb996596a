"""A rectifier whose slope below 0 is learned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.layers.activations import Piecewise
from nn_manual.layers.base import Layer


@dataclass(eq=False)
class PReLU(Piecewise):
    """Rectifier with a learned slope below 0, any shape: one for all numbers, or one for each entry of dimension 1.

    Parameter: weight (num_parameters,), which begins as `init`:

        slope       = weight.reshape(-1, *[1] * (input.ndim - 2))
        output      = where(input > 0, input, slope * input)
        grad_input  = where(input > 0, grad_output, slope * grad_output)
        below       = where(input > 0, 0, input * grad_output)
        grad_weight = below.swapaxes(0, 1).reshape(num_parameters, -1).sum(axis=1)

    Derivation: above 0 the output is the input, and depends on no slope. Below, it is a product: its derivative with
    respect to the input is the slope, and with respect to the slope the input. A slope is used by all numbers of its
    entry, or by all, so its gradient is their sum. At 0 torch takes the lower line.
    Source: He, Zhang, Ren and Sun, 2015. Raises ValueError for an input whose dimension 1 hasn't num_parameters
    entries, unless that is 1, and for a gradient that is not shaped as the output.
    """

    num_parameters: int = 1
    init: float = 0.25

    def __post_init__(self) -> None:
        if self.num_parameters < 1:
            raise ValueError(f"num_parameters must be at least 1, not {self.num_parameters}")

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """One slope, one for each feature, one for each channel."""
        return [(cls(), (4, 3)), (cls(3, -0.5), (3, 3)), (cls(2), (3, 2, 4))]

    def parameter_shapes(self) -> dict[str, Shape]:
        """weight (num_parameters,)."""
        return {"weight": (self.num_parameters,)}

    def reset_parameters(self, generator: np.random.Generator) -> None:  # noqa: ARG002 - the contract's signature
        """All slopes are `init`."""
        self.param.weight[...] = self.init

    def output_shape(self, input_shape: Shape) -> Shape:
        """The input's shape."""
        if self.num_parameters > 1 and input_shape[1:2] != (self.num_parameters,):
            slopes = f"PReLU has {self.num_parameters} slopes, one for each entry of dimension 1"
            raise ValueError(f"{slopes}, the input has shape {input_shape}")
        return input_shape

    def forward(self, input: Array) -> tuple[Array, Array]:
        """Elementwise; saves the input."""
        self.output_shape(input.shape)
        return np.where(input > 0, input, self._slope(input.ndim) * input), input

    def backward(self, saved: Array, grad_output: Array) -> Array:
        """Scale the gradient where the input isn't positive; there it also belongs to the slope."""
        input = saved
        self.check_gradient(grad_output, input.shape)
        below = np.where(input > 0, 0, input * grad_output)
        of_all = tuple(axis for axis in range(input.ndim) if self.num_parameters == 1 or axis != 1)
        self.grad.weight[...] = below.sum(axis=of_all)
        return np.where(input > 0, grad_output, self._slope(input.ndim) * grad_output)

    def _slope(self, num_dimensions: int) -> Array:
        """The slopes, shaped so that they broadcast against the input."""
        slope: Array = self.param.weight.reshape((-1, *(1,) * (num_dimensions - 2)) if num_dimensions else ())
        return slope

    def breakpoints(self) -> tuple[float, ...]:
        """0."""
        return (0,)
