"""Losses of the squared difference of prediction and target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nn_manual.arrays import Array
from nn_manual.losses.base import Loss, check_reduction
from nn_manual.losses.elementwise import check_alike


@dataclass(eq=False)
class MSELoss(Loss):
    """Squared error; prediction and target have the same shape and N elements.

        loss            = mean((prediction - target)**2)     where reduction = mean
        loss            = sum((prediction - target)**2)      where reduction = sum
        grad_prediction = 2 * (prediction - target) / N      where reduction = mean
        grad_prediction = 2 * (prediction - target)          where reduction = sum
        grad_target     = -grad_prediction

    Derivation: d (p - t)**2 / dp = 2 (p - t) and d (p - t)**2 / dt = -2 (p - t); the mean multiplies by 1 / N.
    N counts every element, as torch does: outputs times batch, not the batch alone. Without elements, the mean is not a
    number.
    """

    reduction: str = "mean"

    def __post_init__(self) -> None:
        check_reduction(self.reduction)

    @classmethod
    def examples(cls, num_outputs: int = 5) -> list[Loss]:  # noqa: ARG003 - it takes any number
        """Both reductions."""
        return [cls("mean"), cls("sum")]

    def forward(self, prediction: Array, target: Array) -> tuple[Any, Array]:
        """The scalar loss; saves prediction - target."""
        difference = prediction - target
        squares = difference * difference
        if self.reduction == "mean" and not squares.size:  # NumPy would warn
            return squares.dtype.type(np.nan), difference
        return (squares.mean() if self.reduction == "mean" else squares.sum()), difference

    def backward(self, saved: Array) -> Array:
        """grad_prediction."""
        difference = saved
        if not difference.size:
            return difference
        return difference * (2 / difference.size if self.reduction == "mean" else 2)

    def backward_target(self, saved: Array) -> Array:
        """grad_target."""
        return -self.backward(saved)

    def check_target(self, prediction: Array, target: Array) -> None:
        """Raise ValueError if the shapes differ, and TypeError if the dtypes differ."""
        check_alike(self, prediction, target)


@dataclass(eq=False)
class TraceLoss(Loss):
    """The trace of the Gram matrix of the difference; prediction and target are (batch, outputs).

        loss            = trace((prediction - target).T @ (prediction - target))
        grad_prediction = 2 * (prediction - target)
        grad_target     = -grad_prediction

    Derivation: with d = prediction - target, trace(d.T @ d) = sum_j (d.T @ d)[j, j] = sum_ij d[i, j]**2, so its
    derivative with respect to d[i, j] is 2 d[i, j]. forward computes this sum: it takes batch * outputs
    multiplications, and the product of the matrices takes batch * outputs**2.
    """

    reduction = "sum"  # a fact, not a field: a trace is a sum

    def forward(self, prediction: Array, target: Array) -> tuple[Any, Array]:
        """The scalar loss; saves prediction - target."""
        difference = prediction - target
        return (difference * difference).sum(), difference

    def backward(self, saved: Array) -> Array:
        """grad_prediction."""
        difference = saved
        return 2 * difference

    def backward_target(self, saved: Array) -> Array:
        """grad_target."""
        return -self.backward(saved)

    def check_target(self, prediction: Array, target: Array) -> None:
        """Raise ValueError if the shapes differ or aren't matrices', and TypeError if the dtypes differ."""
        check_alike(self, prediction, target)
        if prediction.ndim != 2:
            raise ValueError(f"TraceLoss takes matrices, not arrays of shape {prediction.shape}")

    def reference(self, prediction: Any, target: Any) -> Any:
        """The definition, on torch tensors."""
        difference = prediction - target
        return (difference.T @ difference).trace()
