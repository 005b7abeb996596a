"""CyclicLR: lr and momentum are torch's at each count."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import pytest
import torch

from nn_manual.optim import CyclicLR, LinearLR, Scheduler, SequentialLR
from nn_manual.optim.scheduler_base import Scheduled

EXAMPLES = [
    *CyclicLR.examples(),
    CyclicLR(0.4, 0.1, step_size_up=1),  # down before it goes up
    CyclicLR(0.0, 0.5, step_size_up=2, step_size_down=1, mode="triangular2", cycle_momentum=False),
    CyclicLR(0.1, 0.5, step_size_up=3, mode="exp_range", gamma=0.0),
]
NUM_COUNTS = 60


@pytest.mark.parametrize("betas", [False, True])
@pytest.mark.parametrize("scheduler", EXAMPLES, ids=repr)
def test_torch_agrees(scheduler: CyclicLR, *, betas: bool) -> None:
    """In any order, whatever the optimizer had at first."""
    param, momentum = [torch.zeros(1)], 0.9 if betas else 0.7
    optimizer = torch.optim.Adam(param, lr=0.1) if betas else torch.optim.SGD(param, lr=0.1, momentum=momentum)
    torchs = torch.optim.lr_scheduler.CyclicLR(optimizer, **asdict(scheduler))
    group, expected = optimizer.param_groups[0], []
    for _ in range(NUM_COUNTS):
        expected.append((group["lr"], group["betas"][0] if betas else group["momentum"]))
        optimizer.step()
        torchs.step()
    for count in reversed(range(NUM_COUNTS)):
        assert scheduler.scheduled(Scheduled(0.1, momentum), count) == pytest.approx(expected[count], rel=1e-12)


def test_its_corners() -> None:
    """The highest lr comes with the lowest momentum, and half a rise in the middle."""
    scheduler = CyclicLR(0.1, 0.5, step_size_up=4, step_size_down=2, mode="triangular2")
    of = [scheduler.scheduled(Scheduled(3.0, 0.1), count) for count in range(11)]
    foot, middle, peak = (0.1, 0.9), (0.3, 0.85), (0.5, 0.8)
    expected = [foot, (0.2, 0.875), middle, (0.4, 0.825), peak, middle, foot]
    expected += [(0.15, 0.8875), (0.2, 0.875), (0.25, 0.8625), middle]  # half as high
    assert [tuple(each) for each in of] == [pytest.approx(each) for each in expected]
    assert (scheduler.duration, scheduler.last_count, scheduler.moves_momentum) == (4, 6143, True)
    assert scheduler.lr(3.0, 6143 - 1) == pytest.approx(0.1)  # a cycle more, and torch raises OverflowError
    assert CyclicLR(0.1, 0.5).last_count == math.inf
    stays = CyclicLR(0.1, 0.5, cycle_momentum=False)
    assert not stays.moves_momentum
    assert [stays.scheduled(Scheduled(3.0, momentum), 5).momentum for momentum in (0.1, None)] == [0.1, None]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"base_lr": -1}, "base_lr must be at least 0 and finite, not -1"),
        ({"max_lr": math.nan}, "max_lr must be at least 0 and finite, not nan"),
        ({"gamma": 1.1}, r"gamma must be at least 0 and at most 1, not 1\.1"),
        ({"step_size_up": 0}, "step_size_up must be at least 1, not 0"),
        ({"step_size_up": 1.5}, r"step_size_up must be an integer, not 1\.5"),
        ({"step_size_down": -1}, "step_size_down must be at least 0, not -1"),
        ({"base_momentum": 0.0}, r"base_momentum must be above 0 and below 1, not 0\.0"),
        ({"max_momentum": 1.0}, r"max_momentum must be above 0 and below 1, not 1\.0"),
        ({"mode": "sine"}, "mode must be triangular, triangular2 or exp_range, not sine"),
    ],
)
def test_values_out_of_range(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        CyclicLR(**{"base_lr": 0.1, "max_lr": 0.5, **options})


def test_it_stands_alone() -> None:
    """torch's changes what the other schedules of a SequentialLR begin with."""
    schedulers: list[Scheduler] = [LinearLR(), CyclicLR(0.1, 0.5)]
    with pytest.raises(ValueError, match=r"^schedulers must not hold a CyclicLR: torch's SequentialLR can't$"):
        SequentialLR(schedulers, [5])
