"""Targets of a classification: which of them fit a prediction, and predictions as rows of classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nn_manual.arrays import Array, Shape, size_of
from nn_manual.messages.text import counted


def check_class_target(
    prediction: Array, target: Array, weight: Sequence[float] | None, ignore_index: int
) -> None:
    """Raise what CrossEntropyLoss.check_target says."""
    if target.dtype not in (np.int64, prediction.dtype):
        raise TypeError(
            "CrossEntropyLoss takes int64 class indices as target, or probabilities in the prediction's dtype, "
            f"{prediction.dtype}, not {target.dtype}"
        )
    are_indices, axis = target.dtype.kind == "i", class_axis(prediction)
    shape = (*prediction.shape[:axis], *prediction.shape[axis + 1 :]) if are_indices else prediction.shape
    may_reshape = are_indices and prediction.ndim == 2
    if not prediction.ndim or (target.size != size_of(shape) if may_reshape else target.shape != shape):
        raise ValueError(
            "CrossEntropyLoss takes a prediction (batch, classes, ...), and as target indices (batch, ...) or "
            f"probabilities in the prediction's shape, not {prediction.shape} and {target.dtype} {target.shape}"
        )
    classes = prediction.shape[axis]
    if not classes:
        raise ValueError(f"CrossEntropyLoss takes a prediction of one class at least, not {prediction.shape}")
    if weight is not None and len(weight) != classes:
        weighted = counted(len(weight), "class", "classes")
        raise ValueError(f"CrossEntropyLoss has a weight for {weighted}, the prediction {classes}")
    if are_indices:
        _check_labels(target, classes, ignore_index)
    else:
        _check_probabilities(target, ignore_index)


def _check_labels(target: Array, classes: int, ignore_index: int) -> None:
    # One comparison for both ends: as unsigned, a negative label is a huge one.
    if target.size and target.view(np.uint64).max() >= classes:
        wrong = (target != ignore_index) & ((target < 0) | (target >= classes))
        if wrong.any():
            label, place = _first(target, wrong)
            raise ValueError(f"CrossEntropyLoss: label {label} at index {place} is outside 0 ... {classes - 1}")


def _check_probabilities(target: Array, ignore_index: int) -> None:
    if ignore_index >= 0:
        raise ValueError(
            f"CrossEntropyLoss has ignore_index {ignore_index}: probabilities have no index to be ignored"
        )
    wrong = ~((target >= 0) & (target <= 1))  # NaN among them
    if wrong.any():
        probability, place = _first(target, wrong)
        raise ValueError(f"CrossEntropyLoss: probability {probability} at index {place} is outside 0 ... 1")


def class_axis(array: Array) -> int:
    """The axis of the classes."""
    return 1 if array.ndim > 1 else 0


def as_rows(array: Array) -> Array:
    """(batch, classes, ...) as (rows, classes): each position behind the classes is a row."""
    if array.ndim == 2:  # as most have; the rest takes 3 microseconds, a twentieth of the smallest net's step
        return array
    if array.ndim == 1:
        return array[np.newaxis]
    batch, classes, *positions = array.shape
    num_positions = size_of(tuple(positions))
    return array.reshape(batch, classes, num_positions).swapaxes(1, 2).reshape(batch * num_positions, classes)


def in_shape(rows: Array, shape: Shape) -> Array:
    """The rows that `as_rows` makes of an array of this shape, in that shape again."""
    if len(shape) <= 2:
        return rows.reshape(shape) if len(shape) == 1 else rows
    batch, classes, *positions = shape
    return rows.reshape(batch, size_of(tuple(positions)), classes).swapaxes(1, 2).reshape(shape)


def _first(array: Array, mask: Array) -> tuple[Any, Any]:
    """The first element where the mask is true, and its index: a number where the array has one dimension."""
    index = tuple(map(int, np.argwhere(mask)[0]))
    return array[index], index if len(index) > 1 else index[0]
