"""A run that goes on finds of each step what one that never stopped finds: its first step waits with the others."""

from __future__ import annotations

import numpy as np

from nn_manual import SGD, BatchNorm1d, CrossEntropyLoss, Linear, ReLU, Sequential, Trainer
from nn_manual.data import Examples

NUM_STEPS, LAST_BEFORE = 12, 5


def new_trainer() -> Trainer:
    model = Sequential(Linear(20, 16), BatchNorm1d(16), ReLU(), Linear(16, 5))
    return Trainer(model, CrossEntropyLoss(), SGD(model, lr=0.1, momentum=0.9))


def test_a_run_that_goes_on_finds_the_same() -> None:
    generator = np.random.default_rng(0)
    input = generator.standard_normal((NUM_STEPS * 8, 20), np.float32)
    examples = Examples(input, generator.integers(0, 5, len(input)))
    whole, second = new_trainer(), new_trainer()
    expected = []
    for step in whole.epoch(examples, 8, seed=0, epoch=0):
        expected.append(step.check)
        if step.number == LAST_BEFORE:  # as before a checkpoint
            whole.flush()
            second.model.load_state_dict(whole.model.state_dict())
            second.optimizer.load_state(whole.optimizer.state())
            assert whole.checker is not None
            assert second.checker is not None
            second.checker.load_state(whole.checker.state())
    second.num_steps = second.model.num_steps = LAST_BEFORE
    found = [step.check for step in second.epoch(examples, 8, seed=0, epoch=0, first=LAST_BEFORE)]
    assert len(found) == NUM_STEPS - LAST_BEFORE
    for mine, right in zip(found, expected[LAST_BEFORE:], strict=True):
        assert mine is not None
        assert right is not None
        np.testing.assert_array_equal(mine.absolute, right.absolute)
        np.testing.assert_array_equal(mine.scale, right.scale)
