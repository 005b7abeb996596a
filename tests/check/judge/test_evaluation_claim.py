"""What evaluation computes, judged by the parameters and buffers of now."""

from __future__ import annotations

import numpy as np
import pytest

from nn_manual import SGD, BatchNorm1d, GradientMismatch, Linear, MSELoss, Sequential, Trainer
from nn_manual.arrays import Array


class Wrong(BatchNorm1d):
    """`infer` is off by a hundredth in float32 alone, as compiled code can be."""

    torch_class = "BatchNorm1d"

    def infer(self, input: Array) -> Array:
        output = super().infer(input)
        return output * np.float32(1.01) if output.dtype == np.float32 else output


class Otherwise(BatchNorm1d):
    """The difference in `infer` is rounded in another order: as if the input came a last bit higher."""

    torch_class = "BatchNorm1d"

    def infer(self, input: Array) -> Array:
        return super().infer(np.nextafter(input, np.float32(np.inf)) if input.dtype == np.float32 else input)


def trained(layer: BatchNorm1d) -> tuple[Trainer, tuple[Array, Array]]:
    """After 20 steps, of which each tenth was compared."""
    model = Sequential(layer, Linear(2, 2), seed=0)
    generator = np.random.default_rng(0)
    input, target = (generator.standard_normal((80, 2)).astype(np.float32) for _ in range(2))
    input[:, 1] += 300  # far from 0, as the running mean is not at first: what is left of their difference is rounded
    trainer = Trainer(model, MSELoss(), SGD(model, lr=0.1), check_every=10)
    for epoch in range(2):
        list(trainer.epoch((input, target), 8, seed=0, epoch=epoch))
    return trainer, (input, target)


def test_how_far_training_has_come_since_a_compared_step_excuses_nothing() -> None:
    trainer, examples = trained(Wrong(2))
    with pytest.raises(GradientMismatch, match=r"wrong first in 0 \(Wrong\): 0\.infer"):
        trainer.evaluate(examples)


def test_a_right_evaluation_is_as_far_off_as_rounding_brings_it() -> None:
    trainer, examples = trained(Otherwise(2))
    trainer.evaluate(examples)
