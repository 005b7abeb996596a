"""torch's versions of schedules."""

from __future__ import annotations

import pytest

from nn_manual.check.compare.tolerances import learning_rate
from nn_manual.check.twin.schedules import SchedulerTwin, schedule_twin
from nn_manual.optim import (
    CosineAnnealingLR,
    LinearLR,
    OneCycleLR,
    ReduceLROnPlateau,
    Scheduler,
    SequentialLR,
    StepLR,
)
from nn_manual.optim.scheduler_base import Scheduled

SCHEDULERS = [StepLR(2, 0.5), CosineAnnealingLR(5), SequentialLR([LinearLR(total_iters=2), StepLR(1)], [3])]

#: Of an optimizer, and of its group.
INITIAL = [Scheduled(0.1, None), Scheduled(0.2, 0.5)]


def lrs_of(twin: SchedulerTwin, count: int) -> list[float]:
    return [scheduled["lr"] for scheduled in twin.scheduled(count)]


@pytest.mark.parametrize("scheduler", SCHEDULERS, ids=repr)
def test_a_schedule_can_be_rewound(scheduler: Scheduler) -> None:
    twin = schedule_twin(scheduler, INITIAL)
    forward = [lrs_of(twin, count) for count in range(6)]
    assert [lrs_of(twin, count) for count in reversed(range(6))] == forward[::-1]
    assert [lrs[1] for lrs in forward] == pytest.approx([2 * lrs[0] for lrs in forward])
    assert len({lrs[0] for lrs in forward}) > 2


def test_a_plateau_starts_each_epoch_where_ours_is() -> None:
    scheduler = ReduceLROnPlateau(factor=0.5, patience=1)
    twin = schedule_twin(scheduler, INITIAL)
    assert lrs_of(twin, 0) == [0.1, 0.2]
    scheduler.load_state({"best": 0.5, "num_bad_epochs": 1, "cooldown_counter": 0, "num_reductions": 1})
    assert lrs_of(twin, 7) == [0.05, 0.1]
    twin.observe(0.6)
    assert lrs_of(twin, 8) == [0.025, 0.05]
    assert twin.state() == {"best": 0.5, "num_bad_epochs": 0, "cooldown_counter": 0}
    scheduler.load_state({"best": 9.0, "num_bad_epochs": 0, "cooldown_counter": 0, "num_reductions": 0})
    twin.observe(0.6)
    assert lrs_of(twin, 9) == [0.1, 0.2]
    assert twin.state() == {"best": 0.6, "num_bad_epochs": 0, "cooldown_counter": 0}


@pytest.mark.parametrize("T_max", [7, 100, 3000])
def test_a_cosine_that_goes_up_again_stays_within_its_tolerance(T_max: int) -> None:
    """torch's recursion loses digits at its lowest point: at 3,000 steps far more than a closed form does."""
    scheduler = CosineAnnealingLR(T_max)
    twin = schedule_twin(scheduler, [Scheduled(1.0, None)])
    for count in range(2 * T_max + 5):
        assert abs(lrs_of(twin, count)[0] - scheduler.lr(1.0, count)) <= learning_rate(count)


def test_a_momentum_is_moved_with_the_lr() -> None:
    """By torch's formulas for 11 counts: up within 2, down within 8."""
    twin = schedule_twin(OneCycleLR(0.5, 11, 3 / 11, "linear", base_momentum=0.5, max_momentum=0.9), INITIAL)
    assert twin.scheduled(0) == [{"lr": 0.02, "momentum": 0.9}] * 2
    assert twin.scheduled(2) == [{"lr": 0.5, "momentum": 0.5}] * 2
    assert twin.scheduled(6)[1]["momentum"] == pytest.approx(0.7)
    assert twin.scales == [{"lr": 0.5, "momentum": 0.9}] * 2
