"""Dropout that keeps mean 0 and variance 1, behind a SELU."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from nn_manual.arrays import Array, Shape
from nn_manual.layers.base import Layer
from nn_manual.layers.dropout import Dropout, check_mask
from nn_manual.layers.exponential_units import SELU
from nn_manual.streams import RowGenerator

#: What a SELU makes of -infinity, with its sign turned: a dropped number becomes this far below 0.
LOWEST = SELU.SCALE * SELU.ALPHA


@dataclass(eq=False)
class AlphaDropout(Dropout):
    """Elements set to a SELU's lowest value at random in training, each with probability p; any shape whose first
    dimension is the batch. Mean 0 and variance 1 stay.

        output     = input * mask + LOWEST * (mask - kept)
        grad_input = grad_output * mask

    The mask is 0 with probability p, and otherwise scale; kept = scale * (1 - p) is its mean. With
    scale = 1 / sqrt((1 - p) (1 + p LOWEST**2)) a dropped number becomes -scale * LOWEST * (1 - p), and a kept one
    scale * input + scale * LOWEST * p. LOWEST is 1.7581. With p = 1 the output is 0. In evaluation, the output is the
    input.

    Derivation: the mask doesn't depend on the input, so d output / d input = mask. With d for a mask of 0 and 1, the
    output is scale times x d - LOWEST (1 - d), plus a shift. For x of mean 0 and variance 1, the mean of x d - LOWEST
    (1 - d) is -p LOWEST, which the shift takes back, and its variance (1 - p) + LOWEST**2 p - p**2 LOWEST**2 =
    (1 - p) (1 + p LOWEST**2), which scale**2 divides by. Source: Klambauer et al., 2017. Raises ValueError for p
    outside 0 to 1.
    """

    @property
    def kept(self) -> float:
        """The mean of the mask: scale * (1 - p)."""
        return math.sqrt((1 - self.p) / (1 + self.p * LOWEST**2))

    def draw_noise(self, generator: RowGenerator) -> None:
        """Fill the mask with 0 or scale."""
        super().draw_noise(generator)
        self.noise.mask *= self.kept

    def forward(self, input: Array) -> tuple[Array, tuple[Array, Shape]]:
        """The output. Saved are the mask and the input's shape."""
        self.output_shape(input.shape)
        check_mask(self, input.shape)
        mask: Array = self.noise.mask
        return input * mask + LOWEST * (mask - self.kept), (mask, input.shape)

    def reference(self, input: Any, mask: Any) -> Any:
        """The definition, on torch tensors: torch's class would draw another mask."""
        return input * mask + LOWEST * (mask - self.kept)


@dataclass(eq=False)
class FeatureAlphaDropout(AlphaDropout):
    """AlphaDropout of whole channels, input (batch, channels, ...): neighbours in an image say much the same.

        output     = input * mask + LOWEST * (mask - kept)
        grad_input = grad_output * mask

    The mask (batch, channels, 1, ...) is drawn as AlphaDropout's. Derivation: as for AlphaDropout. Raises ValueError
    for p outside 0 to 1, and an input of fewer than two dimensions.
    """

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Some channels are kept and some not, and all are kept."""
        return [(cls(), (4, 3, 2)), (cls(0), (3, 3)), (cls(0.25), (2, 3, 2, 2))]

    def output_shape(self, input_shape: Shape) -> Shape:
        """The input's shape."""
        if len(input_shape) < 2:
            raise ValueError(f"FeatureAlphaDropout takes (batch, channels, ...), the input has shape {input_shape}")
        return input_shape

    def noise_shapes(self, input_shape: Shape) -> dict[str, Shape]:
        """mask (batch, channels, 1, ...)."""
        return {"mask": (*input_shape[:2], *[1] * (len(input_shape) - 2))}
