"""What an initializer is, and the fans of a weight."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod

import numpy as np

from nn_manual.arrays import Array, Shape, size_of
from nn_manual.defaults import is_of_package


class NotFilled(ValueError):  # noqa: N818 - says what happened
    """An initializer has left out a number of a weight, or has taken one from elsewhere than its generator."""


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


def filled(initializer: Initializer, shape: Shape, generator: np.random.Generator) -> Array:
    """A float64 weight of this shape, which the initializer has filled with draws from the generator. Raises ValueError
    where the initializer refuses the shape; NotFilled where a number is left out or isn't finite, and where the
    generator alone doesn't determine the numbers. A second draw shows this, of an initializer that isn't the package's.
    """
    before, weight = copy.deepcopy(generator), np.full(shape, np.nan)
    initializer.fill(weight, generator)
    name = type(initializer).__name__
    if not np.isfinite(weight).all():
        raise NotFilled(f"{name}.fill must overwrite each number of the weight by a finite one: weight[...] = ...")
    if not is_of_package(type(initializer)):
        again = np.full(shape, np.nan)
        initializer.fill(again, before)
        if not np.array_equal(weight, again):
            raise NotFilled(f"{name}.fill drew other numbers the second time: it must draw from its generator alone")
    return weight


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
