"""The kinds of self-attention: which times a time sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from nn_manual.arrays import Array
from nn_manual.layers.attention import SelfAttention
from nn_manual.layers.with_lengths import LayerWithLengths, kept


@dataclass(eq=False)
class CausalSelfAttention(SelfAttention):
    """Multi-head self-attention in which no time sees a later one, input and output (batch, time, embed_dim)."""

    is_causal: ClassVar[bool] = True


@dataclass(eq=False)
class MultiheadAttention(SelfAttention):
    """Multi-head self-attention in which each time sees all, input and output (batch, time, embed_dim).

    It is torch.nn.MultiheadAttention of one array with itself, the batch first.
    """


@dataclass(eq=False)
class PaddedAttention(SelfAttention, LayerWithLengths):
    """Self-attention over sequences of different lengths, as torch's with a key_padding_mask: input and output (batch,
    time, embed_dim).

    With counts, (batch, time, 1), true up to each sequence's length, and layer, the same one without lengths, whose
    `offset` is -infinity too where the row's time counts and the column's doesn't:

        output     = where(counts, layer(where(counts, input, 0)), 0)
        grad_input = layer's grad_input of where(counts, grad_output, 0)

    Derivation: a time that counts sees none of the padding, so no output that counts depends on the padding. A padded
    output is 0 whatever the input is, so its gradient goes nowhere; then nothing that a padded input could change has a
    gradient. The padding becomes 0 before the layer reads it, since a sum with 0 * infinity isn't one without it.
    """

    def backward(self, saved: Any, grad_output: Array) -> Array:
        """Write the gradients of the parameters, return grad_input."""
        self.check_gradient(grad_output, saved.input.shape)
        return SelfAttention.backward(self, saved, kept(grad_output, saved.counts))

    def _attend(self, input: Array, mask: Array | None, counts: Array | None = None) -> tuple[Array, Any]:
        counts = self.mask(input)
        output, saved = SelfAttention._attend(self, kept(input, counts), mask, counts)
        return kept(output, counts), saved


@dataclass(eq=False)
class PaddedCausalSelfAttention(PaddedAttention, CausalSelfAttention):
    """CausalSelfAttention over sequences of different lengths, (batch, time, embed_dim), as PaddedAttention has it."""


@dataclass(eq=False)
class PaddedMultiheadAttention(PaddedAttention, MultiheadAttention):
    """MultiheadAttention over sequences of different lengths, (batch, time, embed_dim), as PaddedAttention has it."""
