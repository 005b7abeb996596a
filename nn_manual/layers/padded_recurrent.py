"""Recurrent layers over sequences of different lengths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.layers.base import Layer
from nn_manual.layers.fast_forms import rows
from nn_manual.layers.gru import GRU
from nn_manual.layers.lstm import LSTM
from nn_manual.layers.recurrent import Recurrent, TurnTime, reversed_time
from nn_manual.layers.rnn import RNN
from nn_manual.layers.with_lengths import LayerWithLengths, kept


@dataclass(eq=False)
class PaddedRecurrent(Recurrent, LayerWithLengths):
    """A recurrent layer over sequences of different lengths, as torch's between pack_padded_sequence and
    pad_packed_sequence: input (batch, time, input_size), output (batch, time, hidden_size).

    With mask, (batch, time, 1), true up to each sequence's length, and layer, the same one without lengths:

        output     = where(mask, layer(where(mask, input, 0)), 0)
        grad_input = layer's grad_input of where(mask, grad_output, 0)

    Where `bidirectional`, the way back begins at each sequence's own end: turning the time around is the permutation
    that turns the times up to the length, and leaves those of the padding where they are.

    Derivation: the output at a time depends on the input up to that time alone, on the way back from the sequence's end
    on. So padding, which comes behind in both ways, changes no output that counts. A padded output is 0 whatever the
    input is, so its gradient goes nowhere; then nothing that a padded input could change has a gradient: the gradients
    at these times are 0, and the gradients of the weights are sums over the times that count. A permutation that is its
    own inverse moves the gradients back, too. The padding becomes 0 before the layer reads it, since a sum with
    0 * infinity isn't one without it.

    Raises ValueError as Recurrent does, and unless `batch_first`: the rows of the data are the sequences.
    """

    batch_first: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.batch_first:
            raise ValueError("batch_first must be true: the rows of the data are the sequences")

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """One layer and two, without bias, two ways, a single time, all square, and dropout."""
        return [
            (cls(3, 2), (4, 5, 3)),
            (cls(2, 3, num_layers=2), (3, 4, 2)),
            (cls(3, 3, bias=False), (3, 3, 3)),
            (cls(2, 3, num_layers=2, bidirectional=True), (3, 4, 2)),
            (cls(2, 2), (2, 1, 2)),
            (cls(3, 2, num_layers=2, dropout=0.25), (4, 3, 3)),
        ]

    def run(self, input: Array, masks: list[Array]) -> tuple[Array, Any]:
        """The output. What is saved is the mask of the lengths, and what the layers need."""
        self.output_shape(input.shape)
        mask = self.mask(input)
        output, saved = self.stacked(kept(input, mask).swapaxes(0, 1), self._turn(mask), masks)
        return kept(output.swapaxes(0, 1), mask), (mask, saved)

    def backward(self, saved: Any, grad_output: Array) -> Array:
        """Write the gradients of the parameters, return grad_input."""
        mask, of_layers = saved
        self.check_gradient(grad_output, (*mask.shape[:2], self.output_size))
        grad_output = kept(grad_output, mask).swapaxes(0, 1)
        grad_input = self.stacked_backward(of_layers, grad_output, self._turn(mask))
        return grad_input.swapaxes(0, 1)

    def _turn(self, mask: Array) -> TurnTime:
        """Turns the times up to each sequence's length, of an array (time, batch, features)."""
        if not self.bidirectional:  # nothing is turned
            return reversed_time
        batch, time, _ = mask.shape
        now = np.arange(time)[:, np.newaxis]
        turned = np.where(mask[:, :, 0].T, mask.sum(axis=(1, 2)) - 1 - now, now)
        place = (turned * batch + np.arange(batch)).ravel()
        return lambda array: rows(array).take(place, axis=0).reshape(array.shape)


@dataclass(eq=False)
class PaddedLSTM(PaddedRecurrent, LSTM):
    """An LSTM over sequences of different lengths, (batch, time, input_size), as PaddedRecurrent has it."""


@dataclass(eq=False)
class PaddedGRU(PaddedRecurrent, GRU):
    """A GRU over sequences of different lengths, (batch, time, input_size), as PaddedRecurrent has it."""


@dataclass(eq=False)
class PaddedRNN(PaddedRecurrent, RNN):
    """An RNN over sequences of different lengths, (batch, time, input_size), as PaddedRecurrent has it."""
