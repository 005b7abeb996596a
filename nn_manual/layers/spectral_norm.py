"""Spectral normalization: a weight divided by its largest singular value."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from nn_manual.arrays import Array, Shape, size_of
from nn_manual.layers.base import Layer
from nn_manual.layers.convolution import Conv1d
from nn_manual.layers.embedding import Embedding
from nn_manual.layers.linear import Linear
from nn_manual.layers.parametrized import Parametrized
from nn_manual.layers.transposed_convolution import TransposedConvolution
from nn_manual.layers.with_buffers import LayerWithBuffers

#: How many power iterations the first singular vectors get, as in torch.
FIRST_ITERATIONS = 15


class _Singular(NamedTuple):
    """What backward needs: left and right singular vector, the singular value (1,), and the weight."""

    left: Array
    right: Array
    value: Array
    weight: Array


@dataclass(eq=False)
class SpectralNorm(Parametrized, LayerWithBuffers):
    """A layer whose weight is divided by its largest singular value: `SpectralNorm(Linear(8, 4))`.

    Parameters, named as torch.nn.utils.parametrizations.spectral_norm names them: those of the layer but the weight,
    then parametrizations.weight.original, shaped as the weight. Buffers: parametrizations.weight.0._u (rows,) and
    parametrizations.weight.0._v (columns,), the singular vectors as far as they are known. `matrix` (rows, columns) is
    the original with the dimension `dim` in front, and all others as one; `normalize` divides a vector by the larger of
    its length and eps. In training, so many times as n_power_iterations says:

        u = normalize(matrix @ v)
        v = normalize(matrix.T @ u)

    and then, in training with these vectors, and in evaluation with those that were kept:

        value         = u @ matrix @ v
        weight        = original / value
        total         = (grad_weight * weight).sum()
        grad_original = (grad_weight - total * outer(u, v)) / value

    where outer(u, v) is shaped as the weight. So the map of the input to the output stretches nothing more than by a
    factor of about 1. After a training step, u and v are kept.

    Derivation: u and v count as constants, as in torch. value = sum_rc u[r] matrix[r, c] v[c], so d value /
    d matrix[r, c] = u[r] v[c]. With w = original / value, d w[i] / d original[j] = [i = j] / value - original[i]
    outer[j] / value**2, so grad_original[j] = grad_w[j] / value - outer[j] sum_i grad_w[i] w[i] / value. At exact
    singular vectors the gradient is also that of value as a function of the matrix: moves of u and v, which have length
    1, change it only in second order.

    `dim` is 0 where it is None, and 1 for a transposed convolution: the dimension of the outputs. u and v begin as
    random directions that 15 iterations have turned. Source: Miyato et al., 2018. A weight of zeros makes one that is
    not a number, as in torch. Raises ValueError for n_power_iterations below 1, a negative eps, a `dim` that the weight
    hasn't, a weight of one dimension, and for a layer that Parametrized doesn't take.
    """

    n_power_iterations: int = 1
    eps: float = 1e-12
    dim: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_power_iterations < 1:
            raise ValueError(f"n_power_iterations must be at least 1, not {self.n_power_iterations}")
        if not self.eps >= 0:
            raise ValueError(f"eps must be at least 0, not {self.eps}")
        num_dims = len(self.weight_shape)
        if num_dims < 2:
            raise ValueError(f"SpectralNorm takes a matrix, or more dimensions: {self.name} is {self.weight_shape}")
        dim = int(isinstance(self.layer, TransposedConvolution)) if self.dim is None else self.dim
        if not -num_dims <= dim < num_dims:
            raise ValueError(f"dim must be one of the {num_dims} dimensions of {self.name}, not {dim}")
        self._front = dim % num_dims

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """One iteration and several, without bias, along another dimension, images, and a table."""
        return [
            (cls(Linear(3, 2)), (4, 3)),
            (cls(Linear(3, 3, bias=False), n_power_iterations=3, dim=1), (3, 3)),
            (cls(Conv1d(2, 3, 2), eps=1e-6, dim=1), (2, 2, 4)),
            (cls(Embedding(5, 3)), (4, 2)),
        ]

    def original_shapes(self) -> dict[str, Shape]:
        """original."""
        return {"original": self.weight_shape}

    def buffer_shapes(self) -> dict[str, Shape]:
        """_u (rows,) and _v (columns,)."""
        num_rows = self.weight_shape[self._front]
        return {self._full("0._u"): (num_rows,), self._full("0._v"): (size_of(self.weight_shape) // num_rows,)}

    def reset_parameters(self, generator: np.random.Generator) -> None:
        """As the layer's; u and v from random directions."""
        for vector in vars(self.buffer).values():
            vector[...] = self._normalize(generator.standard_normal(vector.shape))
        super().reset_parameters(generator)

    def become(self, originals: SimpleNamespace) -> None:
        """u and v are brought nearer to the singular vectors."""
        self._keep(*self._iterate(self._matrix(originals.original), FIRST_ITERATIONS))

    def weight_of(self, originals: SimpleNamespace) -> tuple[Array, _Singular]:
        """original / value, after the iterations of a training step."""
        matrix = self._matrix(originals.original)
        left, right = self._iterate(matrix, self.n_power_iterations)
        value = self._value(matrix, left, right)
        weight = originals.original / value
        return weight, _Singular(left, right, value, weight)

    def infer(self, input: Array) -> Array:
        """The layer's output, with the vectors that were kept."""
        original = self._originals(self.param).original
        value = self._value(self._matrix(original), *vars(self.buffer).values())
        return self._with(original / value).infer(input)

    def write_grads(self, saved: _Singular, grad_weight: Array, grads: SimpleNamespace) -> None:
        """grad_original."""
        left, right, value, weight = saved
        total = (grad_weight * weight).sum(keepdims=True)
        outer = (left[:, np.newaxis] * right).reshape(self._moved_shape)
        grads.original[...] = (grad_weight - total * np.moveaxis(outer, 0, self._front)) / value

    def update_buffers(self, saved: tuple[object, Array, _Singular]) -> None:
        """Keep u and v."""
        self._keep(saved[2].left, saved[2].right)

    def _keep(self, left: Array, right: Array) -> None:
        for vector, found in zip(vars(self.buffer).values(), (left, right), strict=True):
            vector[...] = found

    @property
    def _moved_shape(self) -> Shape:
        """That of the weight, with the dimension `dim` in front."""
        shape, front = self.weight_shape, self._front
        return (shape[front], *shape[:front], *shape[front + 1 :])

    def _matrix(self, original: Array) -> Array:
        return np.moveaxis(original, self._front, 0).reshape(self._moved_shape[0], -1)

    def _iterate(self, matrix: Array, count: int) -> tuple[Array, Array]:
        """u and v after so many power iterations from those that were kept."""
        _, right = vars(self.buffer).values()
        for _ in range(count):
            left = self._normalize(matrix @ right)
            right = self._normalize(matrix.T @ left)
        return left, right

    def _normalize(self, vector: Array) -> Array:
        length = np.sqrt((vector * vector).sum(keepdims=True))
        normalized: Array = vector / np.maximum(length, self.eps)
        return normalized

    def _value(self, matrix: Array, left: Array, right: Array) -> Array:
        """u @ matrix @ v, (1,)."""
        value: Array = (left * (matrix @ right)).sum(keepdims=True)
        return value
