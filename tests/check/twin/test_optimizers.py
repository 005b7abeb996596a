"""torch's versions of optimizers and schedules."""

from __future__ import annotations

import numpy as np
import pytest

from nn_manual import SGD, Linear, Sequential
from nn_manual.check.twin.optimizers import OptimizerTwin, SchedulerTwin
from nn_manual.optim import CosineAnnealingLR, StepLR


def test_a_step_starts_from_what_it_is_given() -> None:
    """The same step again gives the same, after any other steps in between."""
    model = Sequential(Linear(2, 3), dtype="float64")
    optimizer = SGD(model, lr=0.5, momentum=0.9, dampening=0.5)
    twin = OptimizerTwin(optimizer, 3, model.dtype)
    param, grad = np.arange(3.0), np.ones(3)
    for num_steps, buffer in ((0, [1, 1, 1]), (4, [2.3, 2.3, 2.3]), (0, [1, 1, 1])):
        twin.step(param, {"momentum_buffer": np.full(3, 2.0)}, grad, lr=0.5, num_steps=num_steps)
        np.testing.assert_allclose(twin.vectors["momentum_buffer"], buffer, rtol=1e-15)
        np.testing.assert_allclose(twin.param, param - 0.5 * np.array(buffer), rtol=1e-15)


def test_an_optimizer_that_torch_does_not_have() -> None:
    class Halving(SGD):
        pass

    with pytest.raises(TypeError, match=r"^torch\.optim has no Halving: there is nothing to check it against$"):
        OptimizerTwin(Halving(Sequential()), 1, np.dtype(np.float32))


@pytest.mark.parametrize("scheduler", [StepLR(2, 0.5), CosineAnnealingLR(5)])
def test_a_schedule_can_be_rewound(scheduler: StepLR | CosineAnnealingLR) -> None:
    twin = SchedulerTwin(scheduler, 0.1)
    forward = [twin.lr(epoch) for epoch in range(6)]
    assert [twin.lr(epoch) for epoch in reversed(range(6))] == forward[::-1]
    assert len(set(forward)) > 2
