"""Pooling over time: one vector for each sequence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.layers.base import Layer
from nn_manual.layers.with_lengths import LayerWithLengths

Mode = Literal["last", "mean", "sum", "max"]


@dataclass(eq=False)
class TimePool(Layer):
    """The last time of each sequence, or the mean, the sum or the largest number over all times: input (batch, time,
    ...) to output (batch, ...).

    mask, (batch, time, 1, ...), is 1 up to each sequence's length, and 0 in the padding.

        lengths    = sum(mask, axis=1, keepdims=True)                          where mode = mean
        followed   = concatenate([mask[:, 1:], 0 * mask[:, :1]], axis=1)       where mode = last
        largest    = max(where(mask, input, -inf), axis=1, keepdims=True)      where mode = max
        tied       = mask * (input == largest)                                 where mode = max
        weight     = mask * (1 - followed)                                     where mode = last
        weight     = mask / lengths                                            where mode = mean
        weight     = mask                                                      where mode = sum
        weight     = tied / sum(tied, axis=1, keepdims=True)                   where mode = max
        output     = sum(weight * where(mask, input, 0), axis=1)
        grad_input = weight * expand_dims(grad_output, 1)

    Derivation: the output is linear in the input, and weight holds its coefficients. Near an input whose largest number
    stands alone, the maximum is that number. Where several are tied, each gets the same part of the gradient, as
    torch.amax has it. The output is then the largest number itself: the sum of three thirds may differ by rounding.

    Raises ValueError for another mode, an input without time, and a gradient that is not shaped as the output.
    """

    mode: Mode = "last"

    torch_class = None

    def __post_init__(self) -> None:
        if self.mode not in get_args(Mode):
            raise ValueError(f"mode must be one of {', '.join(get_args(Mode))}, not {self.mode!r}")

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Each mode, a single time, and all square."""
        return [*((cls(mode), (2, 3, 4)) for mode in get_args(Mode)), (cls(), (2, 1, 3)), (cls("max"), (3, 3, 3))]

    def output_shape(self, input_shape: Shape) -> Shape:
        """The input's, without the time."""
        if len(input_shape) < 3 or not input_shape[1]:
            raise ValueError(f"{type(self).__name__} takes (batch, time, ...), the input has shape {input_shape}")
        return (input_shape[0], *input_shape[2:])

    def forward(self, input: Array) -> tuple[Array, tuple[Array, Shape]]:
        """The output. Saved are what each number weighs in it, and the input's shape."""
        self.output_shape(input.shape)
        mask = self.mask(input)
        if self.mode == "max":
            output = np.where(mask, input, -np.inf).max(axis=1)
            tied = mask & (input == output[:, np.newaxis])
            return output, ((tied / tied.sum(axis=1, keepdims=True)).astype(input.dtype), input.shape)
        weight = self._weight(mask).astype(input.dtype)
        return (weight * np.where(mask, input, np.zeros_like(input))).sum(axis=1), (weight, input.shape)

    def mask(self, input: Array) -> Array:
        """True, (batch, time, 1, ...): all times count."""
        return np.ones_like(input, np.bool_, order="C", shape=(*input.shape[:2], *[1] * (input.ndim - 2)))

    def backward(self, saved: tuple[Array, Shape], grad_output: Array) -> Array:
        """Give each number its part of the gradient."""
        weight, input_shape = saved
        self.check_gradient(grad_output, self.output_shape(input_shape))
        return weight * grad_output[:, np.newaxis]

    def reference(self, input: Any) -> Any:
        """The same on torch tensors."""
        match self.mode:
            case "last":
                return input[:, -1]
            case "mean":
                return input.mean(1)
            case "sum":
                return input.sum(1)
            case "max":
                return input.amax(1)

    def _weight(self, mask: Array) -> Array:
        """What the numbers of each time weigh in a sum over time, shaped as the mask."""
        if self.mode == "last":
            followed = np.zeros_like(mask)
            followed[:, :-1] = mask[:, 1:]
            return np.not_equal(mask, followed)
        return mask / mask.sum(axis=1, keepdims=True) if self.mode == "mean" else mask


@dataclass(eq=False)
class PaddedTimePool(LayerWithLengths, TimePool):
    """TimePool over sequences of different lengths: the times up to each sequence's length count, and no others."""

    def reference(self, input: Any, lengths: Any) -> Any:  # type: ignore[override]  # it has lengths, too
        """The same on torch tensors: one sequence after the other."""
        result = input.new_empty(self.output_shape(tuple(input.shape)))
        for index, length in enumerate(lengths.tolist()):
            result[index : index + 1] = super().reference(input[index : index + 1, :length])
        return result
