"""Schedules are torch's, or it is a mismatch."""

from __future__ import annotations

import copy

import pytest
from nets import net

from nn_manual import SGD, GradientChecker, GradientMismatch, MSELoss
from nn_manual.optim import CosineAnnealingLR, LinearLR, ReduceLROnPlateau, Scheduler, SequentialLR, StepLR

SCHEDULERS = [
    StepLR(2, 0.5),
    CosineAnnealingLR(5),
    LinearLR(),
    SequentialLR([LinearLR(total_iters=2), StepLR(1)], [2]),
    ReduceLROnPlateau(patience=1, factor=0.5),
]


@pytest.mark.parametrize("member", [0, 1])
@pytest.mark.parametrize("scheduler", SCHEDULERS, ids=repr)
def test_the_schedule_is_torchs_or_it_is_a_mismatch(scheduler: Scheduler, member: int) -> None:
    scheduler = copy.deepcopy(scheduler)
    optimizer = SGD(net(), lr=0.1, groups=[{"parameters": "*.bias", "lr": 0.4}])
    checker = GradientChecker(optimizer.model, MSELoss(), optimizer, scheduler=scheduler)
    assert checker.update is not None
    for count in range(7):
        for each, initial_lr in zip(optimizer.members, (0.1, 0.4), strict=True):
            each.lr = scheduler.lr(initial_lr, count)
        checker.update.compare_schedule(count)
        if count < 6:
            checker.update.observe(1.0)
            scheduler.observe(1.0)
    optimizer.members[member].lr *= 1.000001
    optimizer.members[member].lr += 1e-9  # it may be 0
    name = ["lr", r"lr of groups\.0"][member]
    with pytest.raises(GradientMismatch, match=rf"scheduler: {name} is \S*,\s+torch's\s+is"):
        checker.update.compare_schedule(6)


@pytest.mark.parametrize(
    "scheduler", [StepLR(1, 1.5), CosineAnnealingLR(11, eta_min=0.5), CosineAnnealingLR(10**6, eta_min=0.5)], ids=repr
)
def test_an_lr_that_grows_rounds_by_its_own_size(scheduler: Scheduler) -> None:
    """An lr may begin at 0, too."""
    optimizer, initial_lrs = SGD(net(), lr=1e-3, groups=[{"parameters": "*.bias", "lr": 0.0}]), (1e-3, 0.0)
    checker = GradientChecker(optimizer.model, MSELoss(), optimizer, scheduler=scheduler)
    assert checker.update is not None
    for count in range(50):
        for each, initial_lr in zip(optimizer.members, initial_lrs, strict=True):
            each.lr = scheduler.lr(initial_lr, count)
        checker.update.compare_schedule(count)


def test_a_plateau_that_remembers_something_else_is_a_mismatch() -> None:
    """Its lr is right so far."""
    scheduler, optimizer = ReduceLROnPlateau(), SGD(net(), lr=0.1)
    checker = GradientChecker(optimizer.model, MSELoss(), optimizer, scheduler=scheduler)
    assert checker.update is not None
    checker.update.observe(1.0)
    scheduler.observe(1.0)
    checker.update.compare_schedule(1)
    scheduler.num_bad_epochs = 1
    with pytest.raises(GradientMismatch, match=r"scheduler: num_bad_epochs is 1, torch's is 0"):
        checker.update.compare_schedule(1)


def test_a_schedule_that_torch_does_not_have_cannot_be_checked() -> None:
    class Halving(Scheduler):
        @classmethod
        def examples(cls) -> list[Scheduler]:
            return []

        def lr(self, initial_lr: float, count: int) -> float:
            return initial_lr * 0.5**count

    optimizer = SGD(net(), lr=0.1)
    with pytest.raises(TypeError, match=r"torch\.optim\.lr_scheduler has no Halving: the class must define reference"):
        GradientChecker(optimizer.model, MSELoss(), optimizer, scheduler=Halving())
