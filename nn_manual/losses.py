"""Losses: scalar functions of a prediction and a target, with gradients derived by hand."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from nn_manual.arrays import Array


class Loss(ABC):
    """A scalar function of (prediction, target); the gradient of the loss with respect to itself is 1.

    Concrete losses are dataclasses whose fields are keyword arguments of the torch.nn class of the same name. A
    loss that torch doesn't have defines `reference(prediction, target)`, its formula in operators that torch
    tensors have too.
    """

    reduction: str

    @abstractmethod
    def forward(self, prediction: Array, target: Array) -> tuple[Any, Any]:
        """`value, saved`: the scalar loss in the prediction's dtype, and exactly what `backward` needs."""

    @abstractmethod
    def backward(self, saved: Any) -> Array:
        """grad_prediction, shaped as the prediction."""

    @classmethod
    def examples(cls) -> list[Loss]:
        """Losses of this class with different settings, on which the catalogue checks the class."""
        return [cls()]


def _check_reduction(reduction: str) -> None:
    if reduction not in ("mean", "sum"):
        raise ValueError(f"reduction must be mean or sum, not {reduction!r}")


def _difference(name: str, prediction: Array, target: Array) -> Array:
    """prediction - target, refusing to broadcast or to change the dtype."""
    if prediction.shape != target.shape:
        raise ValueError(f"{name} takes equal shapes, not prediction {prediction.shape} and target {target.shape}")
    if prediction.dtype != target.dtype:
        raise TypeError(f"{name} takes equal dtypes, not prediction {prediction.dtype} and target {target.dtype}")
    difference: Array = prediction - target
    return difference


@dataclass(eq=False)
class MSELoss(Loss):
    """Squared error, prediction and target of one shape with N elements in all.

        loss            = mean((prediction - target)**2)     where reduction = mean
        loss            = sum((prediction - target)**2)      where reduction = sum
        grad_prediction = 2 * (prediction - target) / N      where reduction = mean
        grad_prediction = 2 * (prediction - target)          where reduction = sum
        grad_target     = -grad_prediction

    Derivation: d (p - t)**2 / dp = 2 (p - t) and d (p - t)**2 / dt = -2 (p - t); the mean multiplies by 1 / N.
    N counts every element, as torch does: outputs times batch, not the batch alone.
    Raises ValueError where the shapes differ (nothing is broadcast), TypeError where the dtypes do.
    """

    reduction: str = "mean"

    def __post_init__(self) -> None:
        _check_reduction(self.reduction)

    @classmethod
    def examples(cls) -> list[Loss]:
        """Both reductions."""
        return [cls("mean"), cls("sum")]

    def forward(self, prediction: Array, target: Array) -> tuple[Any, Array]:
        """The scalar loss; saves prediction - target."""
        difference = _difference("MSELoss", prediction, target)
        squares = difference * difference
        return (squares.mean() if self.reduction == "mean" else squares.sum()), difference

    def backward(self, saved: Array) -> Array:
        """grad_prediction."""
        difference = saved
        return difference * (2 / difference.size if self.reduction == "mean" else 2)

    def backward_target(self, saved: Array) -> Array:
        """grad_target."""
        return -self.backward(saved)


@dataclass(eq=False)
class TraceLoss(Loss):
    """The trace of the Gram matrix of the difference, prediction and target of shape (batch, outputs).

        loss            = trace((prediction - target).T @ (prediction - target))
        grad_prediction = 2 * (prediction - target)
        grad_target     = -grad_prediction

    Derivation: with d = prediction - target, trace(d.T @ d) = sum_j (d.T @ d)[j, j] = sum_ij d[i, j]**2, so its
    derivative with respect to d[i, j] is 2 d[i, j]. forward uses that sum: it needs batch * outputs
    multiplications where the product of the matrices needs batch * outputs**2.
    Raises ValueError where the shapes differ or are not matrices, TypeError where the dtypes differ.
    """

    reduction = "sum"  # a fact, not a field: a trace is a sum

    def forward(self, prediction: Array, target: Array) -> tuple[Any, Array]:
        """The scalar loss; saves prediction - target."""
        difference = _difference("TraceLoss", prediction, target)
        if difference.ndim != 2:
            raise ValueError(f"TraceLoss takes matrices, not arrays of shape {difference.shape}")
        return (difference * difference).sum(), difference

    def backward(self, saved: Array) -> Array:
        """grad_prediction."""
        difference = saved
        return 2 * difference

    def backward_target(self, saved: Array) -> Array:
        """grad_target."""
        return -self.backward(saved)

    def reference(self, prediction: Any, target: Any) -> Any:
        """The definition, on torch tensors."""
        difference = prediction - target
        return (difference.T @ difference).trace()


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
        _check_reduction(self.reduction)
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
