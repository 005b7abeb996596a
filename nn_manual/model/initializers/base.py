"""What an initializer is, and the fans of a weight."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np

from nn_manual.arrays import Array, size_of


class Initializer(ABC):
    """A distribution for the weights of linear maps and of tables."""

    @classmethod
    def examples(cls) -> list[Initializer]:
        """Initializers of this class, for `nn-manual check FILE.py`."""
        return [cls()]

    @abstractmethod
    def fill(self, weight: Array, generator: np.random.Generator) -> None:
        """Overwrite `weight` with draws from `generator`. An initializer that needs fan_in or fan_out raises ValueError
        for a weight that has none.
        """

    def residual_scale(self, num_residuals: int) -> float:  # noqa: ARG002 - most don't depend on it
        """What multiplies the last filled weight of each Residual of a model with so many of them."""
        return 1.0


def fans(weight: Array) -> tuple[int, int]:
    """How many inputs an output of the weight has, and how many outputs an input has, as torch.nn.init counts them:

        fan_in  = weight.shape[1] * receptive_field
        fan_out = weight.shape[0] * receptive_field

    where receptive_field is the product of all further dimensions, those of a convolution's kernel. Raises ValueError
    for a weight of fewer than two dimensions.
    """
    if weight.ndim < 2:
        raise ValueError(f"fan_in and fan_out need a weight of two or more dimensions, not one of shape {weight.shape}")
    num_outputs, num_inputs, *kernel = weight.shape
    receptive_field = size_of(tuple(kernel))
    return num_inputs * receptive_field, num_outputs * receptive_field


def check_not_negative(name: str, number: float) -> None:
    """Raise ValueError for a setting that is negative or not finite."""
    if not 0 <= number < math.inf:
        raise ValueError(f"{name} must be at least 0 and finite, not {number}")
