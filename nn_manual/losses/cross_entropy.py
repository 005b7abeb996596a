"""Cross-entropy: the loss of a classification."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nn_manual.arrays import Array
from nn_manual.losses.base import Loss, check_reduction


@dataclass(eq=False)
class CrossEntropyLoss(Loss):
    """Negative log-likelihood of softmax(prediction), prediction (batch, classes), target int64 (batch,).

        q               = (1 - label_smoothing) * eye(classes)[target] + label_smoothing / classes
        log_probability = prediction - logsumexp(prediction, axis=1, keepdims=True)
        loss            = -sum(q * log_probability) / batch      where reduction = mean
        loss            = -sum(q * log_probability)              where reduction = sum
        grad_prediction = (exp(log_probability) - q) / batch     where reduction = mean
        grad_prediction = exp(log_probability) - q               where reduction = sum

    q is the distribution that a class index stands for: without label smoothing, 1 at the target and 0 elsewhere;
    label_smoothing, from 0 to 1, is the part of it that is spread evenly over all classes.

    Derivation: d logsumexp(p) / d p[c] = exp(p[c]) / sum_k exp(p[k]) = softmax(p)[c], so for one example
    d (-sum_k q[k] (p[k] - logsumexp(p))) / d p[c] = -q[c] + sum_k q[k] softmax(p)[c] = softmax(p)[c] - q[c],
    because sum_k q[k] = 1.

    In floating point: each row's maximum m is subtracted before exp, so nothing overflows, and its own exp(0) = 1 is
    left to log1p: logsumexp(p) = m + log1p(sum of the others). For the target's class exp(...) - 1 is expm1. So a
    confident, right prediction keeps all its digits, where 1 + small and 1 - probability would lose them.
    Raises ValueError for other shapes and for a label outside 0 ... classes - 1, TypeError for other targets.
    """

    reduction: str = "mean"
    label_smoothing: float = 0.0

    def __post_init__(self) -> None:
        check_reduction(self.reduction)
        if not 0 <= self.label_smoothing <= 1:
            raise ValueError(f"label_smoothing must be between 0 and 1, not {self.label_smoothing}")

    @classmethod
    def examples(cls) -> list[Loss]:
        """Both reductions, and label smoothing."""
        return [cls("mean"), cls("sum"), cls("mean", 0.1)]

    def forward(self, prediction: Array, target: Array) -> tuple[Any, tuple[Array, Array]]:
        """The scalar loss; saves the log-probabilities and the target."""
        self._check(prediction, target)
        rows = np.arange(len(target))
        largest = prediction.argmax(axis=1)
        shifted = prediction - prediction[rows, largest, np.newaxis]
        others = np.exp(shifted)
        others[rows, largest] = 0
        log_probability = shifted - np.log1p(others.sum(axis=1, keepdims=True))
        total = -self._expected(log_probability, target).sum()
        return (total / len(target) if self.reduction == "mean" else total), (log_probability, target)

    def backward(self, saved: tuple[Array, Array]) -> Array:
        """grad_prediction."""
        log_probability, target = saved
        batch, classes = log_probability.shape
        of_target = np.arange(batch), target
        smoothed = self.label_smoothing / classes
        grad_prediction: Array = np.exp(log_probability)
        if self.label_smoothing:
            grad_prediction -= smoothed
        grad_prediction[of_target] = np.expm1(log_probability[of_target]) + (self.label_smoothing - smoothed)
        return grad_prediction / batch if self.reduction == "mean" else grad_prediction

    def _expected(self, log_probability: Array, target: Array) -> Array:
        """sum_c q[n, c] log_probability[n, c], shape (batch,)."""
        of_target: Array = log_probability[np.arange(len(target)), target]
        if not self.label_smoothing:
            return of_target
        expected: Array = (1 - self.label_smoothing) * of_target + self.label_smoothing * log_probability.mean(axis=1)
        return expected

    def _check(self, prediction: Array, target: Array) -> None:
        if target.dtype != np.int64:
            raise TypeError(f"CrossEntropyLoss takes int64 class indices as target, not {target.dtype}")
        if prediction.ndim != 2 or target.shape != prediction.shape[:1]:
            raise ValueError(
                "CrossEntropyLoss takes a prediction (batch, classes) and a target (batch,), "
                f"not {prediction.shape} and {target.shape}"
            )
        # One comparison for both ends: as unsigned, a negative label is a huge one.
        if len(target) and target.view(np.uint64).max() >= prediction.shape[1]:
            raise ValueError(self._label_message(target, prediction.shape[1]))

    @staticmethod
    def _label_message(target: Array, classes: int) -> str:
        index = int(np.argmax((target < 0) | (target >= classes)))
        return f"CrossEntropyLoss: label {target[index]} at index {index} is outside 0 ... {classes - 1}"
