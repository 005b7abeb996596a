"""Losses of the absolute difference of prediction and target, as it is or rounded off at 0."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nn_manual.arrays import Array
from nn_manual.losses.base import Loss
from nn_manual.losses.elementwise import ElementwiseLoss


class OfDifference(ElementwiseLoss):
    """A loss whose terms are functions of prediction - target, which is what it saves.

        grad_target = -grad_prediction
    """

    def backward_target(self, saved: Array) -> Array:
        """grad_target."""
        return -self.backward(saved)


@dataclass(eq=False)
class L1Loss(OfDifference):
    """Absolute error; prediction and target have the same shape and N elements.

        loss            = mean(abs(prediction - target))           where reduction = mean
        loss            = sum(abs(prediction - target))            where reduction = sum
        grad_prediction = sign(prediction - target) / N            where reduction = mean
        grad_prediction = sign(prediction - target)                where reduction = sum
        grad_target     = -grad_prediction

    Derivation: d |x| / dx is 1 where x > 0 and -1 where x < 0. At 0 there is a kink; any value in [-1, 1] is a
    subgradient, and torch takes 0.
    """

    def term(self, prediction: Array, target: Array) -> tuple[Array, Array]:
        """|prediction - target|; saves the difference."""
        difference = prediction - target
        return np.abs(difference), difference

    def derivative(self, saved: Array) -> Array:
        """The sign of the difference."""
        difference = saved
        return np.sign(difference)


@dataclass(eq=False)
class HuberLoss(OfDifference):
    """Squared error where it is small, absolute error where it is large; equal shapes, N elements.

        distance        = abs(prediction - target)
        clipped         = minimum(distance, delta)
        loss            = mean(clipped * (distance - clipped / 2))               where reduction = mean
        loss            = sum(clipped * (distance - clipped / 2))                where reduction = sum
        grad_prediction = clip(prediction - target, -delta, delta) / N           where reduction = mean
        grad_prediction = clip(prediction - target, -delta, delta)               where reduction = sum
        grad_target     = -grad_prediction

    Derivation: with d = prediction - target, the term is d**2 / 2 where |d| < delta, and delta (|d| - delta / 2)
    elsewhere, which is what the formula makes of clipped = |d| and clipped = delta. Its derivative is d there, and
    delta sign(d) here: d, clipped. Both agree at |d| = delta (Huber 1964).
    Raises ValueError for a delta that is not positive.
    """

    delta: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.delta < np.inf:
            raise ValueError(f"delta must be positive and finite, not {self.delta}")

    @classmethod
    def examples(cls, num_outputs: int = 5) -> list[Loss]:  # noqa: ARG003 - it takes any number
        """Both reductions, and another delta."""
        return [cls("mean"), cls("sum", 0.3)]

    def term(self, prediction: Array, target: Array) -> tuple[Array, Array]:
        """The rounded distance; saves the difference."""
        difference = prediction - target
        distance = np.abs(difference)
        clipped = np.minimum(distance, self.delta)
        return clipped * (distance - clipped / 2), difference

    def derivative(self, saved: Array) -> Array:
        """The difference, clipped."""
        difference = saved
        derivative: Array = np.clip(difference, -self.delta, self.delta)
        return derivative


@dataclass(eq=False)
class SmoothL1Loss(OfDifference):
    """Absolute error, rounded off at 0 within `beta`; equal shapes, N elements.

        distance        = abs(prediction - target)
        clipped         = minimum(distance, beta)
        loss            = mean(clipped * (distance - clipped / 2)) / beta        where reduction = mean
        loss            = sum(clipped * (distance - clipped / 2)) / beta         where reduction = sum
        grad_prediction = clip((prediction - target) / beta, -1, 1) / N          where reduction = mean
        grad_prediction = clip((prediction - target) / beta, -1, 1)              where reduction = sum
        grad_target     = -grad_prediction

    With beta 0, it is L1Loss.

    Derivation: it is HuberLoss with delta = beta, divided by beta.
    Raises ValueError for a beta below 0.
    """

    beta: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.beta < np.inf:
            raise ValueError(f"beta must be at least 0 and finite, not {self.beta}")

    @classmethod
    def examples(cls, num_outputs: int = 5) -> list[Loss]:  # noqa: ARG003 - it takes any number
        """Both reductions, and another beta."""
        return [cls("mean"), cls("sum", 0.3)]

    def term(self, prediction: Array, target: Array) -> tuple[Array, Array]:
        """The rounded distance; saves the difference."""
        difference = prediction - target
        distance = np.abs(difference)
        if not self.beta:
            return distance, difference
        clipped = np.minimum(distance, self.beta)
        return clipped * (distance - clipped / 2) / self.beta, difference

    def derivative(self, saved: Array) -> Array:
        """The difference in units of beta, clipped."""
        difference = saved
        if not self.beta:
            return np.sign(difference)
        derivative: Array = np.clip(difference / self.beta, -1, 1)
        return derivative
