"""The kinds of input that are known to hide bugs, kept inside a layer's domain."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from nn_manual.arrays import DTYPES, Array, Domain, Shape

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

#: Where the constants of layers lie: a clip at 6, a slope that ends at 3, a threshold of 20.
HALVES = np.arange(-60, 61) / 2

#: A domain that has two ends is divided by this many values: as many as HALVES has from -30 to 30.
NUM_SPREAD = len(HALVES)


def draw(kind: str, shape: Shape, dtype: str, generator: np.random.Generator, domain: Domain = "real") -> Array:
    """An array of one of the KINDS, or of kind "spread": the values of `spread`, shuffled, as many as fit or repeated
    until the array is full. All lie inside the domain.
    """
    if isinstance(domain, range):
        return _indices(kind, shape, generator, domain)
    if kind == "spread":
        values = np.resize(generator.permutation(spread(domain)), shape)
    else:
        values = KINDS[kind](generator, shape)
    return moved_into(domain, values.astype(DTYPES[dtype]))


def _indices(kind: str, shape: Shape, generator: np.random.Generator, domain: range) -> Array:
    """int64 indices, usually with repeats. "zero" has only the first index, "tied" the first and the last, "spread" all
    in turn; any other kind draws from all.
    """
    choices = {"zero": [domain[0]], "tied": [domain[0], domain[-1]], "spread": generator.permutation(domain)}
    values = np.asarray(choices.get(kind, domain), np.int64)
    return np.resize(values, shape) if kind == "spread" else generator.choice(values, shape)


def spread(domain: Domain = "real") -> Array:
    """Values from one end of the domain to the other, in float64 and in order. These are HALVES; a domain with one end
    counts them from there, and one with two ends has NUM_SPREAD values at equal distances, too.
    """
    if isinstance(domain, range):
        return np.asarray(domain, np.int64)
    low, high = _bounds(domain)
    values = HALVES + next((end for end in (low, high) if math.isfinite(end)), 0)
    if math.isfinite(high - low):
        values = np.union1d(HALVES, np.linspace(low, high, NUM_SPREAD))
    return values[inside(domain, values)]


def inside(domain: Domain, values: Array) -> npt.NDArray[np.bool_]:
    """Which of the values lie in the domain."""
    low, high = _bounds(domain)
    result: npt.NDArray[np.bool_] = (low < values) & (values < high) & ((values != 0) | (domain != "nonzero"))
    return result


def moved_into(domain: Domain, values: Array) -> Array:
    """The values, those outside of the domain moved into it: reflected at its end where it has one, taken modulo its
    length where it has two. What still lies at an end, or at the 0 of a domain without it, becomes a number inside.
    """
    low, high = _bounds(domain)
    if math.isfinite(high - low):
        moved, instead = low + (values - low) % (high - low), (low + high) / 2
    elif math.isfinite(low):
        moved, instead = low + np.abs(values - low), low + 1
    elif math.isfinite(high):
        moved, instead = high - np.abs(values - high), high - 1
    else:
        moved, instead = values, 1.0
    kept = np.where(inside(domain, values), values, moved)
    return np.where(inside(domain, kept), kept, values.dtype.type(instead))


def _bounds(domain: Domain) -> tuple[float, float]:
    """The ends of a domain of real numbers."""
    if isinstance(domain, tuple):
        return domain
    return (0.0 if domain == "positive" else -math.inf), math.inf
