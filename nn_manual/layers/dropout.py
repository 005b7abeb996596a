"""Dropout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nn_manual.arrays import Array, Shape
from nn_manual.layers.base import Layer
from nn_manual.layers.with_noise import LayerWithNoise
from nn_manual.streams import RowGenerator


@dataclass(eq=False)
class Dropout(LayerWithNoise):
    """Elements are zeroed at random in training, each with probability p; any shape whose first dimension is the batch.

        output     = input * mask
        grad_input = grad_output * mask

    The mask is 0 with probability p, and otherwise 1 / (1 - p): so the output's expected value is the input. With p = 1
    the mask is 0 everywhere. In evaluation, the output is the input.

    Derivation: the mask doesn't depend on the input, so d output / d input = mask. Source: Srivastava et al., 2014.
    Raises ValueError for p outside 0 to 1.
    """

    p: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.p <= 1:
            raise ValueError(f"p must be between 0 and 1, not {self.p}")

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Some elements are kept and some not, all are kept, and another number of dimensions."""
        return [(cls(), (8, 3)), (cls(0), (3, 3)), (cls(0.25), (4, 2, 3))]

    def noise_shapes(self, input_shape: Shape) -> dict[str, Shape]:
        """mask, shaped as the input."""
        return {"mask": input_shape}

    def draw_noise(self, generator: RowGenerator) -> None:
        """Fill the mask with 0 or 1 / (1 - p)."""
        draw_mask(self.noise.mask, self.p, generator)

    def longest_sum(self, input_shape: Shape) -> int:  # noqa: ARG002 - one, whatever the shape
        """One term: each element is one product."""
        return 1

    def forward(self, input: Array) -> tuple[Array, Array]:
        """The output, and the mask that backward needs."""
        check_mask(self, input.shape)
        mask: Array = self.noise.mask
        return input * mask, mask

    def infer(self, input: Array) -> Array:
        """The input."""
        return input

    def backward(self, saved: Array, grad_output: Array) -> Array:
        """grad_output * mask."""
        mask = saved
        self.check_gradient(grad_output, mask.shape)
        grad_input: Array = grad_output * mask
        return grad_input

    def reference(self, input: Any, mask: Any) -> Any:
        """The definition, on torch tensors: torch's class would draw another mask."""
        return input * mask


def draw_mask(mask: Array, p: float, generator: RowGenerator) -> None:
    """Fill the mask with 0 with probability p, and otherwise with 1 / (1 - p)."""
    kept = generator.random(mask.shape or (1,)).reshape(mask.shape) >= p  # a number alone is a row of one
    mask[...] = kept * (0 if p == 1 else 1 / (1 - p))


def check_mask(layer: LayerWithNoise, input_shape: Shape) -> None:
    """Raise ValueError if the layer's mask was drawn for an input of another shape."""
    drawn, needed = layer.noise.mask.shape, layer.noise_shapes(input_shape)["mask"]
    if drawn != needed:
        raise ValueError(
            f"{type(layer).__name__} has a mask of shape {drawn}, its input has {input_shape} and needs {needed}: the "
            "composite in which it stands must say in input_shapes what its children get"
        )
