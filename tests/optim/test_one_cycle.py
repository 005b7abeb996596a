"""OneCycleLR: lr and momentum are torch's at each count."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import pytest
import torch

from nn_manual.optim import LinearLR, OneCycleLR, Scheduler, SequentialLR
from nn_manual.optim.scheduler_base import Scheduled

EXAMPLES = [
    *OneCycleLR.examples(),
    OneCycleLR(1.0, 1),
    OneCycleLR(1.0, 2, pct_start=0.9),
    OneCycleLR(1.0, 20, pct_start=0.7, three_phase=True),  # the second phase never ends
]


def torchs(options: Mapping[str, Any], *, betas: bool = False) -> list[Scheduled]:
    """What torch has at each count."""
    param = [torch.zeros(1)]
    optimizer = torch.optim.Adam(param, lr=0.1) if betas else torch.optim.SGD(param, lr=0.1, momentum=0.7)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, **options)
    group, found = optimizer.param_groups[0], []
    for count in range(options["total_steps"] + 1):
        found.append(Scheduled(group["lr"], group["betas"][0] if betas else group["momentum"]))
        optimizer.step()
        if count < options["total_steps"]:
            scheduler.step()
    return found


@pytest.mark.parametrize("betas", [False, True])
@pytest.mark.parametrize("scheduler", EXAMPLES, ids=repr)
def test_torch_agrees(scheduler: OneCycleLR, betas: bool) -> None:
    """In any order, whatever the optimizer had at first."""
    expected = torchs(asdict(scheduler), betas=betas)
    initial = Scheduled(0.1, 0.9 if betas else 0.7)
    for count in reversed(range(scheduler.total_steps + 1)):
        ours = scheduler.scheduled(initial, count)
        assert ours.lr == pytest.approx(expected[count].lr, rel=1e-12, abs=1e-15)
        assert ours.momentum == pytest.approx(expected[count].momentum, rel=1e-12)


def test_its_corners() -> None:
    """It begins at max_lr / div_factor, its highest lr comes with its lowest momentum, and the last step has the least
    lr.
    """
    scheduler = OneCycleLR(0.5, 11, pct_start=3 / 11, base_momentum=0.5, max_momentum=0.9)
    of = [scheduler.scheduled(Scheduled(3.0, 0.1), count) for count in range(11)]
    assert of[0] == pytest.approx((0.02, 0.9))
    assert of[2] == pytest.approx((0.5, 0.5))
    assert of[10] == pytest.approx((2e-6, 0.9))
    assert of[6] == pytest.approx(((0.5 + 2e-6) / 2, 0.7))
    stays = OneCycleLR(0.5, 11, cycle_momentum=False)
    assert (stays.moves_momentum, scheduler.moves_momentum) == (False, True)
    assert [stays.scheduled(Scheduled(3.0, momentum), 5).momentum for momentum in (0.1, None)] == [0.1, None]
    assert (scheduler.duration, scheduler.last_count) == (11, 11)


def test_there_is_no_lr_beyond_its_steps() -> None:
    with pytest.raises(ValueError, match=r"^OneCycleLR ends at total_steps 11: it has no lr for the count 12$"):
        OneCycleLR(0.5, 11).lr(0.1, 12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"total_steps": 0}, "total_steps must be at least 1, not 0"),
        ({"total_steps": 1.5}, r"total_steps must be an integer, not 1\.5"),
        ({"max_lr": -1}, "max_lr must be at least 0 and finite, not -1"),
        ({"max_lr": math.nan}, "max_lr must be at least 0 and finite, not nan"),
        ({"pct_start": 1}, "pct_start must be above 0 and below 1, not 1"),
        ({"base_momentum": 0.0}, r"base_momentum must be above 0 and below 1, not 0\.0"),
        ({"max_momentum": 1.0}, r"max_momentum must be above 0 and below 1, not 1\.0"),
        ({"div_factor": 0}, "div_factor must be above 0 and finite, not 0"),
        ({"final_div_factor": math.inf}, "final_div_factor must be above 0 and finite, not inf"),
        ({"anneal_strategy": "sine"}, "anneal_strategy must be cos or linear, not sine"),
        ({"pct_start": 0.1}, r"pct_start must not be 0\.1 with total_steps 10: a phase has no length"),
    ],
)
def test_values_out_of_range(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        OneCycleLR(**{"max_lr": 0.1, "total_steps": 10, **options})


def test_what_torch_refuses_is_refused() -> None:
    """Over some counts, starts and numbers of phases: torch divides by the length of a phase."""
    num_refused = 0
    drawn = itertools.product([1, 2, 3, 4, 5, 8, 10, 16], [0.1, 0.125, 0.2, 0.25, 0.5, 0.75], [False, True])
    for total_steps, pct_start, three_phase in drawn:
        options = {"max_lr": 0.1, "total_steps": total_steps, "pct_start": pct_start, "three_phase": three_phase}
        try:
            expected = torchs(options)
        except ZeroDivisionError:
            num_refused += 1
            with pytest.raises(ValueError, match="a phase has no length"):
                OneCycleLR(**options)  # type: ignore[arg-type]  # by name
            continue
        try:
            scheduler = OneCycleLR(**options)  # type: ignore[arg-type]  # by name
        except ValueError:
            assert three_phase or pct_start * total_steps == 1  # a phase of no length that no count falls into
            continue
        for count, theirs in enumerate(expected):
            assert scheduler.scheduled(Scheduled(0.1, 0.7), count) == pytest.approx(theirs, rel=1e-9)
    assert num_refused > 5


def test_it_stands_alone() -> None:
    """torch's changes what the other schedules of a SequentialLR begin with."""
    schedulers: list[Scheduler] = [LinearLR(), OneCycleLR(0.1, 10, pct_start=0.25)]
    with pytest.raises(ValueError, match=r"^schedulers must not hold a OneCycleLR: torch's SequentialLR can't$"):
        SequentialLR(schedulers, [5])
