"""The kinds of self-attention: which times a time sees."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from nn_manual.arrays import Array
from nn_manual.layers.attention import SelfAttention


@dataclass(eq=False)
class CausalSelfAttention(SelfAttention):
    """Multi-head self-attention in which no time sees a later one, input and output (batch, time, embed_dim)."""

    def _scores(self, query: Array, key: Array) -> Array:
        """As in every self-attention; a later time is hidden."""
        scores: Array = query @ key.mT.copy()  # half the time of a product with a view
        scores += _causal(scores.shape[-1], scores.dtype)
        return scores


@dataclass(eq=False)
class MultiheadAttention(SelfAttention):
    """Multi-head self-attention in which each time sees all, input and output (batch, time, embed_dim).

    It is torch.nn.MultiheadAttention of one array with itself, the batch first.
    """


@functools.lru_cache(maxsize=8)
def _causal(time: int, dtype: np.dtype[Any]) -> Array:
    """`hidden`: 0, and -infinity above the diagonal, (time, time)."""
    mask = np.triu(np.full((time, time), -np.inf, dtype), 1)
    mask.setflags(write=False)  # every call shares it
    return mask
