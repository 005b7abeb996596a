"""The kinds of input that are known to hide bugs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nn_manual.arrays import DTYPES, Array, Shape

#: The kinds of values that inputs and upstream gradients are drawn from. Scattered ones, of every magnitude, find the
#: eps that hides at 1, and the exp that overflows.
KINDS: dict[str, Callable[[np.random.Generator, Shape], Array]] = {
    "random": lambda generator, shape: generator.standard_normal(shape),
    "negative": lambda generator, shape: -np.abs(generator.standard_normal(shape)),
    "tied": lambda generator, shape: generator.choice([-1.0, 0.0, 1.0], shape),
    "zero": lambda generator, shape: np.zeros(shape),  # noqa: ARG005 - zeros need no draws
    "tiny": lambda generator, shape: 1e-3 * generator.standard_normal(shape),
    "scattered": lambda generator, shape: generator.standard_normal(shape) * 10 ** generator.uniform(-9, 4, shape),
}


def draw(kind: str, shape: Shape, dtype: str, generator: np.random.Generator) -> Array:
    """An array of one of the KINDS."""
    return KINDS[kind](generator, shape).astype(DTYPES[dtype])
