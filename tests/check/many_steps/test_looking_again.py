"""What torch.vmap makes of a function isn't believed without a look: where it is wrong, the checker alone judges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from nets import break_gradient, replace_method
from proving import prover_of

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
    Tanh,
    Trainer,
)
from nn_manual.arrays import Array
from nn_manual.check.compare.comparison import CannotCompare
from nn_manual.check.judge.judge import Judge
from nn_manual.check.many_steps import waiting
from nn_manual.check.many_steps.waiting import Waiting
from nn_manual.data import Examples
from nn_manual.layers.fast_forms import rows

PADDING = 2


def sentences() -> Trainer:
    model = Sequential(Embedding(5, 3, padding_idx=PADDING), Flatten(), Linear(12, 2))
    return Trainer(model, CrossEntropyLoss(), SGD(model, lr=0.1))


def test_the_gradient_of_padding_is_zero_in_each_of_many_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch.vmap leaves it out in the first step alone."""
    alone = []
    monkeypatch.setattr(Waiting, "prove_alone", lambda _, __, i: alone.append(i))
    generator = np.random.default_rng(0)
    examples = Examples(generator.integers(0, 5, (64, 4)), generator.integers(0, 2, 64))
    for _ in sentences().epoch(examples, 4, seed=0, epoch=0):
        pass
    assert not alone


def test_a_gradient_of_padding_is_found_in_its_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Waiting, "look_again", lambda *_, **__: None)
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


def of_a_small_column() -> tuple[Trainer, Examples]:
    """The first column of the input is tiny, and so is that of the first weight's gradient, 1e-7 of the others."""
    model = Sequential(Linear(3, 4), Tanh(), Linear(4, 2), seed=1)
    generator = np.random.default_rng(0)
    input = generator.standard_normal((64, 3)) * [1e-7, 1, 1]
    examples = Examples(input.astype(np.float32), generator.standard_normal((64, 2)).astype(np.float32))
    return Trainer(model, MSELoss(), SGD(model, lr=1e-3)), examples


def double_the_small_column(trainer: Trainer, from_step: int) -> None:
    def change(grad: Array) -> Array:
        wrong: Array = grad * np.array([2 if trainer.model.num_steps >= from_step else 1, 1, 1], grad.dtype)
        return wrong

    break_gradient(trainer.model.layers[0], "grad_weight", change)


def test_a_wrong_small_part_ends_the_training() -> None:
    trainer, examples = of_a_small_column()
    double_the_small_column(trainer, from_step=4)
    with pytest.raises(GradientMismatch, match=r"wrong first in 0 \(Linear\): 0\.grad_weight") as raised:
        list(trainer.epoch(examples, 4, seed=0, epoch=0))
    assert trainer.num_steps == trainer.model.num_steps == trainer.optimizer.num_steps == 16
    assert raised.value.batch is not None
    assert raised.value.batch[0].shape == (4, 3)
    assert prover_of(trainer).groups.reason == ""
    assert prover_of(trainer).numbers == []


def test_a_look_that_is_interrupted_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second proof looks at its last step; the third would not."""
    trainer, examples = of_a_small_column()
    double_the_small_column(trainer, from_step=20)
    list(trainer.epoch(examples, 4, seed=0, epoch=0))

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Waiting, "prove_alone", interrupted)
        with pytest.raises(KeyboardInterrupt):
            list(trainer.epoch(examples, 4, seed=0, epoch=1))
    with pytest.raises(GradientMismatch, match=r"wrong first in 0 \(Linear\): 0\.grad_weight"):
        trainer.flush()


def test_a_step_that_has_rounding_is_looked_at_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge excuses what doesn't pass as rounding: it knows nothing of small parts."""
    trainer, examples = of_a_small_column()
    double_the_small_column(trainer, from_step=4)
    monkeypatch.setattr(waiting, "within", lambda absolute, *_: np.zeros(absolute.shape, bool))
    with pytest.raises(GradientMismatch, match=r"wrong first in 0 \(Linear\): 0\.grad_weight"):
        list(trainer.epoch(examples, 4, seed=0, epoch=0))


def test_a_right_small_part_passes() -> None:
    trainer, examples = of_a_small_column()
    steps = list(trainer.epoch(examples, 4, seed=0, epoch=0))
    assert all(step.check is not None and step.check.proven for step in steps)
    assert prover_of(trainer).groups.reason == ""


def test_what_was_wrong_before_a_small_part_comes_first() -> None:
    trainer, examples = of_a_small_column()
    double_the_small_column(trainer, from_step=4)

    def step(right: Any, optimizer: SGD) -> None:
        right(optimizer)
        optimizer.model.param_arena[-1] *= 1.01 if optimizer.num_steps == 7 else 1

    replace_method(trainer.optimizer, "step", step)
    with pytest.raises(GradientMismatch, match=r"wrong first in optimizer: updated 2\.bias"):
        list(trainer.epoch(examples, 4, seed=0, epoch=0))
    assert trainer.num_steps == 7


def test_a_look_that_can_not_compare_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """The steps are then proven one by one, which needs no look."""

    def refused(*_: object) -> None:
        raise CannotCompare("1 (Tanh): nobody knows")

    trainer, examples = of_a_small_column()
    monkeypatch.setattr(Judge, "report", refused)
    steps = list(trainer.epoch(examples, 4, seed=0, epoch=0))
    assert all(step.check is not None and step.check.proven for step in steps)
    assert prover_of(trainer).groups.reason == "1 (Tanh): nobody knows"
    assert prover_of(trainer).groups.is_of_layer
