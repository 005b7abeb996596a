"""The verdict on a step in slices has what that on a step of the whole batch has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nn_manual import SGD, GradientMismatch, Linear, MSELoss, Sequential, Trainer
from nn_manual.arrays import Array
from nn_manual.step.slices.cut import Slicing


class Writes(Linear):
    """A Linear whose backward moves its weight, after all that is compared of one example."""

    torch_class = "Linear"

    def backward_parameters(self, saved: Any, grad_output: Array) -> None:
        super().backward_parameters(saved, grad_output)
        if len(grad_output) == 1:
            self.param.weight += 1


@pytest.mark.parametrize(("num_slices", "num_examples"), [(1, 1), (2, 1), (2, 3)])
def test_a_layer_that_makes_the_optimizer_look_wrong_is_named(num_slices: int, num_examples: int) -> None:
    """It writes in the last slice that has an example: no other slice sees it."""
    model = Sequential(Writes(3, 2), dtype="float64")
    trainer = Trainer(model, MSELoss(), SGD(model, lr=0.1), slicing=Slicing(num_slices))
    with pytest.raises(GradientMismatch, match=r"failed: 0 \(Writes\): backward wrote into param.weight"):
        trainer.train_step(np.eye(3)[:num_examples], np.ones((num_examples, 2)))
