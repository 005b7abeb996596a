"""Normalization with a weight and a bias for each channel."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from nn_manual.arrays import Array, Shape, size_of
from nn_manual.layers.base import Layer


class OfChannels(Layer):
    """Normalization with a weight and a bias for each channel, (batch, channels, ...) to an output of the same shape.

    Parameters, where `affine`: weight and, unless `bias` is false, bias, one number of each for a channel.
    """

    affine: bool
    bias: bool

    @property
    @abstractmethod
    def channels(self) -> int:
        """How many channels there are."""

    def parameter_shapes(self) -> dict[str, Shape]:
        """weight and bias (channels,)."""
        names = ("weight", "bias") if self.bias else ("weight",)
        return dict.fromkeys(names, (self.channels,)) if self.affine else {}

    def reset_parameters(self, generator: np.random.Generator) -> None:  # noqa: ARG002 - torch draws nothing here
        """weight 1, bias 0."""
        for name, parameter in vars(self.param).items():
            parameter[...] = 1 if name == "weight" else 0

    def num_products(self, input_shape: Shape) -> int:
        """One for each element, by 1 / std, and with `affine` one more, by weight."""
        return size_of(input_shape) * (1 + self.affine)

    def _affine(self, normalized: Array) -> Array:
        if not self.affine:
            return normalized
        across = self._across(normalized.ndim)
        scaled: Array = self.param.weight[across] * normalized
        if self.bias:
            scaled += self.param.bias[across]
        return scaled

    @staticmethod
    def _across(num_dims: int) -> tuple[Any, ...]:
        """The index that shapes a vector of channels as the input."""
        return (slice(None), *[np.newaxis] * (num_dims - 2))
