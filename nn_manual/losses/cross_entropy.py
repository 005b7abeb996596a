"""Cross-entropy: the loss of a classification."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from nn_manual.arrays import Array
from nn_manual.losses.base import Loss, check_reduction


class Saved(NamedTuple):
    """What backward needs, `batch` long but for the first: softmax is `exponential` / `divisor` of its row.

    `log_probability` is that of the target, `of_target` where it stands in the flat prediction: a flat index is faster
    than one of rows and columns. `row_weight` is the weight of the target, 0 where it doesn't count, and `total` their
    sum.
    """

    exponential: Array
    divisor: Array
    log_probability: Array
    of_target: Array
    counted: Array
    row_weight: Array
    total: Any


@dataclass(eq=False)
class CrossEntropyLoss(Loss):
    """Negative log-likelihood of softmax(prediction), prediction (batch, classes), target int64 (batch,).

        counted         = target != ignore_index
        label           = where(counted, target, 0)
        share           = (1 - label_smoothing) * eye(classes)[label] + label_smoothing / classes
        q               = counted[:, newaxis] * weight * share
        total           = sum(counted * weight[label])
        log_probability = prediction - logsumexp(prediction, axis=1, keepdims=True)
        loss            = -sum(q * log_probability) / total                                   where reduction = mean
        loss            = -sum(q * log_probability)                                           where reduction = sum
        grad_prediction = (sum(q, axis=1, keepdims=True) * exp(log_probability) - q) / total  where reduction = mean
        grad_prediction = sum(q, axis=1, keepdims=True) * exp(log_probability) - q            where reduction = sum

    share is the distribution that a class index stands for: without label smoothing, 1 at the target and 0 elsewhere;
    label_smoothing, from 0 to 1, is the part of it that is spread evenly over all classes. `weight` has one number a
    class, and None stands for 1 each. A row whose target is `ignore_index` does not count. The mean is the one over
    the weights of the targets that count; where there are none, it is not a number, and its gradient is 0.

    Derivation: d logsumexp(p) / d p[c] = exp(p[c]) / sum_k exp(p[k]) = softmax(p)[c], so for one example
    d (-sum_k q[k] (p[k] - logsumexp(p))) / d p[c] = -q[c] + sum_k q[k] softmax(p)[c].

    In floating point: each row's maximum m is subtracted before exp, so nothing overflows, and its own exp(0) = 1 is
    left to log1p: logsumexp(p) = m + log1p(sum of the others). At the target, t, the gradient is
    sum_k q[k] (softmax(p)[t] - 1) + sum of q[k] over the others, and softmax(p)[t] - 1 is expm1(log_probability[t]). So
    a confident, right prediction keeps all its digits, where 1 + small and 1 - probability would lose them.
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
            cls("sum", 0.1, weight, ignore_index=1),
        ]

    def forward(self, prediction: Array, target: Array) -> tuple[Any, Saved]:
        """The scalar loss; saves what backward needs."""
        batch, classes = prediction.shape
        rows = np.arange(0, batch * classes, classes)  # where each begins in the flat prediction
        counted = self.counted(target)
        label = target * counted
        row_weight = self._row_weight(counted, label, prediction.dtype)
        total = row_weight.sum()

        largest = rows + prediction.argmax(axis=1)
        shifted = prediction - prediction.take(largest)[:, np.newaxis]
        exponential = np.exp(shifted)
        exponential.put(largest, 0)
        others = exponential.sum(axis=1)
        exponential.put(largest, 1)
        log_sum = np.log1p(others)
        of_target = rows + label
        log_probability = shifted.take(of_target) - log_sum

        expected = row_weight * log_probability
        if self.label_smoothing:
            weight = self._class_weight(classes, prediction.dtype)
            of_all = counted * (shifted @ weight - weight.sum() * log_sum)
            expected = (1 - self.label_smoothing) * expected + self.label_smoothing / classes * of_all
        loss = -expected.sum()
        saved = Saved(exponential, 1 + others, log_probability, of_target, counted, row_weight, total)
        return (loss / total if self.reduction == "mean" else loss), saved

    def backward(self, saved: Saved) -> Array:
        """grad_prediction."""
        exponential, divisor, log_probability, of_target, counted, row_weight, total = saved
        # Where nothing counts the total is 0, and the gradient 0 divided by 1.
        denominator = total + (total == 0) if self.reduction == "mean" else total.dtype.type(1)
        if not self.label_smoothing:
            sum_of_q = row_weight / denominator
            grad_prediction: Array = exponential * (sum_of_q / divisor)[:, np.newaxis]
            grad_prediction.put(of_target, sum_of_q * np.expm1(log_probability))
            return grad_prediction
        classes = exponential.shape[1]
        smoothed = self.label_smoothing / classes * self._class_weight(classes, exponential.dtype)
        share = counted / denominator
        of_all = share * smoothed.sum()
        sum_of_q = (1 - self.label_smoothing) * row_weight / denominator + of_all
        grad_prediction = exponential * (sum_of_q / divisor)[:, np.newaxis]
        grad_prediction.put(of_target, sum_of_q * np.expm1(log_probability) + of_all)
        grad_prediction -= share[:, np.newaxis] * smoothed
        return grad_prediction

    def check_target(self, prediction: Array, target: Array) -> None:
        """Raise ValueError for other shapes, for as many weights as there aren't classes, and for a label outside
        0 ... classes - 1 that isn't `ignore_index`; TypeError for a target that isn't int64.
        """
        if target.dtype != np.int64:
            raise TypeError(f"CrossEntropyLoss takes int64 class indices as target, not {target.dtype}")
        if prediction.ndim != 2 or target.shape != prediction.shape[:1]:
            raise ValueError(
                "CrossEntropyLoss takes a prediction (batch, classes) and a target (batch,), "
                f"not {prediction.shape} and {target.shape}"
            )
        classes = prediction.shape[1]
        if self.weight is not None and len(self.weight) != classes:
            raise ValueError(f"CrossEntropyLoss has a weight for {len(self.weight)} classes, the prediction {classes}")
        # One comparison for both ends: as unsigned, a negative label is a huge one.
        if len(target) and target.view(np.uint64).max() >= classes:
            wrong = np.flatnonzero(self.counted(target) & ((target < 0) | (target >= classes)))
            if wrong.size:
                index = int(wrong[0])
                raise ValueError(
                    f"CrossEntropyLoss: label {target[index]} at index {index} is outside 0 ... {classes - 1}"
                )

    def counted(self, target: Array) -> Array:
        """The rows whose target isn't `ignore_index`."""
        counted: Array = target != self.ignore_index
        return counted

    def denominator(self, target: Array) -> float:
        """The weights of the targets that count, added up."""
        counted = self.counted(target)
        if self.weight is None:
            return float(np.count_nonzero(counted))
        return float(self._row_weight(counted, target * counted, np.dtype(np.float64)).sum())

    def _row_weight(self, counted: Array, label: Array, dtype: np.dtype[Any]) -> Array:
        """The weight of each row's target, 0 where it doesn't count, shape (batch,)."""
        if self.weight is None:
            return counted.astype(dtype)
        row_weight: Array = counted * np.array(self.weight, dtype)[label]
        return row_weight

    def _class_weight(self, classes: int, dtype: np.dtype[Any]) -> Array:
        """The weight of each class, shape (classes,)."""
        return np.ones(classes, dtype) if self.weight is None else np.array(self.weight, dtype)
