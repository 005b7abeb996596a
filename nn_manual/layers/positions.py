"""Positions in time that need no parameters."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.layers.base import Layer


@dataclass(eq=False)
class SinusoidalPositions(Layer):
    """Sines and cosines of each position in time, added: input and output (batch, time, embedding_dim).

    `time` is the length of the input, which may be any:

        position   = arange(time)[:, newaxis]
        feature    = arange(embedding_dim)
        angle      = position / 10000 ** (2 * (feature // 2) / embedding_dim)
        waves      = where(feature % 2 == 0, sin(angle), cos(angle)).astype(input.dtype)
        output     = input + waves
        grad_input = grad_output

    Two features are the sine and the cosine of one angle. From pair to pair the angles grow more slowly in time.

    Derivation: what is added doesn't depend on the input, so d output / d input = 1.
    Source: Vaswani et al., 2017. Raises ValueError for a size below 1, an input of another size, and a gradient that is
    not shaped as the output.
    """

    embedding_dim: int

    torch_class = None

    def __post_init__(self) -> None:
        if self.embedding_dim < 1:
            raise ValueError(f"embedding_dim must be at least 1, not {self.embedding_dim}")

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Pairs of features, a sine without its cosine, and all square."""
        return [(cls(4), (2, 5, 4)), (cls(1), (3, 4, 1)), (cls(3), (3, 3, 3))]

    def output_shape(self, input_shape: Shape) -> Shape:
        """The input's shape."""
        if len(input_shape) != 3 or input_shape[2] != self.embedding_dim:
            words = f"takes (batch, time, embedding_dim={self.embedding_dim}), the input has shape {input_shape}"
            raise ValueError(f"SinusoidalPositions {words}")
        return input_shape

    def longest_sum(self, input_shape: Shape) -> int:  # noqa: ARG002 - one, whatever the shape
        """One number is added to each."""
        return 1

    def forward(self, input: Array) -> tuple[Array, Shape]:
        """The output, and the input's shape."""
        self.output_shape(input.shape)
        return input + _waves(*input.shape[1:], input.dtype), input.shape

    def backward(self, saved: Shape, grad_output: Array) -> Array:
        """The gradient as it is."""
        self.check_gradient(grad_output, saved)
        return grad_output

    def reference(self, input: Any) -> Any:
        """The definition, on torch tensors."""
        position, feature = (input.new_ones(size).double().cumsum(0) - 1 for size in input.shape[1:])
        pair = (feature / 2).floor() * 2
        angle = position[:, None] * (-pair / self.embedding_dim * np.log(10000)).exp()
        return input + angle.sin().where(pair == feature, angle.cos()).to(input.dtype)


@functools.lru_cache(maxsize=8)
def _waves(time: int, embedding_dim: int, dtype: np.dtype[Any]) -> Array:
    """The sines and cosines, (time, embedding_dim), in float64 and rounded once."""
    position, feature = np.arange(time)[:, np.newaxis], np.arange(embedding_dim)
    angle = position / 10000 ** (2 * (feature // 2) / embedding_dim)
    waves: Array = np.where(feature % 2 == 0, np.sin(angle), np.cos(angle)).astype(dtype)
    waves.setflags(write=False)  # every call shares it
    return waves
