"""Initializers whose weights have a fixed value or structure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nn_manual.arrays import Array
from nn_manual.model.initializers.base import Initializer


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
