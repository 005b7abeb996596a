"""What the tests of the trainer share: points of the plane, a net that learns their quadrants, and its epochs."""

from __future__ import annotations

from typing import Any

import numpy as np

from nn_manual.data import Examples
from nn_manual.layers import Linear, ReLU, Tanh
from nn_manual.losses import CrossEntropyLoss
from nn_manual.model import Sequential
from nn_manual.optim import SGD
from nn_manual.trainer.steps import Step
from nn_manual.trainer.trainer import Trainer

BATCH = 8


def examples(num_examples: int = 30, dtype: str = "float64") -> Examples:
    """Points of the plane and the quadrant that each lies in."""
    input = np.random.default_rng(0).standard_normal((num_examples, 2)).astype(dtype)
    return Examples(input, ((input[:, 0] > 0) + 2 * (input[:, 1] > 0)).astype(np.int64))


def classifier(dtype: str = "float64", **settings: Any) -> Trainer:
    model = Sequential(Linear(2, 6), Tanh(), Linear(6, 5), ReLU(), Linear(5, 4), dtype=dtype)
    return Trainer(model, CrossEntropyLoss(), SGD(model, lr=0.1, momentum=0.9), **settings)


def train(trainer: Trainer, num_epochs: int = 2) -> list[Step]:
    data = examples(dtype=str(trainer.model.dtype))
    return [step for epoch in range(num_epochs) for step in trainer.epoch(data, BATCH, seed=0, epoch=epoch)]
