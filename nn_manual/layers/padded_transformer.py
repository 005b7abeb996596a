"""The encoder of a Transformer over sequences of different lengths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from nn_manual.arrays import Array
from nn_manual.layers.attention import SelfAttention
from nn_manual.layers.self_attention import PaddedCausalSelfAttention, PaddedMultiheadAttention
from nn_manual.layers.transformer import TransformerEncoderLayer
from nn_manual.layers.with_lengths import LayerWithLengths, kept


@dataclass(eq=False)
class PaddedTransformerEncoderLayer(TransformerEncoderLayer, LayerWithLengths):
    """TransformerEncoderLayer over sequences of different lengths, as torch's with a src_key_padding_mask: input and
    output (batch, time, d_model). self_attn is a PaddedMultiheadAttention, or a PaddedCausalSelfAttention.

    With counts, (batch, time, 1), true up to each sequence's length, and layer, the same one without lengths:

        output     = where(counts, layer(where(counts, input, 0)), 0)
        grad_input = layer's grad_input of where(counts, grad_output, 0)

    Derivation: attention alone takes numbers of other times, and those of no padding. All else is as PaddedAttention
    has it.
    """

    attention: ClassVar[dict[bool, type[SelfAttention]]] = {
        True: PaddedCausalSelfAttention,
        False: PaddedMultiheadAttention,
    }

    def forward(self, input: Array) -> tuple[Array, Any]:
        """The output, and what each layer saved, with the mask of the lengths."""
        self.output_shape(input.shape)
        counts = self.mask(input)
        output, saved = TransformerEncoderLayer.forward(self, kept(input, counts))
        return kept(output, counts), (saved, counts)

    def backward(self, saved: Any, grad_output: Array) -> Array:
        """Overwrite the layers' gradients and return grad_input."""
        of_layers, counts = saved
        self.check_gradient(grad_output, (*counts.shape[:2], self.d_model))
        return TransformerEncoderLayer.backward(self, of_layers, kept(grad_output, counts))

    def infer(self, input: Array) -> Array:
        """The output in evaluation."""
        self.output_shape(input.shape)
        counts = self.mask(input)
        return kept(TransformerEncoderLayer.infer(self, kept(input, counts)), counts)

    def reference(self, input: Any, *layers: Callable[[Any], Any], lengths: Any) -> Any:  # type: ignore[override]  # it has lengths, too
        """The same on torch tensors."""
        place = input.new_ones(input.shape[1]).cumsum(0)
        counts = (place <= lengths[:, None])[..., None]
        return super().reference(input.where(counts, 0), *layers).where(counts, 0)
