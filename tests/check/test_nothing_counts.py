"""A step in which nothing counts isn't compared. A loss that says so wrongly would hide it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from nn_manual import SGD, CrossEntropyLoss, GradientMismatch, Linear, Sequential, Slicing, Trainer
from nn_manual.arrays import Array

#: Steps are proven one by one, together, and in slices.
WAYS: list[dict[str, Any]] = [{"check_memory": 0}, {}, {"slicing": Slicing(num_slices=2)}]


@dataclass(eq=False)
class WrongDenominator(CrossEntropyLoss):
    """After the first step, the denominator is wrong, and so is the gradient."""

    wrong: float = 0.0
    is_wrong = False

    def denominator(self, target: Array) -> float:
        return self.wrong if self.is_wrong else super().denominator(target)

    def backward(self, saved: Any) -> Array:
        return super().backward(saved) * (2 if self.is_wrong else 1)

    def reference(self, prediction: Any, target: Any) -> Any:
        return torch.nn.functional.cross_entropy(prediction, target)


def trainer_of(loss: CrossEntropyLoss, way: dict[str, Any]) -> Trainer:
    model = Sequential(Linear(3, 4), seed=0)
    return Trainer(model, loss, SGD(model, lr=0.1), **way)


def batch(number: int) -> tuple[Array, Array]:
    generator = np.random.default_rng(number)
    return generator.standard_normal((6, 3), np.float32), generator.integers(0, 4, 6)


@pytest.mark.parametrize("way", WAYS, ids=["alone", "together", "slices"])
@pytest.mark.parametrize("wrong", [0.0, -6.0, math.nan])
def test_a_wrong_denominator_does_not_hide_a_step(way: dict[str, Any], wrong: float) -> None:
    loss = WrongDenominator(wrong=wrong)
    trainer = trainer_of(loss, way)
    trainer.steps.one(*batch(0), together=True)
    loss.is_wrong = True
    with pytest.raises(GradientMismatch, match=rf"denominator {wrong:g}, so nothing\s+counts,\s+but torch's is 1"):
        trainer.steps.one(*batch(1), together=True)


@pytest.mark.parametrize("way", WAYS, ids=["alone", "together", "slices"])
def test_a_step_in_which_nothing_counts_passes(way: dict[str, Any]) -> None:
    trainer = trainer_of(CrossEntropyLoss(ignore_index=9), way)
    input, target = batch(0)
    for count in (6, 0, 6):
        own = np.where(np.arange(6) < count, target, 9)
        assert math.isnan(trainer.steps.one(input, own, together=True).loss) == (not count)


@dataclass(eq=False)
class Gradient(CrossEntropyLoss):
    """Where nothing counts, the gradient is `filled` with something."""

    filled: float = 1.0

    def backward(self, saved: Any) -> Array:
        grad = super().backward(saved)
        return grad if grad.any() else np.full_like(grad, self.filled)

    def reference(self, prediction: Any, target: Any) -> Any:
        return torch.nn.functional.cross_entropy(prediction, target, ignore_index=self.ignore_index)


@pytest.mark.parametrize("way", WAYS[:2], ids=["alone", "together"])  # the gradients of slices are multiplied by 0
@pytest.mark.parametrize("filled", [1.0, -0.25, math.nan])
def test_a_gradient_where_nothing_counts_is_wrong(way: dict[str, Any], filled: float) -> None:
    trainer = trainer_of(Gradient(filled=filled), way)
    input, target = batch(0)
    trainer.steps.one(input, target, together=True)
    with pytest.raises(GradientMismatch) as caught:
        trainer.steps.one(input, np.full_like(target, -100), together=True)
    words = "loss: the loss has the denominator 0, so nothing counts, but grad_prediction is up to"
    assert f"{words} {abs(filled):g}: it must be 0" in " ".join(str(caught.value).split())



def test_slices_in_which_nothing_counts_move_nothing() -> None:
    trainer = trainer_of(Gradient(), WAYS[2])
    input, target = batch(0)
    before = trainer.model.param_arena.copy()
    trainer.steps.one(input, np.full_like(target, -100), together=True)
    assert np.array_equal(trainer.model.param_arena, before)
