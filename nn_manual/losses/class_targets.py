"""Targets of a classification: which of them fit a prediction, what they weigh, and predictions as rows of classes."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from nn_manual.arrays import Array, Shape, size_of
from nn_manual.losses.base import Loss
from nn_manual.messages.text import counted


class OfClasses(Loss):
    """A loss of classes: the prediction is (batch, classes, ...), and a target is class indices, int64 (batch, ...).
    Behind a prediction (batch, classes), indices may have any shape with `batch` elements. The prediction may also be
    (classes,), with an index without dimensions.

    `weight` has one number for each class; None means 1 for each. An index that is `ignore_index` does not count. A
    mean divides by the sum of the weights of those that count.
    """

    #: Whether a target may also be probabilities, in the prediction's shape and dtype.
    TAKES_PROBABILITIES: ClassVar[bool] = False

    weight: list[float] | None
    ignore_index: int

    def check_weight(self) -> None:
        """Raise ValueError unless the weights are finite, at least 0, and not all 0; they become floats."""
        if self.weight is None:
            return
        self.weight = [float(weight) for weight in self.weight]
        for index, weight in enumerate(self.weight):
            if not 0 <= weight < math.inf:
                raise ValueError(f"weight must be finite and at least 0, not {weight}, that of class {index}")
        if not any(self.weight):
            raise ValueError(f"weight must be above 0 for one class at least, not {self.weight}")

    def check_target(self, prediction: Array, target: Array) -> None:
        """Raise TypeError for a target of another dtype. Raise ValueError for other shapes, if there aren't as many
        weights as classes, for a label outside 0 ... classes - 1 that isn't `ignore_index`, for a probability outside
        0 ... 1, and for probabilities where `ignore_index` is a class: torch refuses these, too.
        """
        name, known = type(self).__name__, (np.int64, *([prediction.dtype] if self.TAKES_PROBABILITIES else []))
        if target.dtype not in known:
            or_else = ", or probabilities in the prediction's dtype, "
            words = f"{or_else}{prediction.dtype}" if self.TAKES_PROBABILITIES else ""
            raise TypeError(f"{name} takes int64 class indices as target{words}, not {target.dtype}")
        are_indices, axis = target.dtype.kind == "i", class_axis(prediction)
        shape = (*prediction.shape[:axis], *prediction.shape[axis + 1 :]) if are_indices else prediction.shape
        may_reshape = are_indices and prediction.ndim == 2
        if not prediction.ndim or (target.size != size_of(shape) if may_reshape else target.shape != shape):
            words = " or probabilities in the prediction's shape" if self.TAKES_PROBABILITIES else ""
            raise ValueError(
                f"{name} takes a prediction (batch, classes, ...), and as target indices (batch, ...){words}, "
                f"not {prediction.shape} and {target.dtype} {target.shape}"
            )
        classes = prediction.shape[axis]
        if not classes:
            raise ValueError(f"{name} takes a prediction of one class at least, not {prediction.shape}")
        if self.weight is not None and len(self.weight) != classes:
            weighted = counted(len(self.weight), "class", "classes")
            raise ValueError(f"{name} has a weight for {weighted}, the prediction {classes}")
        if are_indices:
            check_labels(name, target, classes, self.ignore_index)
        else:
            _check_probabilities(name, target, self.ignore_index)

    def counted(self, target: Array) -> Array:
        """True where an index isn't `ignore_index`, and for all probabilities."""
        counted: Array = target != self.ignore_index
        return counted

    def check_data(self, target: Array, part: str = "data") -> None:
        """As every loss does it. With a mean, the weight of one target at least must also not be 0."""
        super().check_data(target, part)
        if self.weight is None or self.reduction != "mean" or target.dtype.kind == "f" or not target.size:
            return
        if not np.isin(target[self.counted(target)], np.flatnonzero(self.weight)).any():
            raise ValueError(f"{type(self).__name__} gives every target of the {part} the weight 0")

    def denominator(self, target: Array) -> float:
        """The sum of the weights of the indices that count; for probabilities, the number of rows."""
        if target.dtype.kind == "f":
            return float(target.size // target.shape[class_axis(target)])
        if self.weight is None:
            return float(np.count_nonzero(self.counted(target)))
        return float(self._labels(target, np.dtype(np.float64))[1].sum())

    def denominators(self, targets: Array) -> list[float]:
        """The `denominator` of each of several batches; the indices of all are counted at once."""
        if targets.dtype.kind == "f" or self.weight is not None:
            return super().denominators(targets)
        counted = self.counted(targets)
        if counted.all():  # to count them one by one takes ten times as long
            return [float(math.prod(targets.shape[1:]))] * len(targets)
        counts = np.count_nonzero(counted, axis=tuple(range(1, targets.ndim)))
        denominators: list[float] = np.asarray(counts, np.float64).tolist()
        return denominators

    def _labels(self, target: Array, dtype: np.dtype[Any]) -> tuple[Array, Array]:
        """The label of each row, (rows,), 0 where it doesn't count, and its weight, which is also 0 there."""
        counted = self.counted(target).ravel()
        label = target.ravel() * counted
        if self.weight is None:
            return label, counted.astype(dtype)
        return label, counted * np.array(self.weight, dtype, like=label)[label]


def check_labels(name: str, target: Array, classes: int, ignore_index: int | None = None) -> None:
    """Raise ValueError for a label outside 0 ... classes - 1 that isn't `ignore_index`."""
    # One comparison for both ends: as unsigned, a negative label is a huge one.
    if target.size and target.view(np.uint64).max() >= classes:
        wrong = (target < 0) | (target >= classes)
        if ignore_index is not None:
            wrong &= target != ignore_index
        if wrong.any():
            label, place = _first(target, wrong)
            raise ValueError(f"{name}: label {label} at index {place} is outside 0 ... {classes - 1}")


def _check_probabilities(name: str, target: Array, ignore_index: int) -> None:
    if ignore_index >= 0:
        raise ValueError(f"{name} has ignore_index {ignore_index}: probabilities have no index to be ignored")
    wrong = ~((target >= 0) & (target <= 1))  # NaN among them
    if wrong.any():
        probability, place = _first(target, wrong)
        raise ValueError(f"{name}: probability {probability} at index {place} is outside 0 ... 1")


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
