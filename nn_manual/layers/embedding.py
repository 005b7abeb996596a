"""Embedding: a table of vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import coo_array

from nn_manual.arrays import Array, Shape, one_operation
from nn_manual.layers.base import Layer
from nn_manual.messages.text import counted


class OfTable(Layer):
    """A layer that looks rows up in a table: its parameter weight, (num_embeddings, embedding_dim). Row `padding_idx`
    starts as 0, and its gradient is 0: so it stays 0.
    """

    num_embeddings: int
    embedding_dim: int
    padding_idx: int | None

    def __post_init__(self) -> None:
        for name in ("num_embeddings", "embedding_dim"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.padding_idx is not None and not -self.num_embeddings <= self.padding_idx < self.num_embeddings:
            rows = counted(self.num_embeddings, "row")
            raise ValueError(f"padding_idx must be one of {rows}, not {self.padding_idx}")
        self.domain = range(self.num_embeddings)

    def parameter_shapes(self) -> dict[str, Shape]:
        """weight (num_embeddings, embedding_dim)."""
        return {"weight": (self.num_embeddings, self.embedding_dim)}

    def reset_parameters(self, generator: np.random.Generator) -> None:
        """weight normal with standard deviation 1, as torch.nn.Embedding; the padding row 0."""
        self.param.weight[...] = generator.standard_normal(self.param.weight.shape)
        self._zero_padding_row()

    def initialize(self, fill: Callable[[str], None]) -> None:
        """weight from the initializer; the padding row 0."""
        fill("weight")
        self._zero_padding_row()

    def _zero_padding_row(self) -> None:
        if self.padding_idx is not None:
            self.param.weight[self.padding_idx] = 0

    def check_indices(self, input: Array) -> None:
        """Raise ValueError for an input that isn't int64."""
        if input.dtype != np.int64:
            raise ValueError(f"{type(self).__name__} takes int64 indices, not {input.dtype}")

    def write_grad_weight(self, indices: Array, grads: Array) -> None:
        """grad_weight, given the gradient of the row at each index, (indices, embedding_dim)."""
        self.grad.weight[...] = one_hot_product(indices, grads, self.num_embeddings)
        if self.padding_idx is not None:
            self.grad.weight[self.padding_idx] = 0


@dataclass(eq=False)
class Embedding(OfTable):
    """A row of a table for each index, input (...) int64 to output (..., embedding_dim).

    Parameter: weight (num_embeddings, embedding_dim). `indices` is the input and `grads` the gradient of the output,
    both with all leading dimensions as one; one_hot (indices, num_embeddings) is 1 at each index and 0 elsewhere:

        output      = weight[input]
        grad_weight = one_hot.T @ grads

    Row `padding_idx` of the weight starts as 0, and its gradient is 0: so it stays 0.

    Derivation: output[n, d] = weight[index[n], d] = sum_v one_hot[n, v] weight[v, d], so
    grad_weight[v, d] = sum_n one_hot[n, v] grads[n, d]: the gradients of equal indices add. An index has no gradient:
    backward returns None. one_hot is a sparse matrix, so its zeros cost nothing.

    Raises ValueError for an input that isn't int64. The domain is the indices 0 ... num_embeddings - 1: a model refuses
    any other with ValueError, and so does backward. A negative `padding_idx` counts from the end.
    """

    num_embeddings: int
    embedding_dim: int
    padding_idx: int | None = None

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """One index and several for each example, with a padding row and without."""
        return [(cls(5, 3), (4,)), (cls(3, 2, padding_idx=1), (4, 3)), (cls(4, 4, padding_idx=-1), (4, 2, 2))]

    def output_shape(self, input_shape: Shape) -> Shape:
        """(...) to (..., embedding_dim)."""
        return (*input_shape, self.embedding_dim)

    def num_products(self, input_shape: Shape) -> int:  # noqa: ARG002 - none, whatever the shape
        """0: forward looks up."""
        return 0

    def forward(self, input: Array) -> tuple[Array, Array]:
        """The rows, and the indices, which backward needs."""
        self.check_indices(input)
        return self.param.weight[input], input

    def backward(self, saved: Array, grad_output: Array) -> None:  # type: ignore[override]  # an index has no gradient
        """Write grad_weight."""
        indices = saved.ravel()
        self.check_gradient(grad_output, self.output_shape(saved.shape))
        self.write_grad_weight(indices, grad_output.reshape(-1, self.embedding_dim))


@dataclass(eq=False)
class LearnedPositions(Layer):
    """A vector for each position in time, added: input (batch, time, embedding_dim) to output of the same shape.

    Parameter: weight (num_positions, embedding_dim). `time` is the length of the input:

        output      = input + weight[:time]
        grad_input  = grad_output
        grad_weight = pad(grad_output.sum(axis=0), [(0, num_positions - time), (0, 0)])

    Derivation: output[n, t, d] = input[n, t, d] + weight[t, d]. A weight is used once for each example. A row beyond
    the length is never used: its gradient is 0.

    Raises ValueError for an input of another size, or longer than num_positions, and for a gradient that is not shaped
    as the output.
    """

    num_positions: int
    embedding_dim: int

    def __post_init__(self) -> None:
        for name in ("num_positions", "embedding_dim"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """As many positions as there can be, fewer, and all square."""
        return [(cls(4, 2), (3, 4, 2)), (cls(5, 3), (2, 3, 3)), (cls(3, 3), (3, 3, 3))]

    def parameter_shapes(self) -> dict[str, Shape]:
        """weight (num_positions, embedding_dim)."""
        return {"weight": (self.num_positions, self.embedding_dim)}

    def reset_parameters(self, generator: np.random.Generator) -> None:
        """weight normal with standard deviation 1, as torch.nn.Embedding."""
        self.param.weight[...] = generator.standard_normal(self.param.weight.shape)

    def initialize(self, fill: Callable[[str], None]) -> None:
        """weight from the initializer."""
        fill("weight")

    def output_shape(self, input_shape: Shape) -> Shape:
        """The input's shape."""
        if len(input_shape) != 3 or input_shape[2] != self.embedding_dim or input_shape[1] > self.num_positions:
            raise ValueError(
                f"LearnedPositions takes (batch, time, {self.embedding_dim}) with a time of at most "
                f"num_positions={self.num_positions}, the input has shape {input_shape}"
            )
        return input_shape

    def longest_sum(self, input_shape: Shape) -> int:
        """Over the batch."""
        return input_shape[0]

    def num_products(self, input_shape: Shape) -> int:  # noqa: ARG002 - none, whatever the shape
        """0: forward adds."""
        return 0

    def forward(self, input: Array) -> tuple[Array, Shape]:
        """The output, and the input's shape, which backward needs."""
        self.output_shape(input.shape)
        return input + self.param.weight[: input.shape[1]], input.shape

    def backward(self, saved: Shape, grad_output: Array) -> Array:
        """Write grad_weight, return grad_input."""
        self.check_gradient(grad_output, saved)
        time = saved[1]
        np.sum(grad_output, axis=0, out=self.grad.weight[:time])
        self.grad.weight[time:] = 0
        return grad_output

    def reference(self, input: Any, weight: Any) -> Any:
        """The definition, on torch tensors."""
        return input + weight[: input.shape[1]]


@one_operation
def one_hot_product(indices: Array, values: Array, num_rows: int) -> Array:
    """one_hot.T @ values, (num_rows, features), for values (indices, features); one_hot (indices, num_rows) is 1 at
    each index and 0 elsewhere. Raises ValueError for an index outside 0 ... num_rows - 1.
    """
    ones = np.ones(len(indices), values.dtype)
    # coo_array checks the coordinates: an index outside would be written outside of the memory.
    one_hot = coo_array((ones, (np.arange(len(indices)), indices)), shape=(len(indices), num_rows))
    product: Array = one_hot.T @ values
    return product
