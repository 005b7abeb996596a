"""Losses that compute the right values and misbehave: each is named, with what it did."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from nets import batch, net
from problems import problem_and_place

from nn_manual import SGD, GradientMismatch, Slicing, Trainer, check_gradients
from nn_manual.arrays import Array
from nn_manual.losses import Loss


@dataclass(eq=False)
class Misbehaves(Loss):
    """The mean of (prediction - target)**2, by a loss that does what `deed` says."""

    deed: str = ""
    reduction: str = "mean"
    buffer: Array = field(default_factory=lambda: np.zeros((4, 4), np.float32))

    def forward(self, prediction: Array, target: Array) -> tuple[Any, Array]:
        if self.deed == "halves its target":
            target *= 0.5
        into = {"difference in its prediction": prediction, "difference in a buffer": self.buffer}.get(self.deed)
        difference = np.subtract(prediction, target, out=into)
        if self.deed == "second forward":
            self.deed = "raises"
        elif self.deed == "raises":
            raise KeyError("target")
        return np.mean(difference * difference), difference

    def backward(self, saved: Array) -> Array:
        factor = saved.dtype.type(2 / saved.size)
        if self.deed == "gradient in what it saved":
            saved *= factor
            return saved
        grad: Array = np.multiply(factor, saved, out=self.buffer if self.deed == "gradient in a buffer" else None)
        return grad

    def reference(self, prediction: Any, target: Any) -> Any:
        return ((prediction - target) ** 2).mean()


DEEDS = [
    ("halves its target", "forward wrote into its target"),
    ("difference in its prediction", "forward wrote into its prediction"),
    ("gradient in what it saved", "backward wrote into what forward saved"),
    ("difference in a buffer", "run again on other values, it overwrote what forward saved"),
    ("gradient in a buffer", "run again on other values, it overwrote the grad_prediction"),
    ("second forward", "run again, forward raised KeyError: 'target'"),
]


@pytest.mark.parametrize(("deed", "words"), DEEDS)
def test_a_loss_that_misbehaves_is_named(deed: str, words: str) -> None:
    input, target = batch()
    problem, file, _ = problem_and_place(check_gradients(net(), Misbehaves(deed), input, target))
    assert problem == f"loss (Misbehaves): {words}"
    assert file is not None
    assert file.name == "test_loss.py"
    assert np.array_equal(target, batch()[1])


def test_a_loss_that_behaves_passes() -> None:
    assert check_gradients(net(), Misbehaves(), *batch()).passed


@pytest.mark.parametrize("way", [{}, {"check_memory": 0}, {"slicing": Slicing(num_slices=2)}])
@pytest.mark.parametrize(("deed", "words"), DEEDS[:2])
def test_in_training_no_layer_is_blamed(deed: str, words: str, way: dict[str, Any]) -> None:
    model = net()
    trainer = Trainer(model, Misbehaves(deed), SGD(model, lr=0.1), **way)
    with pytest.raises(GradientMismatch) as caught:
        list(trainer.epoch(batch(), 4, seed=0, epoch=0))
    assert problem_and_place(caught.value.report)[0] == f"loss (Misbehaves): {words}"


class Counts(Misbehaves):
    """It counts its runs: a check that ran it more often than the step does would change what it is."""

    num_forwards = 0

    def forward(self, prediction: Array, target: Array) -> tuple[Any, Array]:
        self.num_forwards += 1
        return super().forward(prediction, target)


def test_a_copy_of_the_loss_runs_again() -> None:
    loss = Counts()
    assert check_gradients(net(), loss, *batch()).agrees
    assert loss.num_forwards == 1


class NoCopies(Misbehaves):
    """A loss that can't be copied."""

    def __deepcopy__(self, memo: Any) -> Any:
        raise TypeError("one is enough")


def test_a_loss_that_cannot_be_copied_is_refused() -> None:
    report = check_gradients(net(), NoCopies(), *batch())
    text = "loss (NoCopies) can't be copied, which the check needs: TypeError: one is enough"
    assert report.problem == text
