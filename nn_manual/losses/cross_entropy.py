"""Cross-entropy: the loss of a classification."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from nn_manual.arrays import Array, Shape, size_of
from nn_manual.losses.base import Loss, check_reduction
from nn_manual.messages import counted


class Saved(NamedTuple):
    """What backward needs, of the prediction as rows: softmax is `exponential` / `divisor` of its row.

    `place` is where one element of each row stands in the flat rows: that of the index, or else the largest prediction.
    `log_probability` and `q_at_place` are those of it. `q` has the others, and 0 there; None where all others are 0.
    `total` is what a mean divides by, and `shape` the prediction's.
    """

    shape: Shape
    exponential: Array
    divisor: Array
    place: Array
    log_probability: Array
    q_at_place: Array
    q: Array | None
    total: Any


@dataclass(eq=False)
class CrossEntropyLoss(Loss):
    """Negative log-likelihood of softmax(prediction), prediction (batch, classes, ...), softmax along axis 1.

    The target is class indices, int64 (batch, ...), or probabilities in the prediction's shape and dtype. Each position
    behind the class axis is a row of its own: the formulas are those of `rows` predictions (rows, classes) and of their
    targets, (rows,) or (rows, classes).

        counted         = target != ignore_index                                 where target = indices
        label           = where(counted, target, 0)                              where target = indices
        given           = counted[:, newaxis] * eye(classes)[label]              where target = indices
        total           = sum(counted * weight[label])                           where target = indices
        counted         = ones(rows)                                             where target = probabilities
        given           = target                                                 where target = probabilities
        total           = rows                                                   where target = probabilities
        evenly          = counted[:, newaxis] * label_smoothing / classes
        q               = weight * ((1 - label_smoothing) * given + evenly)
        sum_of_q        = sum(q, axis=1, keepdims=True)
        log_probability = prediction - logsumexp(prediction, axis=1, keepdims=True)
        loss            = -sum(q * log_probability) / total                      where reduction = mean
        loss            = -sum(q * log_probability)                              where reduction = sum
        grad_prediction = (sum_of_q * exp(log_probability) - q) / total          where reduction = mean
        grad_prediction = sum_of_q * exp(log_probability) - q                    where reduction = sum

    given is a distribution over the classes; that of an index is 1 at its class and 0 elsewhere. label_smoothing, from
    0 to 1, is the part of it that is spread evenly over all classes. `weight` has one number a class, and None stands
    for 1 each. A row whose index is `ignore_index` does not count. The mean of indices is the one over the weights of
    those that count; where there are none, it is not a number, and its gradient is 0. The mean of probabilities is the
    one over all rows, whatever they weigh. Probabilities needn't add up to 1: the formulas hold for any numbers.

    A prediction of one dimension, (classes,), is one row; its target is an index without dimensions, or (classes,).
    Behind a prediction (batch, classes), indices may have any shape with `batch` elements, which are read in row order:
    a language model may put out (batch * time, classes), and its target is (batch, time).

    Derivation: d logsumexp(p) / d p[c] = exp(p[c]) / sum_k exp(p[k]) = softmax(p)[c], so for one example
    d (-sum_k q[k] (p[k] - logsumexp(p))) / d p[c] = -q[c] + sum_k q[k] softmax(p)[c].

    In floating point: the largest prediction of each row is subtracted before exp, so nothing overflows, and its own
    exp(0) = 1 is left to log1p: logsumexp(prediction) = largest + log1p(others). At one class of each row, its place,
    the gradient is q_at_place * (probability - 1) + elsewhere * probability, where elsewhere is the sum of q over the
    other classes, and probability - 1 is expm1(log_probability). The place is the class that an index says, or else the
    one with the largest prediction: the only one whose probability can be near 1. So a confident, right prediction
    keeps all its digits, where 1 + small and 1 - probability would lose them.
    """

    reduction: str = "mean"
    label_smoothing: float = 0.0
    weight: list[float] | None = None
    ignore_index: int = -100

    def __post_init__(self) -> None:
        check_reduction(self.reduction)
        if not 0 <= self.label_smoothing <= 1:
            raise ValueError(f"label_smoothing must be between 0 and 1, not {self.label_smoothing}")
        if self.weight is not None:
            self.weight = [float(weight) for weight in self.weight]
            for index, weight in enumerate(self.weight):
                if not 0 <= weight < math.inf:
                    raise ValueError(f"weight must be finite and at least 0, not {weight}, that of class {index}")
            if not any(self.weight):
                raise ValueError(f"weight must be above 0 for one class at least, not {self.weight}")

    @classmethod
    def examples(cls, num_outputs: int = 5) -> list[Loss]:
        """Both reductions, label smoothing, weights, and a class that is ignored, whose batches may be empty: a sum."""
        weight = [(1 + number) / 2 for number in range(num_outputs)]
        return [
            cls("mean"),
            cls("sum"),
            cls("mean", 0.1),
            cls("mean", weight=weight),
            cls("mean", 0.1, weight),
            cls("sum", weight=weight, ignore_index=1),
            cls("sum", 0.1, weight, ignore_index=1),
        ]

    def forward(self, prediction: Array, target: Array) -> tuple[Any, Saved]:
        """The scalar loss; saves what backward needs."""
        rows = as_rows(prediction)
        starts = np.arange(0, rows.size, rows.shape[1])  # a flat index is faster than one of rows and columns
        place = starts + rows.argmax(axis=1)
        shifted = rows - rows.take(place)[:, np.newaxis]
        exponential = np.exp(shifted)
        exponential.put(place, 0)
        others = exponential.sum(axis=1)
        exponential.put(place, 1)
        log_sum = np.log1p(others)
        if target.dtype.kind == "i" and not self.label_smoothing:
            label, row_weight = self._labels(target, rows.dtype)
            place, q = starts + label, None
            q_at_place, total = row_weight, row_weight.sum()
            log_probability = shifted.take(place) - log_sum
            loss = -(q_at_place * log_probability).sum()
        else:
            q, total = self._q(target, starts, rows.shape[1], rows.dtype)
            if self.reduction == "mean":
                q *= total != 0  # nothing counts where no target does, whatever smoothing gives to other classes
            loss = -(q * (shifted - log_sum[:, np.newaxis])).sum()
            q_at_place, log_probability = q.take(place), -log_sum
            q.put(place, 0)
        saved = Saved(prediction.shape, exponential, 1 + others, place, log_probability, q_at_place, q, total)
        return (loss / total if self.reduction == "mean" else loss), saved

    def backward(self, saved: Saved) -> Array:
        """grad_prediction."""
        shape, exponential, divisor, place, log_probability, q_at_place, q, total = saved
        # Where nothing counts the total is 0, and the gradient 0 divided by 1.
        denominator = total + (total == 0) if self.reduction == "mean" else 1
        q_at_place = q_at_place / denominator
        grad_at_place = q_at_place * np.expm1(log_probability)
        if q is None:
            grad_rows = exponential * (q_at_place / divisor)[:, np.newaxis]
        else:
            q = q / denominator
            elsewhere = q.sum(axis=1)
            grad_at_place += elsewhere * np.exp(log_probability)
            grad_rows = exponential * ((q_at_place + elsewhere) / divisor)[:, np.newaxis] - q
        grad_rows.put(place, grad_at_place)
        return in_shape(grad_rows, shape)

    def check_target(self, prediction: Array, target: Array) -> None:
        """Raise TypeError for a target of another dtype. Raise ValueError for other shapes, for as many weights as
        there aren't classes, for a label outside 0 ... classes - 1 that isn't `ignore_index`, for a probability outside
        0 ... 1, and for probabilities where `ignore_index` is a class, which torch doesn't take either.
        """
        if target.dtype not in (np.int64, prediction.dtype):
            raise TypeError(
                "CrossEntropyLoss takes int64 class indices as target, or probabilities in the prediction's dtype, "
                f"{prediction.dtype}, not {target.dtype}"
            )
        are_indices, axis = target.dtype.kind == "i", _class_axis(prediction)
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
        if self.weight is not None and len(self.weight) != classes:
            weighted = counted(len(self.weight), "class", "classes")
            raise ValueError(f"CrossEntropyLoss has a weight for {weighted}, the prediction {classes}")
        if are_indices:
            self._check_labels(target, classes)
        else:
            self._check_probabilities(target)

    def _check_labels(self, target: Array, classes: int) -> None:
        # One comparison for both ends: as unsigned, a negative label is a huge one.
        if target.size and target.view(np.uint64).max() >= classes:
            wrong = self.counted(target) & ((target < 0) | (target >= classes))
            if wrong.any():
                label, place = _first(target, wrong)
                raise ValueError(f"CrossEntropyLoss: label {label} at index {place} is outside 0 ... {classes - 1}")

    def _check_probabilities(self, target: Array) -> None:
        if self.ignore_index >= 0:
            raise ValueError(
                f"CrossEntropyLoss has ignore_index {self.ignore_index}: probabilities have no index to be ignored"
            )
        wrong = ~((target >= 0) & (target <= 1))  # NaN among them
        if wrong.any():
            probability, place = _first(target, wrong)
            raise ValueError(f"CrossEntropyLoss: probability {probability} at index {place} is outside 0 ... 1")

    def counted(self, target: Array) -> Array:
        """The indices that aren't `ignore_index`; all probabilities."""
        counted: Array = target != self.ignore_index
        return counted

    def check_data(self, target: Array, part: str = "data") -> None:
        """As of every loss; of a mean, at least one target's weight must not be 0, either."""
        super().check_data(target, part)
        if self.weight is None or self.reduction != "mean" or target.dtype.kind == "f" or not target.size:
            return
        if not np.isin(target[self.counted(target)], np.flatnonzero(self.weight)).any():
            raise ValueError(f"CrossEntropyLoss gives every target of the {part} the weight 0")

    def check_slices(self, target: Array) -> None:
        """As of every loss: a slice whose targets all weigh 0 has no mean, but smoothing gives it a part in the batch's
        loss.
        """
        if self.weight is None or not self.label_smoothing or self.reduction != "mean" or target.dtype.kind == "f":
            return
        without = np.flatnonzero(np.equal(self.weight, 0))
        found = np.intersect1d(without, target[self.counted(target)])
        if found.size:
            raise ValueError(
                "CrossEntropyLoss with label_smoothing must give targets a weight above 0 where batches are cut into "
                f"slices, not 0, that of class {found[0]}: a slice of such targets alone has no mean"
            )

    def denominator(self, target: Array) -> float:
        """The weights of the indices that count, added up; of probabilities, the number of rows."""
        if target.dtype.kind == "f":
            return float(target.size // target.shape[_class_axis(target)])
        if self.weight is None:
            return float(np.count_nonzero(self.counted(target)))
        return float(self._labels(target, np.dtype(np.float64))[1].sum())

    def denominators(self, targets: Array) -> list[float]:
        """Of several batches: indices are counted all at once."""
        if targets.dtype.kind == "f" or self.weight is not None:
            return super().denominators(targets)
        counted = self.counted(targets)
        if counted.all():  # to count them one by one takes ten times as long
            return [float(math.prod(targets.shape[1:]))] * len(targets)
        counts = np.count_nonzero(counted, axis=tuple(range(1, targets.ndim)))
        denominators: list[float] = np.asarray(counts, np.float64).tolist()
        return denominators

    def _labels(self, target: Array, dtype: np.dtype[Any]) -> tuple[Array, Array]:
        """The index of each row, (rows,), 0 where it doesn't count, and its weight, which is 0 there."""
        counted = self.counted(target).ravel()
        label = target.ravel() * counted
        if self.weight is None:
            return label, counted.astype(dtype)
        return label, counted * np.array(self.weight, dtype, like=label)[label]

    def _q(self, target: Array, starts: Array, classes: int, dtype: np.dtype[Any]) -> tuple[Array, Any]:
        """q of the formula, (rows, classes), and its total."""
        smoothed = self.label_smoothing / classes
        if target.dtype.kind == "i":
            label, row_weight = self._labels(target, dtype)
            q, total = np.full_like(row_weight, smoothed, shape=(len(starts), classes)), row_weight.sum()
            q.put(starts + label, 1 - self.label_smoothing + smoothed)
            q *= self.counted(target).reshape(-1, 1)
        else:
            q, total = (1 - self.label_smoothing) * as_rows(target) + smoothed, len(starts)
        return (q if self.weight is None else q * np.array(self.weight, dtype)), total


def _class_axis(array: Array) -> int:
    """Where the classes are."""
    return 1 if array.ndim > 1 else 0


def as_rows(array: Array) -> Array:
    """(batch, classes, ...) as (rows, classes): each position behind the classes is a row."""
    if array.ndim == 2:  # as most are; the rest takes 3 microseconds, a twentieth of the smallest net's step
        return array
    if array.ndim == 1:
        return array[np.newaxis]
    batch, classes, *positions = array.shape
    num_positions = size_of(tuple(positions))
    return array.reshape(batch, classes, num_positions).swapaxes(1, 2).reshape(batch * num_positions, classes)


def in_shape(rows: Array, shape: Shape) -> Array:
    """What `as_rows` makes of an array of this shape, in that shape again."""
    if len(shape) <= 2:
        return rows.reshape(shape) if len(shape) == 1 else rows
    batch, classes, *positions = shape
    return rows.reshape(batch, size_of(tuple(positions)), classes).swapaxes(1, 2).reshape(shape)


def _first(array: Array, mask: Array) -> tuple[Any, Any]:
    """The first element that the mask has, and its index: a number where the array has one dimension."""
    index = tuple(map(int, np.argwhere(mask)[0]))
    return array[index], index if len(index) > 1 else index[0]
