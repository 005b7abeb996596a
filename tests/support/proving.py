"""Trainings whose steps are proven together, in groups of any size, or one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nn_manual import SGD, Linear, MSELoss, Sequential, Tanh, Trainer
from nn_manual.check.many_steps import ring
from nn_manual.check.many_steps.prover import Prover
from nn_manual.data import Examples
from nn_manual.trainer.steps import Step

#: Examples of a batch.
BATCH = 4


def points(num_steps: int, dtype: str = "float32") -> Examples:
    """Batches for `trainer_of`."""
    generator = np.random.default_rng(0)
    shape = num_steps * BATCH, 3
    return Examples(*(generator.standard_normal(shape).astype(dtype) for _ in range(2)))


def net(dtype: str = "float32") -> Sequential:
    """A net for `points`, with a square matrix in its middle."""
    return Sequential(Linear(3, 4), Tanh(), Linear(4, 4), Tanh(), Linear(4, 3), seed=1, dtype=dtype)


def trainer_of(model: Sequential, optimizer_class: Any = SGD, *, memory: int = 64_000_000, **settings: Any) -> Trainer:
    """A trainer that proves up to so many bytes of steps together: 0 for one by one."""
    return Trainer(model, MSELoss(), optimizer_class(model, lr=0.05), check_memory=memory, **settings)


def trained(trainer: Trainer, examples: Examples, batch_size: int = BATCH) -> list[Step]:
    """The steps of an epoch."""
    return list(trainer.epoch(examples, batch_size, seed=0, epoch=0))


def prover_of(trainer: Trainer) -> Prover:
    """What proves the steps of an epoch."""
    assert trainer.prover is not None
    return trainer.prover


def group_size(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Let so many steps be proven at once."""
    monkeypatch.setattr(ring, "MOST_STEPS", size)
    monkeypatch.setattr(ring, "FEWEST_STEPS", 1)


def figures(steps: list[Step]) -> list[tuple[list[float], list[float]]]:
    """What was found in each step."""
    return [(step.check.absolute.tolist(), step.check.scale.tolist()) for step in steps if step.check]
