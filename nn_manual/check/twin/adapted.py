"""torch's classes in the form of our layers: one array in and one out."""

from __future__ import annotations

import torch


class LSTM(torch.nn.LSTM):
    """torch.nn.LSTM without the last state."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # type: ignore[override]  # it has no state to start from
        """The output of all times."""
        output: torch.Tensor = super().forward(input)[0]
        return output


class CausalSelfAttention(torch.nn.MultiheadAttention):
    """torch.nn.MultiheadAttention of one array with itself, later times masked."""

    def __init__(self, embed_dim: int, num_heads: int, dropout: float, bias: bool) -> None:
        super().__init__(embed_dim, num_heads, dropout, bias, batch_first=True)

    def forward(self, input: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:  # type: ignore[override]  # one array for three
        """The output. torch would draw another mask of dropout than ours: with one, its definition stands here."""
        time = input.shape[1]
        later = torch.ones(time, time, dtype=torch.bool).triu(1)
        output: torch.Tensor
        if mask is None:
            output, _ = super().forward(input, input, input, attn_mask=later)
            return output
        projected = torch.nn.functional.linear(input, self.in_proj_weight, self.in_proj_bias)
        by_head = projected.reshape(*input.shape[:2], 3, self.num_heads, self.head_dim)
        query, key, value = by_head.permute(2, 0, 3, 1, 4)
        scores = (query @ key.mT / self.head_dim**0.5).masked_fill(later, -torch.inf)
        attended = (scores.softmax(-1) * mask) @ value
        output = self.out_proj(attended.transpose(1, 2).flatten(2))
        return output


ADAPTED: dict[str, type[torch.nn.Module]] = {
    "CausalSelfAttention": CausalSelfAttention,
    "LSTM": LSTM,
}


def name_in_torch(name: str) -> str:
    """What torch.nn calls the class that stands for ours of this name."""
    return ADAPTED[name].mro()[1].__name__ if name in ADAPTED else name
