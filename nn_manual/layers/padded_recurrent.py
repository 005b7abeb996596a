"""Recurrent layers over sequences of different lengths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.layers.base import Layer
from nn_manual.layers.recurrent import LSTM
from nn_manual.layers.with_lengths import LayerWithLengths


@dataclass(eq=False)
class PaddedLSTM(LSTM, LayerWithLengths):
    """An LSTM over sequences of different lengths, as torch.nn.LSTM between pack_padded_sequence and
    pad_packed_sequence: input (batch, time, input_size), output (batch, time, hidden_size).

    With mask, (batch, time, 1), true up to each sequence's length:

        output     = where(mask, LSTM(where(mask, input, 0)), 0)
        grad_input = LSTM's grad_input of where(mask, grad_output, 0)

    Derivation: the output at a time depends on the input up to that time alone. So padding, which comes last, changes
    no output that counts. A padded output is 0 whatever the input is, so its gradient goes nowhere; then nothing that a
    padded input could change has a gradient: LSTM's grad_z is 0 at these times, and so is its grad_input, and the
    gradients of the weights are sums over the times that count. The padding becomes 0 before the LSTM reads it, since a
    sum with 0 * infinity isn't one without it.

    Raises ValueError as LSTM does, and unless `batch_first`: the rows of the data are the sequences.
    """

    batch_first: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.batch_first:
            raise ValueError("batch_first must be true: the rows of the data are the sequences")

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """One layer and two, without bias, a single time, and all square."""
        return [
            (cls(3, 2), (4, 5, 3)),
            (cls(2, 3, num_layers=2), (3, 4, 2)),
            (cls(3, 3, bias=False), (3, 3, 3)),
            (cls(2, 2), (2, 1, 2)),
        ]

    def forward(self, input: Array) -> tuple[Array, Any]:
        """The output. What is saved is the mask, and what LSTM saves."""
        self.output_shape(input.shape)
        mask = self.mask(input)
        output, saved = LSTM.forward(self, np.where(mask, input, np.zeros_like(input)))
        return np.where(mask, output, np.zeros_like(output)), (mask, saved)

    def backward(self, saved: Any, grad_output: Array) -> Array:
        """Write the gradients of the parameters, return grad_input."""
        mask, of_lstm = saved
        self.check_gradient(grad_output, (*mask.shape[:2], self.hidden_size))
        return LSTM.backward(self, of_lstm, np.where(mask, grad_output, np.zeros_like(grad_output)))
