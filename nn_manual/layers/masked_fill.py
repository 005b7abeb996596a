"""MaskedFill: a number of one's choice in the padding behind the sequences."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.layers.base import Layer
from nn_manual.layers.with_lengths import LayerWithLengths, kept
from nn_manual.messages.text import counted


@dataclass(eq=False)
class MaskedFill(LayerWithLengths):
    """The input up to each sequence's length, and `value` in the padding behind it: input and output (batch, time,
    ...). A list of values has one for each number of the last dimension.

    mask, (batch, time, 1, ...), is 1 up to each sequence's length, and 0 in the padding.

        output     = where(mask, input, value)
        grad_input = where(mask, grad_output, 0)

    With 0, a convolution behind it sees no padding. With 0 for the blank and -1e4 for each other class, log-
    probabilities say that blanks follow for sure: so CTCLoss counts the times of each sequence, as torch's does with
    `input_lengths`. A sequence that is shorter than its target needs costs 1e4 for each label too many.

    Derivation: the output is the input itself in the sequences, and doesn't depend on it in the padding.

    Raises ValueError for values that aren't finite, an input without a time, and as many values as the last dimension
    doesn't have.
    """

    value: float | list[float] = 0.0

    torch_class = None

    def __post_init__(self) -> None:
        values = self.value if isinstance(self.value, list) else [self.value]
        if not values:
            raise ValueError("value must be a number, or have one for each of the last dimension, not none at all")
        if not all(map(math.isfinite, values)):
            raise ValueError(f"value must be finite, not {self.value}")

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Zeros, another number, a list, more dimensions, and all square."""
        return [
            (cls(), (2, 3, 4)),
            (cls(0.5), (3, 2, 2, 2)),
            (cls([0.0, -2.0, 1.0]), (2, 4, 3)),
            (cls([1.0, 0.0, 3.0]), (3, 3, 3)),
        ]

    def output_shape(self, input_shape: Shape) -> Shape:
        """The input's."""
        if len(input_shape) < 3:
            raise ValueError(f"MaskedFill takes (batch, time, ...), the input has shape {input_shape}")
        if isinstance(self.value, list) and len(self.value) != input_shape[-1]:
            values = counted(len(self.value), "value")
            raise ValueError(f"MaskedFill has {values}, and the input's last dimension is {input_shape[-1]:,}")
        return input_shape

    def forward(self, input: Array) -> tuple[Array, Array]:
        """The output. Saved is the mask."""
        self.output_shape(input.shape)
        mask = self.mask(input)
        return np.where(mask, input, np.array(self.value, input.dtype, like=input)), mask

    def backward(self, saved: Array, grad_output: Array) -> Array:
        """Nothing comes from the padding."""
        return kept(grad_output, saved)

    def reference(self, input: Any, lengths: Any) -> Any:
        """The same on torch tensors."""
        place = input.new_ones(input.shape[1]).cumsum(0)
        counts = place <= lengths[:, None]
        return input.where(counts.reshape(*counts.shape, *[1] * (input.ndim - 2)), input.new_tensor(self.value))
