"""Layers that only change the shape: numbers stay as they are, and each gradient goes back to its number's place."""

from __future__ import annotations

import math
from dataclasses import dataclass

from nn_manual.arrays import Array, Shape
from nn_manual.layers.base import Layer


@dataclass(eq=False)
class Flatten(Layer):
    """The dimensions from `start_dim` to `end_dim`, both included, become one. Dimension 0 is the batch.

        output     = input.reshape(output_shape)
        grad_input = grad_output.reshape(input_shape)

    Derivation: output number k, counted in row order, is input number k. So is its gradient.
    Raises ValueError for dimensions that the input doesn't have or that are in the wrong order, and for a gradient that
    is not shaped as the output.
    """

    start_dim: int = 1
    end_dim: int = -1

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """All but the batch, the batch with the next dimension, and dimensions in the middle."""
        return [(cls(), (3, 2, 4)), (cls(0, 1), (3, 2, 4)), (cls(1, 2), (2, 3, 3, 2)), (cls(-1), (3, 3))]

    def output_shape(self, input_shape: Shape) -> Shape:
        """The input's shape, with the product of the sizes from start_dim to end_dim in their place."""
        num_dims = max(1, len(input_shape))  # as in torch: a number alone becomes a vector of one
        start, end = (dim + num_dims if dim < 0 else dim for dim in (self.start_dim, self.end_dim))
        if not 0 <= start <= end < num_dims:
            raise ValueError(
                f"Flatten joins the dimensions {self.start_dim} to {self.end_dim}, the input has shape {input_shape}"
            )
        return (*input_shape[:start], math.prod(input_shape[start : end + 1]), *input_shape[end + 1 :])

    def forward(self, input: Array) -> tuple[Array, Shape]:
        """Saves the input's shape."""
        return input.reshape(self.output_shape(input.shape)), input.shape

    def backward(self, saved: Shape, grad_output: Array) -> Array:
        """The gradient in the input's shape."""
        self.check_gradient(grad_output, self.output_shape(saved))
        return grad_output.reshape(saved)


@dataclass(eq=False)
class Identity(Layer):
    """The input itself, any shape: it stands where a layer may or may not be.

        output     = input
        grad_input = grad_output

    Derivation: each output is its input, so its derivative is 1. Raises ValueError for a gradient that is not shaped as
    the output.
    """

    def forward(self, input: Array) -> tuple[Array, Shape]:
        """Saves the input's shape."""
        return input, input.shape

    def backward(self, saved: Shape, grad_output: Array) -> Array:
        """The gradient itself."""
        self.check_gradient(grad_output, saved)
        return grad_output


@dataclass(eq=False)
class Unflatten(Layer):
    """Dimension `dim` becomes several, of the sizes `unflattened_size`. One size may be -1: then it follows from the
    others. Dimension 0 is the batch.

        output     = input.reshape(output_shape)
        grad_input = grad_output.reshape(input_shape)

    Derivation: as for Flatten, which is the inverse. Raises ValueError if the product of the sizes isn't the
    dimension's, for a dimension that the input doesn't have, and for a gradient that is not shaped as the output.
    """

    dim: int
    unflattened_size: list[int]

    def __post_init__(self) -> None:
        sizes = self.unflattened_size
        if not sizes or list(sizes).count(-1) > 1 or min(sizes) < -1 or (-1 in sizes and 0 in sizes):
            raise ValueError(
                f"unflattened_size must be sizes of at least 0, or one -1 and sizes of at least 1, not {sizes}"
            )

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """The last dimension, one in the middle, and a size that is left open."""
        return [(cls(1, [2, 3]), (4, 6)), (cls(1, [-1, 2]), (3, 4, 2)), (cls(-1, [2, 2]), (4, 4))]

    def output_shape(self, input_shape: Shape) -> Shape:
        """The input's shape, with the sizes in the place of dim."""
        dim = self.dim + len(input_shape) if self.dim < 0 else self.dim
        known = math.prod(size for size in self.unflattened_size if size != -1)
        fits = 0 <= dim < len(input_shape) and (
            input_shape[dim] % known == 0 if -1 in self.unflattened_size else input_shape[dim] == known
        )
        if not fits:
            raise ValueError(
                f"Unflatten makes {list(self.unflattened_size)} of dimension {self.dim}, "
                f"the input has shape {input_shape}"
            )
        sizes = (input_shape[dim] // known if size == -1 else size for size in self.unflattened_size)
        return (*input_shape[:dim], *sizes, *input_shape[dim + 1 :])

    def forward(self, input: Array) -> tuple[Array, Shape]:
        """Saves the input's shape."""
        return input.reshape(self.output_shape(input.shape)), input.shape

    def backward(self, saved: Shape, grad_output: Array) -> Array:
        """The gradient in the input's shape."""
        self.check_gradient(grad_output, self.output_shape(saved))
        return grad_output.reshape(saved)
