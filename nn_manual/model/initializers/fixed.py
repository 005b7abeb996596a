"""Initializers that give a weight one value, or a structure: the identity, an orthogonal or a sparse map."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from nn_manual.arrays import Array
from nn_manual.model.initializers.base import Initializer, check_not_negative, fans


@dataclass(frozen=True)
class Zeros(Initializer):
    """weight = 0."""

    def fill(self, weight: Array, generator: np.random.Generator) -> None:  # noqa: ARG002 - nothing is random here
        """Overwrite with zeros."""
        weight[...] = 0


@dataclass(frozen=True)
class Constant(Initializer):
    """weight = value."""

    value: float

    def fill(self, weight: Array, generator: np.random.Generator) -> None:  # noqa: ARG002 - nothing is random here
        """Overwrite with `value`."""
        weight[...] = self.value


@dataclass(frozen=True)
class Eye(Initializer):
    """weight = 1 on the diagonal and 0 elsewhere: the outputs of a linear map are its first inputs."""

    def fill(self, weight: Array, generator: np.random.Generator) -> None:  # noqa: ARG002 - nothing is random here
        """Overwrite with the identity. Raises ValueError for a weight that is no matrix."""
        _check_matrix(self, weight)
        weight[...] = np.eye(*weight.shape)


@dataclass(frozen=True)
class Dirac(Initializer):
    """weight = 1 at the middle of the kernel from channel c to channel c, and 0 elsewhere: a convolution whose padding
    keeps the size returns its first input channels. Of `groups` groups of output channels, each begins with the first
    input channel that the group has.
    """

    groups: int = 1

    def __post_init__(self) -> None:
        if self.groups < 1:
            raise ValueError(f"groups must be at least 1, not {self.groups}")

    def fill(self, weight: Array, generator: np.random.Generator) -> None:  # noqa: ARG002 - nothing is random here
        """Overwrite with a Dirac delta. Raises ValueError for a weight that isn't a convolution's, and where `groups`
        doesn't divide the number of output channels.
        """
        if weight.ndim < 3:
            raise ValueError(f"Dirac needs the weight of a convolution, not one of shape {weight.shape}")
        if weight.shape[0] % self.groups:
            raise ValueError(f"groups = {self.groups} doesn't divide the {weight.shape[0]} output channels")
        middle = tuple(size // 2 for size in weight.shape[2:])
        weight[...] = 0
        for of_group in np.split(weight, self.groups):
            for channel in range(min(of_group.shape[:2])):
                of_group[(channel, channel, *middle)] = 1


@dataclass(frozen=True)
class Orthogonal(Initializer):
    """weight = gain * Q, as a matrix of one row for each output: its rows are orthonormal, or its columns where it has
    more rows. So it keeps lengths (Saxe et al., 2014).

    A = Q R of a matrix A of normal draws, with a positive diagonal of R: then every Q is equally likely (Mezzadri,
    2007).
    """

    gain: float = 1.0

    def __post_init__(self) -> None:
        check_not_negative("gain", self.gain)

    def fill(self, weight: Array, generator: np.random.Generator) -> None:
        """Overwrite with an orthogonal matrix. Raises ValueError for a weight of fewer than two dimensions."""
        fans(weight)
        matrix = generator.standard_normal((weight.shape[0], weight[0].size if len(weight) else 0))
        is_wide = matrix.shape[0] < matrix.shape[1]
        q, r = np.linalg.qr(matrix.T if is_wide else matrix)
        q *= np.where(np.diag(r) < 0, -1.0, 1.0)
        weight[...] = self.gain * (q.T if is_wide else q).reshape(weight.shape)


@dataclass(frozen=True)
class Sparse(Initializer):
    """Normal with standard deviation std, but ceil(sparsity * rows) weights of each column are 0, drawn anew for each:
    every input begins with connections to few outputs (Martens, 2010).
    """

    sparsity: float
    std: float = 0.01

    def __post_init__(self) -> None:
        if not 0 <= self.sparsity <= 1:
            raise ValueError(f"sparsity must be from 0 to 1, not {self.sparsity}")
        check_not_negative("std", self.std)

    def fill(self, weight: Array, generator: np.random.Generator) -> None:
        """Overwrite with normal draws and zeros. Raises ValueError for a weight that is no matrix."""
        _check_matrix(self, weight)
        order = generator.permuted(np.tile(np.arange(len(weight))[:, np.newaxis], weight.shape[1]), axis=0)
        is_zero = order < math.ceil(self.sparsity * len(weight))
        weight[...] = np.where(is_zero, 0.0, generator.normal(0, self.std, weight.shape))


def _check_matrix(initializer: Initializer, weight: Array) -> None:
    if weight.ndim != 2:
        name = type(initializer).__name__
        raise ValueError(f"{name} needs a weight of two dimensions, not one of shape {weight.shape}")
