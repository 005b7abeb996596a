"""A run that goes on finds of each step what one that never stopped finds: its first step waits with the others."""

from __future__ import annotations

import numpy as np
import pytest

from nn_manual import SGD, BatchNorm1d, CrossEntropyLoss, Linear, ReLU, Sequential, Trainer
from nn_manual.data import Examples, batches

NUM_STEPS, LAST_BEFORE = 12, 5


def new_trainer() -> Trainer:
    model = Sequential(Linear(20, 16), BatchNorm1d(16), ReLU(), Linear(16, 5))
    return Trainer(model, CrossEntropyLoss(), SGD(model, lr=0.1, momentum=0.9))


def row_of(trainer: Trainer, row: int) -> int:
    """The number of the step that was kept there."""
    assert trainer.prover is not None
    group = next(iter(trainer.prover.groups._by_shape.values()))
    assert group is not None
    return group.ring.numbers[row]


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # the mean over nothing
@pytest.mark.parametrize("without_loss", [None, 0, 2, 4, 9])
def test_a_run_that_goes_on_finds_the_same(without_loss: int | None) -> None:
    """A batch whose labels are all ignored has no loss to compare."""
    generator = np.random.default_rng(0)
    input = generator.standard_normal((NUM_STEPS * 8, 20), np.float32)
    examples = Examples(input, generator.integers(0, 5, len(input)))
    order = Examples(np.arange(len(input)), examples.target)
    for i, (indices, _) in enumerate(batches(order, 8, 0, 0)):
        if i == without_loss:
            examples.target[indices] = CrossEntropyLoss().ignore_index
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
    rows = [*range(2 if without_loss == 0 else 1, NUM_STEPS)]
    assert [row_of(whole, row) for row in rows] == [0 if row == without_loss else row + 1 for row in rows]
    for row in range(LAST_BEFORE + 1, NUM_STEPS):
        assert row_of(second, row) == row_of(whole, row)
    for mine, right in zip(found, expected[LAST_BEFORE:], strict=True):
        assert (mine is None) == (right is None)
        if mine is None or right is None:
            continue
        np.testing.assert_array_equal(mine.absolute, right.absolute)
        np.testing.assert_array_equal(mine.scale, right.scale)
