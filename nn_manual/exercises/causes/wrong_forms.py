"""What readers' code does in the place of a sum, as functions that a changed formula calls."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.ops.reductions import Axis


def assigned(positions: Array, values: Array, size: int) -> Array:
    """`array[positions] = values` in the place of a sum of them at each position: the last one stays."""
    array = np.zeros(size)
    array[positions] = values
    return array


def first_of_copies(grad: Array, shape: Shape) -> Any:
    """The gradient of the first copy alone of an operand that was broadcast."""
    aligned = grad[(0,) * (grad.ndim - len(shape))]
    return aligned[tuple(slice(size) for size in shape)]


def mean_of_copies(grad: Array, shape: Shape) -> Any:
    """The mean in the place of the sum over the copies of an operand that was broadcast."""
    axes = tuple(range(grad.ndim - len(shape)))
    kept = grad.sum(axes)
    ones = tuple(axis for axis, size in enumerate(shape) if size == 1)
    return kept.sum(ones, keepdims=True) * (math.prod(shape) / grad.size)


def put_back_last(reduced: Array, shape: Shape, is_for_each: bool = False) -> Any:
    """An axis put back as the last one, whichever was summed; or one for each that was."""
    num_lost = len(shape) - reduced.ndim if reduced.ndim else 0
    ones = (1,) * (num_lost if is_for_each else min(num_lost, 1))
    return np.broadcast_to(reduced.reshape((*reduced.shape, *ones)), shape)


def put_back_always(reduced: Array, shape: Shape, axis: Axis) -> Any:
    """The summed axes put back whether they are gone or keepdims has left them."""
    return np.broadcast_to(reduced if axis is None else np.expand_dims(reduced, axis), shape)


#: By the names in changed formulas.
WRONG_FORMS = {
    each.__name__: each for each in (assigned, first_of_copies, mean_of_copies, put_back_last, put_back_always)
}
