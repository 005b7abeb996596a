"""Losses of labels that are 1 or -1: what is right by a margin costs little or nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from nn_manual.arrays import Array
from nn_manual.losses.base import Loss
from nn_manual.losses.elementwise import ElementwiseLoss, check_values


class OfSigns(ElementwiseLoss):
    """A loss whose targets are 1 and -1."""

    def as_target(self, values: Array) -> Array:
        """1 for what is positive, -1 for the others."""
        signs: Array = np.where(values > 0, 1, -1).astype(values.dtype)
        return signs

    def check_target(self, prediction: Array, target: Array) -> None:
        """Raise ValueError if the shapes differ and for a target that is neither 1 nor -1, and TypeError if the dtypes
        differ.
        """
        super().check_target(prediction, target)
        check_values(self, target, lambda values: np.abs(values) == 1, "1 or -1")


@dataclass(eq=False)
class SoftMarginLoss(OfSigns):
    """Logistic loss of labels 1 and -1; equal shapes, N elements.

        lack            = -target * prediction
        exponential     = exp(-abs(lack))
        wrong           = where(lack > 0, 1, exponential) / (1 + exponential)
        loss            = mean(maximum(lack, 0) + log1p(exponential))      where reduction = mean
        loss            = sum(maximum(lack, 0) + log1p(exponential))       where reduction = sum
        grad_prediction = -target * wrong / N                              where reduction = mean
        grad_prediction = -target * wrong                                  where reduction = sum

    Derivation: the term is log(1 + exp(-t p)). Its derivative is -t exp(-t p) / (1 + exp(-t p)), and that quotient is
    1 / (1 + exp(t p)), the probability that the model gives to the wrong label. With exp(-|t p|) nothing overflows.
    """

    def term(self, prediction: Array, target: Array) -> tuple[Array, tuple[Array, Array, Array]]:
        """The logarithm; saves target, lack and exponential."""
        lack = -target * prediction
        exponential = np.exp(-np.abs(lack))
        return np.maximum(lack, 0) + np.log1p(exponential), (target, lack, exponential)

    def derivative(self, saved: tuple[Array, Array, Array]) -> Array:
        """The probability of the wrong label, with the sign that leads away from it."""
        target, lack, exponential = saved
        wrong: Array = np.where(lack > 0, 1, exponential) / (1 + exponential)
        return -target * wrong

    def reference(self, prediction: Any, target: Any) -> Any:
        """torch.nn.SoftMarginLoss computes exp(-target * prediction), which overflows, and log(1 + small), which loses
        its digits (torch 2.13).
        """
        lack = -target * prediction
        terms = lack.logaddexp(lack.new_zeros(()))
        return terms.mean() if self.reduction == "mean" else terms.sum()


@dataclass(eq=False)
class HingeEmbeddingLoss(OfSigns):
    """A distance that should be small where the label is 1, and at least the margin where it is -1; equal shapes.

        term            = where(target > 0, prediction, maximum(margin - prediction, 0))
        derivative      = where(target > 0, 1, -1 * (prediction <= margin))
        loss            = mean(term)                                               where reduction = mean
        loss            = sum(term)                                                where reduction = sum
        grad_prediction = derivative / N                                           where reduction = mean
        grad_prediction = derivative                                               where reduction = sum

    N is the number of elements.

    Derivation: d p / dp = 1; d (margin - p) / dp = -1 below the margin, and 0 above it. At the margin there is a kink;
    any value in [-1, 0] is a subgradient, and torch takes -1.
    Raises ValueError for a margin that is not finite.
    """

    margin: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not math.isfinite(self.margin):
            raise ValueError(f"margin must be finite, not {self.margin}")

    @classmethod
    def examples(cls, num_outputs: int = 5) -> list[Loss]:  # noqa: ARG003 - it takes any number
        """Both reductions, and another margin."""
        return [cls("mean"), cls("sum", 0.3)]

    def term(self, prediction: Array, target: Array) -> tuple[Array, tuple[Array, Array]]:
        """The distance, or what it lacks; saves both."""
        return np.where(target > 0, prediction, np.maximum(self.margin - prediction, 0)), (prediction, target)

    def derivative(self, saved: tuple[Array, Array]) -> Array:
        """1, or -1 below the margin."""
        prediction, target = saved
        below = (prediction <= self.margin).astype(prediction.dtype)
        return np.where(target > 0, 1, -below)
