"""A denominator that isn't what a loss's mean divides by is found; a loss that has none is left alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from problems import problem_and_place

from nn_manual import SGD, CrossEntropyLoss, Linear, MSELoss, Sequential, Trainer, check_gradients
from nn_manual.arrays import Array
from nn_manual.check.judge.report import GradientReport
from nn_manual.errors import GradientMismatch
from nn_manual.losses import Loss


@dataclass(eq=False)
class Masked(Loss):
    """The mean of (prediction - target)**2 over the targets that aren't -1; by default the denominator counts all."""

    reduction: str = "mean"

    def forward(self, prediction: Array, target: Array) -> tuple[Any, Any]:
        count = prediction.dtype.type((target != -1).sum())
        difference = (prediction - target) * (target != -1)
        return (difference**2).sum() / count, (difference, count)

    def backward(self, saved: Any) -> Array:
        difference, count = saved
        grad: Array = 2 * difference / count
        return grad

    def reference(self, prediction: Any, target: Any) -> Any:
        mask = target != -1
        return (((prediction - target) * mask) ** 2).sum() / mask.sum()


class Counts(Masked):
    """The right one."""

    def denominator(self, target: Array) -> float:
        return float((target != -1).sum())


@dataclass(eq=False)
class Pairs(Loss):
    """The mean of (prediction_i - prediction_j - target_i + target_j)**2 over all pairs: no mean of its halves."""

    reduction: str = "mean"

    def forward(self, prediction: Array, target: Array) -> tuple[Any, Array]:
        difference = prediction - target
        spread = difference - difference.mean(axis=0)
        return 2 * (spread**2).mean(), spread

    def backward(self, saved: Array) -> Array:
        grad: Array = saved * saved.dtype.type(4 / saved.size)
        return grad

    def reference(self, prediction: Any, target: Any) -> Any:
        difference = prediction - target
        return ((difference[:, None] - difference) ** 2).mean()


@dataclass(eq=False)
class Root(Loss):
    """The root of the mean of (prediction - target)**2: the gradients of its halves are multiples of their own."""

    reduction: str = "mean"

    def forward(self, prediction: Array, target: Array) -> tuple[Any, Any]:
        difference = prediction - target
        root = np.sqrt((difference**2).mean())
        return root, (difference, root)

    def backward(self, saved: Any) -> Array:
        difference, root = saved
        grad: Array = difference / (root * difference.dtype.type(difference.size))
        return grad

    def reference(self, prediction: Any, target: Any) -> Any:
        return ((prediction - target) ** 2).mean().sqrt()


class WholeBatch(Counts):
    """Takes batches of 6 alone."""

    def forward(self, prediction: Array, target: Array) -> tuple[Any, Any]:
        if len(prediction) != 6:
            raise ValueError("6 examples")
        return super().forward(prediction, target)


#: 3 numbers of the first half count, and 6 of the second.
TARGET = np.array([[0.5, -1], [2, 1], [-1, -1], [1, 0], [0.5, 3], [2, 2]], np.float32)


def report_on(loss: Loss, target: Array, dtype: str = "float32") -> GradientReport:
    input = np.random.default_rng(0).standard_normal((6, 3)).astype(dtype)
    return check_gradients(Sequential(Linear(3, 2), seed=0, dtype=dtype), loss, input, target)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_denominator_that_counts_too_many_is_found(dtype: str) -> None:
    """Of the 9 numbers that count, 3 stand in the first half."""
    words = (
        "loss (Masked): its denominators give the first 3 of 6 examples the weight 0.5 in the mean, and its gradient "
        "has 0.333333: override denominator"
    )
    assert problem_and_place(report_on(Masked(), TARGET.astype(dtype), dtype))[0] == words


class Constant(MSELoss):
    """The mean over the batch, with a denominator that two halves don't show."""

    def __init__(self, denominator: Callable[[int], float]) -> None:
        super().__init__()
        self._denominator = denominator

    def denominator(self, target: Array) -> float:
        return self._denominator(len(target))

    def reference(self, prediction: Any, target: Any) -> Any:
        return ((prediction - target) ** 2).mean()


@pytest.mark.parametrize(
    ("denominator", "weight"),
    [(lambda size: size**0, 0.5), (lambda size: size**2, 0.2), (lambda size: max(size, 4), 0.5)],
)
def test_halves_alone_would_hide_a_denominator(denominator: Callable[[int], float], weight: float) -> None:
    """Both in check_gradients and in the first step of a training."""
    words = (
        f"loss (Constant): its denominators give the first 2 of 6 examples the weight {weight} in the mean, and its "
        "gradient has 0.333333: override denominator"
    )
    assert problem_and_place(report_on(Constant(denominator), TARGET))[0] == words
    model = Sequential(Linear(3, 2), seed=0)
    trainer = Trainer(model, Constant(denominator), SGD(model))
    with pytest.raises(GradientMismatch, match=r"the first 2 of 6\n"):
        trainer.train_step(np.ones((6, 3), np.float32), TARGET)
    model = Sequential(Linear(3, 2), seed=0)
    trainer = Trainer(model, Constant(float), SGD(model))
    trainer.train_step(np.ones((6, 3), np.float32), TARGET)


@pytest.mark.parametrize("loss", [Counts(), Pairs(), Root(), WholeBatch()])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_right_denominator_and_a_loss_that_has_none_pass(loss: Loss, dtype: str) -> None:
    assert report_on(loss, TARGET.astype(dtype), dtype).passed


@pytest.mark.parametrize("ratio", [1, 1.0005, 1.002, 1.005, 1.01, 1.1, 3])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_function_of_a_mean_passes_however_near_its_halves_are(ratio: float, dtype: str) -> None:
    input = np.random.default_rng(0).standard_normal((6, 3)).astype(dtype)
    model = Sequential(Linear(3, 2), seed=0, dtype=dtype)
    target = model(input) - np.array([[ratio], [-ratio], [ratio], [1], [-1], [1]], dtype)
    assert check_gradients(model, Root(), input, target).agrees


def test_a_half_in_which_nothing_counts_is_no_false_alarm() -> None:
    target = np.where(np.arange(6)[:, None] < 3, -1, TARGET)
    assert report_on(Counts(), target.astype(np.float32)).passed
    assert report_on(CrossEntropyLoss(ignore_index=0), np.array([0, 0, 0, 1, 1, 0])).passed
