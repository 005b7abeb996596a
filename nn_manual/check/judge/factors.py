"""A wrong gradient that is a multiple of the right one, and what gives such a factor."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from nn_manual.arrays import Array

#: What may be behind a factor of 2, and of 1/2.
TWICE = "counted twice, or the slope of a square"
HALF = "lost once of twice, or the slope of a square"

#: Whether two arrays of one shape are so near to each other that nothing is left to explain.
Near: TypeAlias = Callable[[Array, Array], bool]


def factor_of(ours: Array, reference: Array, near: Near, tolerance: float, batch_size: int | None) -> str | None:
    """ours = factor * reference, the factor by least squares; named where a square or a size gives it."""
    unit = np.abs(reference).max() or 1.0  # so that no square overflows, or comes to nothing
    factor = float(np.vdot(reference / unit, ours / unit) / np.vdot(reference / unit, reference / unit))
    if factor == 0 or not near(ours, factor * reference):
        return None
    size = abs(factor)
    if factor < 0 and np.isclose(size, 1, rtol=tolerance):
        return "the wrong sign"
    words = _named(size, reference, tolerance, batch_size)
    if not words:
        if np.count_nonzero(reference) == 1:
            return None
        words = f"{size:.6g} times the reference"
        if f"{size:.6g}" == "1":
            words = f"(1 {'+' if size > 1 else '-'} {abs(size - 1):.2g}) times the reference"
    return f"the wrong sign, and {words}" if factor < 0 else words


def _named(size: float, reference: Array, tolerance: float, batch_size: int | None) -> str:
    """A factor that a square, a size of the array or its root, or the batch gives, or the inverse of one; empty for any
    other.
    """
    sizes = [(float(length), f"the size of axis {axis}") for axis, length in enumerate(reference.shape)]
    known = [*sizes, (float(reference.size), "the number of entries")]
    known += [(float(batch_size), "the batch size")] if batch_size else []
    known += [(math.sqrt(length), f"the root of {name}") for length, name in sizes]
    known = [(value, name) for value, name in known if value > 1]
    times = [name for value, name in [(2, TWICE), *known] if np.isclose(size, value, rtol=tolerance)]
    if times:
        return f"{size:.6g} times the reference: {' or '.join(times)}"
    divisors = [name for value, name in known if np.isclose(1 / size, value, rtol=tolerance)]
    divided = [f"divided by {' or '.join(divisors)}"] if divisors else []
    if np.isclose(1 / size, 2, rtol=tolerance):
        divided.insert(0, HALF)
    return f"1/{1 / size:.6g} of the reference: {' or '.join(divided)}" if divided else ""
