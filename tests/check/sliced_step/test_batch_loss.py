"""The loss of a batch, put together from slices, beside torch's: rounding is told from a wrong weight."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nn_manual import (
    SGD,
    CrossEntropyLoss,
    Flatten,
    GradientMismatch,
    Linear,
    Loss,
    MSELoss,
    NotFiniteError,
    Sequential,
    Trainer,
    Unflatten,
)
from nn_manual.arrays import Array
from nn_manual.step.slices.cut import Slicing, parts_of


def certain(num_slices: int, lead: float, dtype: str, loss: Loss | None = None) -> Trainer:
    """A trainer of a net that gives each of 3 examples' classes a logit of `lead`, and 0 to the others."""
    model = Sequential(Linear(3, 3, bias=False), dtype=dtype)
    model.param_arena[...] = (lead * np.eye(3)).ravel()
    return Trainer(model, loss or CrossEntropyLoss(), SGD(model, lr=0.1), slicing=Slicing(num_slices))


def step_of(trainer: Trainer) -> Any:
    classes = np.array([0, 1, 2, 1, 0])
    return trainer.train_step(np.eye(3, dtype=trainer.model.dtype)[classes], classes)


@pytest.mark.parametrize(("dtype", "lead"), [("float32", 11), ("float32", 40), ("float64", 25), ("float64", 60)])
@pytest.mark.parametrize("num_slices", [1, 2])
def test_a_certain_prediction_is_no_false_alarm(dtype: str, lead: float, num_slices: int) -> None:
    """Of a probability of 1 - 3e-5, torch's gradient keeps two digits, ours all: as in a step of the whole batch."""
    check = step_of(certain(num_slices, lead, dtype)).check
    assert "loss.grad_prediction" in check.rounding
    assert ("batch.grad_prediction" in check.rounding) == (num_slices > 1)
    assert {name for name in check.rounding if name.startswith("summed")} == set()


class WrongWeight(CrossEntropyLoss):
    """A mean whose denominator is off by a thousandth for slices of 2."""

    def denominator(self, target: Array) -> float:
        return super().denominator(target) * (1.001 if len(target) == 2 else 1)

    def reference(self, prediction: Any, target: Any) -> Any:
        import torch

        return torch.nn.functional.cross_entropy(prediction, target)


@pytest.mark.parametrize("lead", [1, 11])
def test_a_wrong_weight_is_found_where_rounding_is_large(lead: float) -> None:
    """Within a thousandth, at a certain prediction torch's own loss and gradient in float32 are no better than that."""
    with pytest.raises(GradientMismatch, match=r"wrong first in batch: batch\.") as caught:
        step_of(certain(2, lead, "float32", WrongWeight()))
    assert caught.value.report.rounding == frozenset()
    assert caught.value.first_row is None
    assert len(caught.value.batch[0]) == 5  # type: ignore[index]  # a step has a batch


def test_a_wrong_loss_of_a_batch_is_described(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices that weigh twice."""
    right = parts_of

    def twice(*given: Any) -> Any:
        return [part._replace(weight=2 * part.weight) for part in right(*given)]

    monkeypatch.setattr("nn_manual.step.slices.sliced_batch.parts_of", twice)
    with pytest.raises(GradientMismatch, match="2 times the reference: counted twice") as caught:
        step_of(certain(2, 1, "float32"))
    assert [failure.name for failure in caught.value.report.failures] == ["batch.loss", "batch.grad_prediction"]


@pytest.mark.parametrize("lead", [2, 11])
def test_several_predictions_of_an_example(lead: float) -> None:
    """A prediction (2 * batch, 2) of a target (batch, 2), whose slices have 3 examples and 2."""
    model = Sequential(Linear(3, 4, bias=False), Unflatten(1, [2, 2]), Flatten(0, 1), dtype="float32")
    model.layers[0].param.weight[...] = [[lead, 0, 0], [0, lead, lead], [lead, lead, 0], [0, 0, lead]]
    trainer = Trainer(model, CrossEntropyLoss(), SGD(model, lr=0.1), slicing=Slicing(2))
    classes = np.array([0, 1, 2, 1, 0])
    target = np.array([[0, 0], [1, 0], [1, 1]])[classes]
    check = trainer.train_step(np.eye(3, dtype=np.float32)[classes], target).check
    assert check is not None
    assert ("batch.grad_prediction" in check.rounding) == (lead == 11)


@pytest.mark.parametrize("num_slices", [1, 2])
def test_a_loss_that_float32_cannot_hold_is_no_mismatch(num_slices: int) -> None:
    """The squares of each slice add up to 2.5e38, those of the batch to more than 3.4e38."""
    model = Sequential(Linear(1, 1, bias=False), dtype="float32")
    model.param_arena[...] = 1e19
    trainer = Trainer(model, MSELoss("sum"), SGD(model, lr=0.1), slicing=Slicing(num_slices))
    input = np.full((4, 1), 1.1, np.float32)
    with np.errstate(over="ignore"), pytest.raises(NotFiniteError, match=r"loss is inf"):
        trainer.train_step(input, np.zeros((4, 1), np.float32))

