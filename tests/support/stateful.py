"""Right layers that have more than parameters: noise, buffers, and an evaluation of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nn_manual import Layer, Linear, Sequential
from nn_manual.arrays import Array, Shape
from nn_manual.layers import Composite, LayerWithBuffers, LayerWithNoise


@dataclass(eq=False)
class Drop(LayerWithNoise):
    """output     = input * mask, where mask is 0 or 1 / (1 - p)
    grad_input = grad_output * mask
    """

    p: float = 0.5

    def noise_shapes(self, input_shape: Shape) -> dict[str, Shape]:
        return {"mask": input_shape}

    def draw_noise(self, generator: Any) -> None:
        mask = self.noise.mask
        mask[...] = (generator.random(mask.shape) >= self.p) / (1 - self.p)

    def forward(self, input: Array) -> tuple[Array, Any]:
        return input * self.noise.mask, self.noise.mask

    def backward(self, saved: Any, grad_output: Array) -> Array:
        grad_input: Array = grad_output * saved
        return grad_input

    def infer(self, input: Array) -> Array:
        return input

    def reference(self, input: Any, mask: Any) -> Any:
        return input * mask

    def infer_reference(self, input: Any) -> Any:
        return input


@dataclass(eq=False)
class Center(LayerWithBuffers):
    """output     = input - input.mean(axis=0), in evaluation minus a running mean
    grad_input = grad_output - grad_output.mean(axis=0)
    """

    num_features: int = 4

    def buffer_shapes(self) -> dict[str, Shape]:
        return {"mean": (self.num_features,)}

    def forward(self, input: Array) -> tuple[Array, Any]:
        mean = input.mean(axis=0)
        return input - mean, mean

    def backward(self, saved: Any, grad_output: Array) -> Array:  # noqa: ARG002 - it needs nothing of it
        grad_input: Array = grad_output - grad_output.mean(axis=0)
        return grad_input

    def infer(self, input: Array) -> Array:
        output: Array = input - self.buffer.mean
        return output

    def update_buffers(self, saved: Any) -> None:
        self.buffer.mean += self.buffer.mean.dtype.type(0.1) * (saved - self.buffer.mean)

    def reference(self, input: Any, mean: Any) -> Any:
        of_batch = input.mean(0)
        return input - of_batch, {"mean": mean + 0.1 * (of_batch - mean)}

    def infer_reference(self, input: Any, mean: Any) -> Any:
        return input - mean


@dataclass(eq=False)
class Averaged(LayerWithBuffers):
    """output      = input * weight, in evaluation times a running average of the weight
    grad_input  = grad_output * weight
    grad_weight = (grad_output * input).sum(axis=0)
    """

    num_features: int = 4

    def parameter_shapes(self) -> dict[str, Shape]:
        return {"weight": (self.num_features,)}

    def reset_parameters(self, generator: np.random.Generator) -> None:
        self.param.weight[...] = generator.standard_normal(self.num_features)

    def buffer_shapes(self) -> dict[str, Shape]:
        return {"average": (self.num_features,)}

    def forward(self, input: Array) -> tuple[Array, Any]:
        return input * self.param.weight, input

    def backward(self, saved: Any, grad_output: Array) -> Array:
        self.grad.weight[...] = (grad_output * saved).sum(axis=0)
        grad_input: Array = grad_output * self.param.weight
        return grad_input

    def infer(self, input: Array) -> Array:
        output: Array = input * self.buffer.average
        return output

    def update_buffers(self, saved: Any) -> None:  # noqa: ARG002 - it needs nothing of it
        self.buffer.average += (self.param.weight - self.buffer.average) / 2

    def reference(self, input: Any, weight: Any, average: Any) -> Any:
        return input * weight, {"average": (average + weight) / 2}

    def infer_reference(self, input: Any, weight: Any, average: Any) -> Any:  # noqa: ARG002 - it gets them all
        return input * average


@dataclass(eq=False)
class Wrapped(Composite):
    """output     = inner(input)
    grad_input = what inner makes of grad_output
    """

    inner: Layer

    def forward(self, input: Array) -> tuple[Array, Any]:
        return self.inner.forward(input)

    def backward(self, saved: Any, grad_output: Array) -> Array:
        return self.inner.backward(saved, grad_output)

    def infer(self, input: Array) -> Array:
        return self.inner.infer(input)

    def update_buffers(self, saved: Any) -> None:
        self.inner.update_buffers(saved)

    def reference(self, input: Any, inner: Any) -> Any:
        return inner(input)


def model_of(layer: Layer, dtype: str = "float32") -> Sequential:
    """A net that has this layer of 4 features in its middle."""
    return Sequential(Linear(3, 4), layer, Linear(4, 4), dtype=dtype)
