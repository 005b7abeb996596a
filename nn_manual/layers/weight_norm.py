"""Weight normalization: length and direction of a weight are parameters of their own."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.layers.base import Layer
from nn_manual.layers.convolution import Conv1d
from nn_manual.layers.embedding import Embedding
from nn_manual.layers.linear import Linear
from nn_manual.layers.parametrized import Parametrized


class _Direction(NamedTuple):
    """What backward needs: original0; original1 / norm; and norm, which has 1 along each of the axes."""

    length: Array
    direction: Array
    norm: Array


@dataclass(eq=False)
class WeightNorm(Parametrized):
    """A layer whose weight has length and direction as two parameters: `WeightNorm(Linear(8, 4))`.

    Parameters, named as torch.nn.utils.parametrizations.weight_norm names them: those of the layer but the weight, then
    parametrizations.weight.original0 with the lengths, and parametrizations.weight.original1, shaped as the weight,
    with the directions. `axes` are all axes of the weight but `dim`: each entry along `dim` has a length. A `dim` below
    -1 counts from the end. Where `dim` is None or -1, `axes` are all, and the whole weight has one length, of shape ().

        norm           = sqrt((original1**2).sum(axis=axes, keepdims=True))
        direction      = original1 / norm
        weight         = original0 * direction
        grad_original0 = (grad_weight * direction).sum(axis=axes, keepdims=True)
        grad_original1 = original0 / norm * (grad_weight - direction * grad_original0)

    Derivation, for one entry along `dim`, with v = original1, n = norm, u = v / n and g = original0: w[i] = g u[i], so
    d w[i] / d g = u[i]. And d n / d v[j] = v[j] / n = u[j], so

        d w[i] / d v[j] = g ([i = j] / n - v[i] u[j] / n**2) = g / n ([i = j] - u[i] u[j])

    So grad_v[j] = g / n (grad_w[j] - u[j] sum_i grad_w[i] u[i]), whose sum is grad_g. It is orthogonal to v: a step
    only turns the direction. The weight begins as the layer's, so original1 is the weight, and original0 its length.

    Source: Salimans and Kingma, 2016. A direction of zeros makes a weight that is not a number, as in torch. Raises
    ValueError for a `dim` that the weight hasn't, and for a layer that Parametrized doesn't take.
    """

    dim: int | None = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        num_dims = len(self.weight_shape)
        if self.dim is not None and not -num_dims <= self.dim < num_dims:
            raise ValueError(
                f"dim must be one of the {num_dims} dimensions of {self.name}, or null or -1 for all together, "
                f"not {self.dim}"
            )
        along = None if self.dim is None or self.dim == -1 else self.dim % num_dims
        #: Over which the length is summed.
        self.axes = tuple(axis for axis in range(num_dims) if axis != along)
        self._length_shape = () if along is None else tuple(
            1 if axis in self.axes else size for axis, size in enumerate(self.weight_shape)
        )

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """A length for each output, for each input, and for all; without bias; images, and a table."""
        return [
            (cls(Linear(3, 2)), (4, 3)),
            (cls(Linear(3, 3, bias=False), dim=1), (3, 3)),
            (cls(Linear(2, 3), dim=None), (4, 2)),
            (cls(Conv1d(2, 3, 2), dim=1), (2, 2, 4)),
            (cls(Embedding(5, 3)), (4, 2)),
        ]

    def original_shapes(self) -> dict[str, Shape]:
        """original0 and original1."""
        return {"original0": self._length_shape, "original1": self.weight_shape}

    def weight_of(self, originals: SimpleNamespace) -> tuple[Array, _Direction]:
        """original0 * direction."""
        norm = self._norm(originals.original1)
        direction = originals.original1 / norm
        return originals.original0 * direction, _Direction(originals.original0, direction, norm)

    def write_grads(self, saved: _Direction, grad_weight: Array, grads: SimpleNamespace) -> None:
        """grad_original0 and grad_original1."""
        length, direction, norm = saved
        grad_length = (grad_weight * direction).sum(axis=self.axes, keepdims=True)
        grads.original0[...] = grad_length.reshape(grads.original0.shape)
        grads.original1[...] = length / norm * (grad_weight - direction * grad_length)

    def become(self, originals: SimpleNamespace) -> None:
        """original0 is the length of original1."""
        originals.original0[...] = self._norm(originals.original1).reshape(originals.original0.shape)

    def _norm(self, original1: Array) -> Array:
        norm: Array = np.sqrt((original1 * original1).sum(axis=self.axes, keepdims=True))
        return norm
