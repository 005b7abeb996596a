"""Whether a changed formula gives a reader's numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

#: Right forms differ by 1e-12 of the largest number at most.
TOLERANCE = 1e-9


def same(one: Any, other: Any) -> bool:
    """Whether two arrays agree: in their shapes, where they are no numbers, and in the numbers."""
    if not is_array(one) or not is_array(other) or np.shape(one) != np.shape(other):
        return False
    one, other = np.asarray(one, np.float64), np.asarray(other, np.float64)
    difference = float(np.max(np.abs(one - other), initial=0))
    if difference <= TOLERANCE * float(np.max(np.abs(other), initial=0)):
        return True
    if np.isfinite(difference):
        return False
    finite = np.isfinite(one)
    if not np.array_equal(one[~finite], other[~finite], equal_nan=True) or not np.isfinite(other[finite]).all():
        return False
    return same(one[finite], other[finite])


def tells(own: Any, right: Any) -> bool:
    """Whether a wrong array says more than that something overflows: many a formula that is infinite there would."""
    if same(own, right):
        return False
    own, right = np.asarray(own, np.float64), np.asarray(right, np.float64)
    if own.shape != right.shape:
        return True
    finite = np.isfinite(own) | ~np.isfinite(right)
    return bool(finite.any()) and not same(own[finite], right[finite])


def is_array(value: Any) -> bool:
    """Whether something is an array of numbers, or a number."""
    return isinstance(value, np.ndarray | np.number | float | int) and np.asarray(value).dtype.kind in "fiub"
