"""A schedule that moves the momentum: each way of making and proving a step takes the one of its count."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from nn_manual import (
    SGD,
    Adam,
    AdamW,
    CrossEntropyLoss,
    GradientMismatch,
    Linear,
    OneCycleLR,
    Sequential,
    Tanh,
    Trainer,
)
from nn_manual.arrays import Array
from nn_manual.data import Examples
from nn_manual.optim import Optimizer, StepLR
from nn_manual.optim.scheduler_base import Scheduled
from nn_manual.step.slices.cut import Slicing

GENERATOR = np.random.default_rng(0)
EXAMPLES = Examples(GENERATOR.standard_normal((30, 4)), GENERATOR.integers(0, 3, 30))
NUM_EPOCHS, BATCH_SIZE, NUM_STEPS = 6, 10, 18

OPTIMIZERS: dict[str, Callable[[Sequential], Optimizer]] = {
    "SGD": lambda model: SGD(model, momentum=0.9, groups=[{"parameters": "*.bias", "momentum": 0.5}]),
    "Adam": Adam,
    "AdamW": AdamW,
}


def net() -> Sequential:
    return Sequential(Linear(4, 8), Tanh(), Linear(8, 3), seed=1, dtype="float64")


def trained(optimizer: str, *, by_step: bool, **settings: object) -> tuple[Array, list[Scheduled]]:
    """Where the parameters end, and lr and momentum in each epoch or step."""
    model = net()
    schedule = OneCycleLR(0.1, NUM_STEPS if by_step else NUM_EPOCHS, base_momentum=0.3, max_momentum=0.9)
    own, lr_step = OPTIMIZERS[optimizer](model), "step" if by_step else "epoch"
    trainer = Trainer(model, CrossEntropyLoss(), own, lr_scheduler=schedule, lr_step=lr_step, **settings)  # type: ignore[arg-type]  # by name
    found = []
    for epoch in range(NUM_EPOCHS):
        for _ in trainer.epoch(EXAMPLES, BATCH_SIZE, seed=0, epoch=epoch):
            found.append(own.members[-1].scheduled)
    return model.param_arena, found


@pytest.mark.slow
@pytest.mark.parametrize("by_step", [False, True])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_every_way_of_a_step_is_the_same(optimizer: str, by_step: bool) -> None:
    """Unchecked, checked one by one, together, now and then, in slices, and compiled.
    It alone moves the momentum in compiled and sliced steps.
    """
    expected, scheduled = trained(optimizer, by_step=by_step, check_every=0)
    assert len({momentum for _, momentum in scheduled}) >= NUM_EPOCHS - 1
    settings: list[dict[str, object]] = [
        {}, {"check_memory": 0}, {"check_every": 3}, {"slicing": Slicing(2)}, {"compiled": True, "check_every": 0},
        {"compiled": True}, {"compiled": True, "slicing": Slicing(2), "check_every": 0},
    ]  # fmt: skip
    for each in settings:
        param, _ = trained(optimizer, by_step=by_step, **each)
        np.testing.assert_allclose(param, expected, rtol=1e-9, atol=1e-12, err_msg=str(each))


@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
def test_a_training_ends_where_torch_s_does(optimizer: str) -> None:
    """With torch's own gradients, optimizer and schedule."""
    model = net()
    theirs = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)).double()
    for tensor, ours in zip(theirs.parameters(), model.state_dict().values(), strict=True):
        tensor.data.copy_(torch.from_numpy(ours))
    options = {"SGD": {"momentum": 0.5}, "Adam": {}}[optimizer]
    moving = getattr(torch.optim, optimizer)(theirs.parameters(), **options)
    schedule = torch.optim.lr_scheduler.OneCycleLR(moving, 0.1, NUM_STEPS)
    own = {"SGD": SGD, "Adam": Adam}[optimizer](model, **options)
    trainer = Trainer(model, CrossEntropyLoss(), own, lr_scheduler=OneCycleLR(0.1, NUM_STEPS), lr_step="step")
    for step in range(NUM_STEPS):
        rows = slice(step % 3 * 10, step % 3 * 10 + 10)
        trainer.train_step(EXAMPLES.input[rows], EXAMPLES.target[rows])
        moving.zero_grad()
        predicted = theirs(torch.from_numpy(EXAMPLES.input[rows]))
        torch.nn.functional.cross_entropy(predicted, torch.from_numpy(EXAMPLES.target[rows])).backward()  # type: ignore[no-untyped-call]  # torch's
        moving.step()
        schedule.step()
    for tensor, ours in zip(theirs.parameters(), model.state_dict().values(), strict=True):
        np.testing.assert_allclose(ours, tensor.detach().numpy(), rtol=1e-9)


class Slower(OneCycleLR):
    """Its momentum is a hair off from the fourth count on."""

    def momentum(self, initial_momentum: float, count: int) -> float:
        return super().momentum(initial_momentum, count) * (1 if count < 4 else 1 + 1e-6)


Slower.__name__ = "OneCycleLR"  # torch's class is found by it


def test_a_wrong_momentum_is_found() -> None:
    """At the step that would use it."""
    model = net()
    trainer = Trainer(
        model, CrossEntropyLoss(), Adam(model), lr_scheduler=Slower(0.1, NUM_STEPS), lr_step="step", check_every=1
    )
    steps = trainer.epoch(Examples(EXAMPLES.input, EXAMPLES.target), 5, seed=0, epoch=0)
    with pytest.raises(GradientMismatch, match=r"scheduler: momentum is 0\.\d+, torch's\s+is\s+0\.\d+"):
        list(steps)
    assert trainer.num_steps == 4


def test_a_schedule_needs_a_momentum() -> None:
    """One of the optimizer's, and of each of its groups."""
    model, loss, schedule = net(), CrossEntropyLoss(), OneCycleLR(0.1, 10, pct_start=0.35)
    for groups, where in (([], ""), ([{"parameters": "*.bias", "momentum": 0.0}], r" of groups\.0")):
        message = rf"^OneCycleLR moves the momentum{where} of SGD: it must be above 0 at first, not 0\.0$"
        with pytest.raises(ValueError, match=message):
            Trainer(model, loss, SGD(model, momentum=0.9 if groups else 0.0, groups=groups), lr_scheduler=schedule)
    Trainer(model, loss, SGD(model), lr_scheduler=OneCycleLR(0.1, 10, pct_start=0.35, cycle_momentum=False))


def test_only_the_schedule_moves_the_momentum_of_a_checked_training() -> None:
    """Other settings must stay, the second of betas among them."""
    for schedule, betas in ((None, (0.8, 0.999)), (OneCycleLR(0.1, NUM_STEPS), (0.9, 0.99))):
        model = net()
        optimizer = Adam(model)
        trainer = Trainer(model, CrossEntropyLoss(), optimizer, lr_scheduler=schedule, lr_step="step")
        trainer.train_step(EXAMPLES.input, EXAMPLES.target)
        optimizer.betas = betas
        with pytest.raises(ValueError, match=r"^Adam\.betas was \(.*\) and is \(.*\)\. In a checked training the lr"):
            trainer.train_step(EXAMPLES.input, EXAMPLES.target)


@dataclass(frozen=True)
class Falling(StepLR):
    """A momentum that falls by as much each step."""

    first: float = 0.5
    fall: float = 0.25

    moves_momentum = True

    def momentum(self, initial_momentum: float, count: int) -> float:  # noqa: ARG002 - the contract's
        return self.first - self.fall * count


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("make", "schedule", "words"),
    [
        (lambda model: SGD(model, momentum=0.5), Falling(9), r"SGD to 0\.0: it must stay above 0"),
        (lambda model: SGD(model, momentum=0.5), Falling(9, fall=0.3), r"SGD to -0\.\d+: momentum must be at least"),
        (Adam, Falling(9, first=0.6, fall=-0.2), r"Adam to 1\.0: betas must be at least 0 and below 1"),
        (Adam, Falling(9, first=float("nan")), "Adam to nan: betas must be at least 0 and below 1"),
    ],
)
def test_a_momentum_that_the_optimizer_does_not_take(
    make: Callable[[Sequential], Optimizer], schedule: Falling, words: str, compiled: bool
) -> None:
    """With a momentum of 0 SGD has other lines, which a compiled step wouldn't have: it is refused when it comes up."""
    model = net()
    settings: dict[str, Any] = {"lr_step": "step", "check_every": 0, "compiled": compiled}
    trainer = Trainer(model, CrossEntropyLoss(), make(model), lr_scheduler=schedule, **settings)
    with pytest.raises(ValueError, match=f"^Falling moves the momentum of {words}"):
        list(trainer.epoch(EXAMPLES, BATCH_SIZE // 2, seed=0, epoch=0))


def test_adam_s_momentum_may_be_0() -> None:
    """Its formula stays the same."""
    ends = []
    for compiled in (False, True):
        model = net()
        trainer = Trainer(
            model, CrossEntropyLoss(), Adam(model), lr_scheduler=Falling(9), lr_step="step", check_every=0,
            compiled=compiled,
        )  # fmt: skip
        list(trainer.epoch(EXAMPLES, BATCH_SIZE, seed=0, epoch=0))
        ends.append(model.param_arena)
    np.testing.assert_allclose(ends[1], ends[0], rtol=1e-9)
