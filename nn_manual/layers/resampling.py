"""Images of another size: a linear map along each dimension, as means over bins or as interpolation."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.layers.base import Layer


class AlongEachDimension(Layer):
    """A matrix (output size, size) for each dimension of an image, input (batch, channels, *size)."""

    @abstractmethod
    def matrices(self, input_shape: Shape, dtype: np.dtype[np.generic]) -> Iterator[Array]:
        """The matrix of each dimension."""

    def forward(self, input: Array) -> tuple[Array, Shape]:
        """Saves the input's shape."""
        self.output_shape(input.shape)
        output = input
        for axis, matrix in enumerate(self.matrices(input.shape, input.dtype), start=2):
            output = _along(matrix, output, axis)
        return output, input.shape

    def backward(self, saved: Shape, grad_output: Array) -> Array:
        """Give each number of the input its part of the gradient."""
        self.check_gradient(grad_output, self.output_shape(saved))
        grad_input = grad_output
        for axis, matrix in enumerate(self.matrices(saved, grad_output.dtype), start=2):
            grad_input = _along(matrix.T, grad_input, axis)
        return grad_input


def _along(matrix: Array, images: Array, axis: int) -> Array:
    """The product with each vector along an axis."""
    if axis == images.ndim - 1:
        return images @ matrix.T
    before, behind = images.shape[:axis], images.shape[axis + 1 :]
    product: Array = matrix @ images.reshape(*before, images.shape[axis], math.prod(behind))
    return product.reshape(*before, len(matrix), *behind)
