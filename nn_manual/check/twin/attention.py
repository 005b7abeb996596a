"""torch.nn.MultiheadAttention in the form of our layers: of one array, with masks of dropout, lengths and positions."""

from __future__ import annotations

from typing import Any

import torch


class SelfAttention(torch.nn.MultiheadAttention):
    """torch.nn.MultiheadAttention of one array with itself."""

    is_causal = False

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float,
        bias: bool,
        num_kv_heads: int | None = None,
        window: int | None = None,
        positions: str | None = None,
    ) -> None:
        super().__init__(embed_dim, num_heads, dropout, bias, batch_first=True)
        self.num_shared = num_heads // (num_kv_heads or num_heads)
        self.window, self.positions = window, positions
        if self.num_shared > 1:
            num_rows = embed_dim + 2 * embed_dim // self.num_shared
            self.in_proj_weight = torch.nn.Parameter(torch.empty(num_rows, embed_dim))
            if bias:
                self.in_proj_bias = torch.nn.Parameter(torch.empty(num_rows))

    def forward(  # type: ignore[override]  # one array for three
        self, input: torch.Tensor, mask: torch.Tensor | None = None, lengths: torch.Tensor | None = None
    ) -> torch.Tensor:
        """The output, 0 where a sequence has ended."""
        if lengths is None:
            return self.attend(input, mask, self.offset(input))
        place = torch.arange(input.shape[1])
        counts = place < lengths[:, None]
        is_hidden = counts[:, :, None] & ~counts[:, None]
        offset = self.offset(input).expand(len(input), -1, -1, -1).masked_fill(is_hidden[:, None], -torch.inf)
        output = self.attend(input.where(counts[..., None], 0), mask, offset)
        return output.where(counts[..., None], 0)

    def offset(self, input: torch.Tensor) -> torch.Tensor:
        """What is added to the scores, (num_heads, time, time)."""
        place = torch.arange(input.shape[1])
        is_hidden = _hidden(len(place), is_causal=self.is_causal, window=self.window)
        slopes = torch.tensor(_slopes(self.num_heads) if self.positions == "alibi" else [0.0] * self.num_heads)
        cost = slopes.to(input.dtype)[:, None, None] * (place - place[:, None]).abs()
        return (-cost).masked_fill(is_hidden, -torch.inf)

    def attend(self, input: torch.Tensor, mask: torch.Tensor | None, offset: torch.Tensor) -> torch.Tensor:
        """torch's own class where it has all of this. It would draw another mask of dropout than ours, and it has
        neither rotations nor keys of several heads: with these, the definition stands here.
        """
        if mask is None and self.num_shared == 1 and self.positions != "rotary":
            by_head = offset.expand(len(input), -1, -1, -1).flatten(0, 1)
            output, _ = super().forward(input, input, input, attn_mask=by_head)
            return output
        projected = torch.nn.functional.linear(input, self.in_proj_weight, self.in_proj_bias)
        size = self.embed_dim // self.num_shared
        query, key, value = (
            part.reshape(*part.shape[:2], part.shape[2] // self.head_dim, self.head_dim).transpose(1, 2)
            for part in torch.split(projected, [self.embed_dim, size, size], 2)
        )
        if self.positions == "rotary":
            query, key = _rotated(query), _rotated(key)
        key, value = (each.repeat_interleave(self.num_shared, 1) for each in (key, value))
        probability = (query @ key.mT / self.head_dim**0.5 + offset).softmax(-1)
        attended = (probability if mask is None else probability * mask) @ value
        result: torch.Tensor = self.out_proj(attended.transpose(1, 2).flatten(2))
        return result


class CausalSelfAttention(SelfAttention):
    """The same, later times hidden."""

    is_causal = True


class TransformerEncoderLayer(torch.nn.TransformerEncoderLayer):
    """torch's, the batch first, with a mask of what our attention doesn't see."""

    def __init__(self, *, causal: bool, window: int | None, **settings: Any) -> None:
        super().__init__(**settings, batch_first=True)
        self.causal, self.window = causal, window

    def forward(self, src: torch.Tensor) -> torch.Tensor:  # type: ignore[override]  # the mask is a setting
        """The output."""
        return super().forward(src, _hidden(src.shape[1], is_causal=self.causal, window=self.window))


def _hidden(time: int, *, is_causal: bool, window: int | None) -> torch.Tensor:
    """Which times (columns) each time (row) doesn't see."""
    place = torch.arange(time)
    ahead = place - place[:, None]
    is_hidden = ahead.abs() >= (time if window is None else window)
    return is_hidden | (ahead > 0) if is_causal else is_hidden


def _slopes(num_heads: int) -> list[float]:
    """As in ALiBi's paper: for a number that is no power of 2, those of the next lower one, and between them."""
    ratio = 2 ** (-8 / num_heads)
    if num_heads & (num_heads - 1) == 0:
        return [ratio ** (1 + head) for head in range(num_heads)]
    lower = 1 << (num_heads.bit_length() - 1)
    return [*_slopes(lower), *_slopes(2 * lower)[0::2][: num_heads - lower]]


def _rotated(array: torch.Tensor) -> torch.Tensor:
    """Each pair of features, one of either half, as a complex number, times one of length 1."""
    time, width = array.shape[-2:]
    angle = torch.arange(time)[:, None] * 10000 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    turn = torch.polar(torch.ones_like(angle), angle).to(torch.complex(array, array).dtype)
    turned = torch.complex(*array.chunk(2, -1)) * turn
    return torch.cat([turned.real, turned.imag], -1)
