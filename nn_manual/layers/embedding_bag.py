"""EmbeddingBag: one vector for several rows of a table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.layers.base import Layer
from nn_manual.layers.embedding import OfTable
from nn_manual.layers.fast_forms import rows
from nn_manual.layers.with_lengths import LayerWithLengths

Mode = Literal["sum", "mean", "max"]


class _Memory(NamedTuple):
    """What backward needs: the indices, and what each row weighs in the output, (batch, bag, 1 or embedding_dim)."""

    input: Array
    share: Array


@dataclass(eq=False)
class EmbeddingBag(OfTable):
    """The mean of a table's rows for each example, their sum or their largest numbers: a bag of words. Input (batch,
    bag) int64 to output (batch, embedding_dim).

    Parameter: weight (num_embeddings, embedding_dim). kept, (batch, bag, 1), is 0 where an index is `padding_idx`, and
    otherwise 1. first, (batch, bag, embedding_dim), is 1 at the first of the bag's largest numbers that are kept, and
    otherwise 0. one_hot (indices, num_embeddings) is 1 at each index and 0 elsewhere.

        share       = kept                                               where mode = sum
        share       = kept / maximum(kept.sum(axis=1, keepdims=True), 1) where mode = mean
        share       = first                                              where mode = max
        output      = (share * weight[input]).sum(axis=1)
        grads       = share * expand_dims(grad_output, 1)
        grad_weight = one_hot.T @ rows(grads)

    Row `padding_idx` of the weight starts as 0, and its gradient is 0: so it stays 0. A bag of this index alone puts
    out 0.

    Derivation: the output is linear in the rows, and share holds its coefficients. Near a bag whose largest number
    stands alone, the maximum is that number; where several are tied, torch gives all of the gradient to the first. The
    gradients of equal indices add, as in Embedding. An index has no gradient: backward returns None.

    Raises ValueError as Embedding does, for another mode, and for an input that isn't (batch, bag) or whose bags are
    empty.
    """

    num_embeddings: int
    embedding_dim: int
    mode: Mode = field(default="mean", kw_only=True)  # before it, torch has max_norm
    padding_idx: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mode not in get_args(Mode):
            raise ValueError(f"mode must be one of {', '.join(get_args(Mode))}, not {self.mode!r}")

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Each mode, with a padding row and without, and bags of one index."""
        return [
            (cls(5, 3), (4, 3)),
            (cls(3, 2, mode="sum", padding_idx=1), (4, 3)),
            (cls(3, 2, padding_idx=-1), (5, 2)),
            (cls(4, 3, mode="max"), (5, 2)),
            (cls(4, 4, mode="max", padding_idx=0), (4, 4)),
            (cls(3, 3), (3, 1)),
        ]

    def output_shape(self, input_shape: Shape) -> Shape:
        """(batch, bag) to (batch, embedding_dim)."""
        if len(input_shape) != 2 or input_shape[1] < 1:
            raise ValueError(f"EmbeddingBag takes (batch, bag), the input has shape {input_shape}")
        return (input_shape[0], self.embedding_dim)

    def num_products(self, input_shape: Shape) -> int:
        """One for each number of each row."""
        return input_shape[0] * input_shape[1] * self.embedding_dim

    def forward(self, input: Array) -> tuple[Array, _Memory]:
        """The output, and what backward needs."""
        self.output_shape(input.shape)
        self.check_indices(input)
        found = self.param.weight[input]
        share = self._weight(input, found).astype(found.dtype)
        return (share * found).sum(axis=1), _Memory(input, share)

    def backward(self, saved: _Memory, grad_output: Array) -> None:  # type: ignore[override]  # an index has no gradient
        """Write grad_weight."""
        input, share = saved
        self.check_gradient(grad_output, self.output_shape(input.shape))
        grads = np.broadcast_to(share * grad_output[:, np.newaxis], (*input.shape, self.embedding_dim))
        self.write_grad_weight(input.ravel(), rows(grads))

    def _kept(self, input: Array) -> Array:
        """Which indices count, (batch, bag)."""
        padding = -1 if self.padding_idx is None else self.padding_idx % self.num_embeddings
        counts: Array = input != padding
        return counts

    def _weight(self, input: Array, found: Array) -> Array:
        """`share`, given the rows (batch, bag, embedding_dim)."""
        kept = self._kept(input)[:, :, np.newaxis]
        share: Array = kept
        if self.mode == "mean":
            share = kept / np.maximum(kept.sum(axis=1, keepdims=True), 1)
        if self.mode == "max":
            # Compiled, argmax runs along the innermost axis alone.
            largest = np.where(kept, found, -np.inf).swapaxes(1, 2).copy().argmax(axis=-1)
            first = np.arange(input.shape[1])[:, np.newaxis] == largest[:, np.newaxis]
            share = np.where(kept, first, np.zeros_like(first))
        return share


@dataclass(eq=False)
class PaddedEmbeddingBag(EmbeddingBag, LayerWithLengths):
    """EmbeddingBag over bags of different lengths, (batch, bag): the indices up to each bag's length count, and no
    others.
    """

    def _kept(self, input: Array) -> Array:
        """As in every bag, up to its length."""
        return super()._kept(input) & self.mask(input)
