"""Parameters whose names have a dot in them, and are shared, among steps that are proven together."""

from __future__ import annotations

import numpy as np
import pytest

from nn_manual import SGD, CausalSelfAttention, CrossEntropyLoss, Embedding, Flatten, Linear, Sequential, Trainer
from nn_manual.data import Examples


@pytest.mark.parametrize("tied", [[], [("1.out_proj.weight", "2.weight")]])
@pytest.mark.parametrize("max_norm", [None, 1.0])
def test_a_parameter_of_a_part_of_a_layer(tied: list[tuple[str, str]], max_norm: float | None) -> None:
    layers = Embedding(5, 4), CausalSelfAttention(4, 2), Linear(4, 4), Flatten(0, 1), Linear(4, 5)
    model = Sequential(*layers, tied=tied)
    trainer = Trainer(model, CrossEntropyLoss(), SGD(model, lr=0.1), clip_grad_norm=max_norm)
    text = np.random.default_rng(0).integers(0, 5, (24, 6))
    steps = list(trainer.epoch(Examples(text, text), 4, seed=0, epoch=0))
    for step in steps:
        assert step.check is not None
        assert "1.grad_out_proj.weight" in step.check.tensors
        assert (step.check.severity <= 1).all()
    sums = {name for step in steps if step.check for name in step.check.tensors if " + " in name}
    assert sums == ({"1.grad_out_proj.weight + 2.grad_weight"} if tied and max_norm is None else set())
