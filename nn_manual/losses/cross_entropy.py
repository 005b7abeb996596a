"""Cross-entropy: the loss of a classification."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.losses.base import Loss, check_reduction
from nn_manual.losses.class_targets import OfClasses, as_rows, in_shape


class Saved(NamedTuple):
    """What backward needs, with the names of the docstring's formulas in floating point.

    `shape` is the prediction's. q has 0 at `place`, and is None where all its other elements are 0, too.
    """

    shape: Shape
    exponential: Array
    exponential_sum: Array
    place: Array
    log_probability_at_place: Array
    q_at_place: Array
    q: Array | None
    total: Any


@dataclass(eq=False)
class CrossEntropyLoss(OfClasses):
    """Negative log-likelihood of softmax(prediction), prediction (batch, classes, ...), softmax along axis 1.

    The target is class indices, int64 (batch, ...), or probabilities in the prediction's shape and dtype. Each position
    behind the class axis is a row of its own: in the formulas, the prediction is (rows, classes), and the target is
    (rows,) or (rows, classes).

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

    given is a distribution over the classes. For an index, it is 1 at its class and 0 elsewhere. label_smoothing, from
    0 to 1, is the part of it that is spread evenly over all classes. `weight` has one number for each class; None means
    1 for each. A row whose index is `ignore_index` does not count. For indices, the mean divides by the sum of the
    weights of those that count. If none counts, the mean is not a number, and its gradient is 0. For probabilities, the
    mean divides by the number of rows, whatever they weigh. Probabilities needn't add up to 1: the formulas hold for
    any numbers.

    A prediction of one dimension, (classes,), is one row; its target is an index without dimensions, or (classes,).
    Behind a prediction (batch, classes), indices may have any shape with `batch` elements, which are read in row order:
    a language model may put out (batch * time, classes), and its target is (batch, time).

    Derivation: d logsumexp(p) / d p[c] = exp(p[c]) / sum_k exp(p[k]) = softmax(p)[c], so for one example
    d (-sum_k q[k] (p[k] - logsumexp(p))) / d p[c] = -q[c] + sum_k q[k] softmax(p)[c].

    In floating point: the largest prediction of each row is subtracted before exp, so nothing overflows. Its own
    exp(0) = 1 is left to log1p. At one class of each row, its place, probability - 1 is computed as
    expm1(log_probability). The place is the class with the largest prediction: only there can a probability be near 1.
    If q is 0 in all classes but that of an index, the place is this class. So a confident, right prediction keeps all
    its digits, where 1 + small and 1 - probability would lose them.

    As formulas, in which x[largest] and x[place] are one element of each row:

        shifted                  = prediction - prediction[largest][:, newaxis]
        exponential              = exp(shifted)
        exponential[largest]     = 0
        others                   = sum(exponential, axis=1)
        exponential[largest]     = 1
        exponential_sum          = 1 + others
        log_sum                  = log1p(others)
        log_probability_at_place = shifted[place] - log_sum
        q_at_place               = q[place]
        q[place]                 = 0

        q_at_place               = q_at_place / total                                   where reduction = mean
        grad_at_place            = q_at_place * expm1(log_probability_at_place)
        q                        = q / total                                            where reduction = mean
        q_elsewhere              = sum(q, axis=1)
        grad_at_place            = grad_at_place + q_elsewhere * exp(log_probability_at_place)
        grad_prediction          = exponential * ((q_at_place + q_elsewhere) / exponential_sum)[:, newaxis] - q
        grad_prediction[place]   = grad_at_place
    """

    TAKES_PROBABILITIES: ClassVar[bool] = True

    reduction: str = "mean"
    label_smoothing: float = 0.0
    weight: list[float] | None = None
    ignore_index: int = -100

    def __post_init__(self) -> None:
        check_reduction(self.reduction)
        if not 0 <= self.label_smoothing <= 1:
            raise ValueError(f"label_smoothing must be between 0 and 1, not {self.label_smoothing}")
        self.check_weight()

    @classmethod
    def examples(cls, num_outputs: int = 5) -> list[Loss]:
        """Both reductions, label smoothing, weights, and an ignored class: with a sum, since all may be ignored."""
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
        largest = starts + rows.argmax(axis=1)
        shifted = rows - rows.take(largest)[:, np.newaxis]
        exponential = np.exp(shifted)
        exponential.put(largest, 0)
        others = exponential.sum(axis=1)
        exponential.put(largest, 1)
        exponential_sum = 1 + others
        log_sum = np.log1p(others)
        if target.dtype.kind == "i" and not self.label_smoothing:
            label, q_at_place = self._labels(target, rows.dtype)
            place, q, total = starts + label, None, q_at_place.sum()
            log_probability_at_place = shifted.take(place) - log_sum
            loss = -(q_at_place * log_probability_at_place).sum()
        else:
            q, total = self._q(target, starts, rows.shape[1], rows.dtype)
            if self.reduction == "mean":
                q *= total != 0  # nothing counts where no target does, whatever smoothing gives to other classes
            loss = -(q * (shifted - log_sum[:, np.newaxis])).sum()
            place, log_probability_at_place = largest, -log_sum  # shifted is 0 there
            q_at_place = q.take(place)
            q.put(place, 0)
        saved = Saved(
            prediction.shape, exponential, exponential_sum, place, log_probability_at_place, q_at_place, q, total
        )
        return (loss / total if self.reduction == "mean" else loss), saved

    def backward(self, saved: Saved) -> Array:
        """grad_prediction."""
        shape, exponential, exponential_sum, place, log_probability_at_place, q_at_place, q, total = saved
        # Where nothing counts the total is 0, and the gradient 0 divided by 1.
        denominator = total + (total == 0) if self.reduction == "mean" else 1
        q_at_place = q_at_place / denominator
        grad_at_place = q_at_place * np.expm1(log_probability_at_place)
        if q is None:
            grad_rows = exponential * (q_at_place / exponential_sum)[:, np.newaxis]
        else:
            q = q / denominator
            q_elsewhere = q.sum(axis=1)
            grad_at_place += q_elsewhere * np.exp(log_probability_at_place)
            grad_rows = exponential * ((q_at_place + q_elsewhere) / exponential_sum)[:, np.newaxis] - q
        grad_rows.put(place, grad_at_place)
        return in_shape(grad_rows, shape)

    def check_slices(self, target: Array) -> None:
        """As every loss does it: a slice whose targets all weigh 0 has no mean, but smoothing gives it a part in the
        batch's loss.
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
