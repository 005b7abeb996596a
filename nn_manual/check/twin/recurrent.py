"""torch.nn's recurrent classes in the form of our layers: the output alone, masks of dropout, and lengths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

#: torch's functions of one layer, by the `mode` of its classes.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "LSTM": torch.lstm,
    "GRU": torch.gru,
    "RNN_TANH": torch.rnn_tanh,
    "RNN_RELU": torch.rnn_relu,
}


class OutputAlone(torch.nn.RNNBase):
    """A recurrent class of torch.nn without the last state."""

    def forward(self, input: torch.Tensor, **masks: torch.Tensor) -> torch.Tensor:
        """The output of all times. torch would draw other masks of dropout than ours: with some, its layers run one by
        one, and the definition stands between them.
        """
        output: torch.Tensor
        if not masks:
            output, _ = super().forward(input)
            return output
        output = self.layer(input, 0)
        for k in range(1, self.num_layers):
            output = self.layer(output * masks[f"mask_l{k - 1}"], k)
        return output

    def layer(self, input: torch.Tensor, k: int) -> torch.Tensor:
        """The output of layer k, both of its ways."""
        num_ways = 1 + self.bidirectional
        weights = [weight for way in self.all_weights[k * num_ways : (k + 1) * num_ways] for weight in way]
        num_sequences = input.shape[1 - self.batch_first]
        state = input.new_zeros(num_ways, num_sequences, self.proj_size or self.hidden_size)
        cell = input.new_zeros(num_ways, num_sequences, self.hidden_size)
        start = (state, cell) if self.mode == "LSTM" else state
        settings = self.bias, 1, 0.0, self.training, self.bidirectional, self.batch_first
        output: torch.Tensor = FUNCTIONS[self.mode](input, start, weights, *settings)[0]
        return output


class OverLengths(OutputAlone):
    """A recurrent class of torch.nn over packed sequences."""

    def forward(self, input: torch.Tensor, lengths: torch.Tensor, **masks: torch.Tensor) -> torch.Tensor:  # type: ignore[override]  # lengths
        """The output of all times, 0 where a sequence has ended. With masks, one sequence after the other."""
        counts = lengths.to(torch.int64)
        if masks:
            output = input.new_zeros(*input.shape[:2], (1 + self.bidirectional) * (self.proj_size or self.hidden_size))
            for index, count in enumerate(counts.tolist()):
                own = slice(index, index + 1), slice(count)
                output[own] = super().forward(input[own], **{name: mask[own] for name, mask in masks.items()})
            return output
        packed = torch.nn.utils.rnn.pack_padded_sequence(input, counts, batch_first=True, enforce_sorted=False)
        result, _ = super(OutputAlone, self).forward(packed)
        output, _ = torch.nn.utils.rnn.pad_packed_sequence(result, batch_first=True, total_length=input.shape[1])
        return output
