"""What torch.vmap makes of a function isn't believed without a look: where it is wrong, the checker alone judges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from nets import replace_method

from nn_manual import (
    SGD,
    CrossEntropyLoss,
    Embedding,
    Flatten,
    GradientMismatch,
    Layer,
    Linear,
    MSELoss,
    Sequential,
    Trainer,
)
from nn_manual.arrays import Array, rows
from nn_manual.check.together.prover import Prover
from nn_manual.data import Examples

PADDING = 2


def sentences() -> Trainer:
    model = Sequential(Embedding(5, 3, padding_idx=PADDING), Flatten(), Linear(12, 2))
    return Trainer(model, CrossEntropyLoss(), SGD(model, lr=0.1))


def test_the_gradient_of_padding_is_zero_in_each_of_many_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch.vmap leaves it out in the first step alone."""
    alone = []
    monkeypatch.setattr(Prover, "_prove_alone", lambda _, __, i, ___: alone.append(i))
    generator = np.random.default_rng(0)
    examples = Examples(generator.integers(0, 5, (64, 4)), generator.integers(0, 2, 64))
    for _ in sentences().epoch(examples, 4, seed=0, epoch=0):
        pass
    assert not alone


def test_a_gradient_of_padding_is_found_in_its_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Prover, "_look_again", lambda *_, **__: None)
    trainer = sentences()

    def backward(right: Any, layer: Any, saved: Any, grad_output: Array) -> Array | None:
        grad_input: Array | None = right(layer, saved, grad_output)
        if trainer.model.num_steps >= 5:
            layer.grad.weight[PADDING] = rows(grad_output).sum(axis=0)  # all of them are padding
        return grad_input

    replace_method(trainer.model.layers[0], "backward", backward)
    examples = Examples(np.full((64, 4), PADDING), np.zeros(64, np.int64))
    with pytest.raises(GradientMismatch, match=r"wrong first in 0 \(Embedding\): 0.grad_weight"):
        for _ in trainer.epoch(examples, 4, seed=0, epoch=0):
            pass
    assert trainer.num_steps == 5


class Tripled(torch.autograd.Function):
    """Twice the input, whose backward of many steps at once is thrice the gradient."""

    @staticmethod
    def forward(input: torch.Tensor) -> torch.Tensor:
        return 2 * input

    @staticmethod
    def setup_context(context: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(context: Any, grad_output: torch.Tensor) -> torch.Tensor:  # noqa: ARG004 - torch's
        return 2 * grad_output

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int], input: torch.Tensor) -> tuple[torch.Tensor, int]:  # noqa: ARG004 - torch's
        return 3 * input - input.detach(), in_dims[0]


@dataclass(eq=False)
class Twice(Layer):
    """A layer whose reference is of this kind."""

    def forward(self, input: Array) -> tuple[Array, None]:
        return 2 * input, None

    def backward(self, saved: None, grad_output: Array) -> Array:  # noqa: ARG002 - the contract's
        return 2 * grad_output

    @staticmethod
    def reference(input: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = Tripled.apply(input)  # type: ignore[no-untyped-call]  # torch has no annotations
        return output


def test_a_mistake_that_a_wrong_vmap_shares_is_found_in_its_step() -> None:
    model = Sequential(Linear(3, 4), Twice(), Linear(4, 2), dtype="float64")
    trainer = Trainer(model, MSELoss(), SGD(model, lr=1e-3))

    def backward(right: Any, layer: Any, saved: Any, grad_output: Array) -> Array:
        grad_input: Array = right(layer, saved, grad_output)
        return grad_input * (1.5 if trainer.model.num_steps >= 4 else 1)

    replace_method(model.layers[1], "backward", backward)
    generator = np.random.default_rng(0)
    examples = Examples(generator.standard_normal((64, 3)), generator.standard_normal((64, 2)))
    with pytest.raises(GradientMismatch, match=r"1\.grad_input"):
        for _ in trainer.epoch(examples, 4, seed=0, epoch=0):
            pass
    assert trainer.num_steps == 4
