"""torch's versions of optimizers."""

from __future__ import annotations

import numpy as np
import pytest

from nn_manual import SGD, AdamW, Linear, Sequential
from nn_manual.check.twin.optimizers import OptimizerTwin


def test_a_step_starts_from_what_it_is_given() -> None:
    """The same step again gives the same, after any other steps in between."""
    model = Sequential(Linear(2, 1), dtype="float64")
    optimizer = SGD(model, lr=0.5, momentum=0.9, dampening=0.5)
    twin = OptimizerTwin(optimizer, model.dtype)
    param, grad = np.arange(3.0), np.ones(3)
    for num_steps, buffer in ((0, [1, 1, 1]), (4, [2.3, 2.3, 2.3]), (0, [1, 1, 1])):
        twin.step(param, {"momentum_buffer": np.full(3, 2.0)}, grad, lrs=[0.5], num_steps=num_steps)
        np.testing.assert_allclose(twin.vectors["momentum_buffer"], buffer, rtol=1e-15)
        np.testing.assert_allclose(twin.param, param - 0.5 * np.array(buffer), rtol=1e-15)


def test_a_group_has_its_settings_and_its_lr() -> None:
    """The bias has no momentum, so its part of the buffer stays."""
    model = Sequential(Linear(2, 1), dtype="float64")
    optimizer = SGD(model, lr=0.5, momentum=0.9, groups=[{"parameters": "*.bias", "momentum": 0.0}])
    twin = OptimizerTwin(optimizer, model.dtype)
    for _ in range(2):
        twin.step(np.zeros(3), {"momentum_buffer": np.full(3, 2.0)}, np.ones(3), lrs=[0.5, 0.25], num_steps=1)
        np.testing.assert_allclose(twin.vectors["momentum_buffer"], [2.8, 2.8, 2.0], rtol=1e-15)
        np.testing.assert_allclose(twin.param, [-1.4, -1.4, -0.25], rtol=1e-15)


def test_the_number_of_steps_is_that_of_each_part() -> None:
    """torch counts the steps of each of its parameters: with one count for two runs it would count twice."""
    model = Sequential(Linear(2, 1), Linear(1, 1), dtype="float64")
    optimizer = AdamW(model, betas=(0.5, 0), eps=0.25, groups=[{"parameters": "*.bias", "weight_decay": 0.0}])
    twin = OptimizerTwin(optimizer, model.dtype)
    vectors = {"exp_avg": np.zeros(5), "exp_avg_sq": np.zeros(5)}
    twin.step(np.ones(5), vectors, np.full(5, 0.75), lrs=[1.0, 1.0], num_steps=3)
    np.testing.assert_allclose(twin.param, [0.59, 0.59, 0.6, 0.59, 0.6], rtol=1e-14)


def test_an_optimizer_that_torch_does_not_have() -> None:
    class Halving(SGD):
        pass

    with pytest.raises(TypeError, match=r"^torch\.optim has no Halving: there is nothing to check it against$"):
        OptimizerTwin(Halving(Sequential()), np.dtype(np.float32))
