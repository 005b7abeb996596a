"""Each schedule is torch's, over 50 epochs and asked in any order."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

import pytest
import torch

from nn_manual.optim import (
    ChainedScheduler,
    ConstantLR,
    CosineAnnealingLR,
    CosineAnnealingWarmRestarts,
    ExponentialLR,
    LinearLR,
    MultiStepLR,
    PolynomialLR,
    ReduceLROnPlateau,
    Scheduler,
    SequentialLR,
    StepLR,
)
from nn_manual.optim.scheduler_base import Scheduled
from nn_manual.registry import components

SCHEDULERS: list[Scheduler] = [
    ConstantLR(),
    ConstantLR(factor=1e-3, total_iters=3),
    ConstantLR(factor=1.0, total_iters=0),
    ConstantLR(factor=0.25, total_iters=60),
    StepLR(step_size=1),
    StepLR(step_size=7, gamma=0.5),
    StepLR(step_size=60),
    StepLR(step_size=10, gamma=1.5),
    CosineAnnealingLR(T_max=50),
    CosineAnnealingLR(T_max=60, eta_min=0.01),
    CosineAnnealingLR(T_max=1, eta_min=0.02),
    CosineAnnealingLR(T_max=11, eta_min=0.5),  # up again, and for initial_lr = 0.1 the other way round
    MultiStepLR(milestones=[3, 10, 10, 45]),
    MultiStepLR(milestones=[0, 1], gamma=1.5),
    MultiStepLR(milestones=[]),
    ExponentialLR(gamma=0.9),
    ExponentialLR(gamma=0.0),
    PolynomialLR(),
    PolynomialLR(total_iters=40, power=2.5),
    PolynomialLR(total_iters=20, power=0.0),
    PolynomialLR(total_iters=0),
    CosineAnnealingWarmRestarts(T_0=7),
    CosineAnnealingWarmRestarts(T_0=1, eta_min=0.02),
    CosineAnnealingWarmRestarts(T_0=5, T_mult=2, eta_min=0.5),
    CosineAnnealingWarmRestarts(T_0=60),
    LinearLR(),
    LinearLR(start_factor=1e-3, end_factor=0.5, total_iters=20),
    LinearLR(start_factor=1.0, end_factor=0.0, total_iters=30),
    LinearLR(total_iters=0),
    LinearLR(total_iters=60),
    SequentialLR([StepLR(step_size=3)], []),
    SequentialLR([LinearLR(total_iters=10), CosineAnnealingLR(T_max=40)], [10]),
    SequentialLR([LinearLR(total_iters=10), CosineAnnealingLR(T_max=7, eta_min=0.01)], [4]),  # cut short
    SequentialLR([ConstantLR(), StepLR(step_size=2, gamma=0.5), ConstantLR(factor=0.1), LinearLR()], [1, 20, 48]),
    SequentialLR([LinearLR(), MultiStepLR([4, 9]), PolynomialLR(6), ExponentialLR(0.5)], [7, 20, 32]),
    SequentialLR([ExponentialLR(0.9), CosineAnnealingWarmRestarts(T_0=3, T_mult=2)], [11]),
    ChainedScheduler([LinearLR(), ExponentialLR(0.9)]),
    ChainedScheduler([StepLR(3, 0.5), StepLR(4), MultiStepLR([0, 7]), ConstantLR(), PolynomialLR(40, 2.0)]),
]


def torchs(scheduler: Scheduler, optimizer: torch.optim.Optimizer) -> Any:
    options = {field.name: getattr(scheduler, field.name) for field in fields(scheduler)}  # type: ignore[arg-type]  # a dataclass
    if isinstance(scheduler, SequentialLR | ChainedScheduler):
        options["schedulers"] = [torchs(inner, optimizer) for inner in scheduler.schedulers]
    return getattr(torch.optim.lr_scheduler, type(scheduler).__name__)(optimizer=optimizer, **options)


def torch_lrs(scheduler: Scheduler, initial_lr: float, num_epochs: int) -> list[float]:
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=initial_lr)
    theirs = torchs(scheduler, optimizer)
    lrs = []
    for _ in range(num_epochs):
        lrs.append(float(optimizer.param_groups[0]["lr"]))
        optimizer.step()
        theirs.step()
    return lrs


@pytest.mark.parametrize("scheduler", SCHEDULERS, ids=repr)
@pytest.mark.parametrize("initial_lr", [0.1, 1.0])
def test_torch_agrees(scheduler: Scheduler, initial_lr: float) -> None:
    expected = torch_lrs(scheduler, initial_lr, 50)
    # Of initial_lr: where the cosine is near -1, torch's recursion has carried its rounding errors along.
    absolute = 1e-12 * initial_lr
    for epoch in reversed(range(50)):
        assert scheduler.lr(initial_lr, epoch) == pytest.approx(expected[epoch], rel=1e-12, abs=absolute)


FACTORS_ALONE: list[Scheduler] = [
    ConstantLR(total_iters=0), ConstantLR(total_iters=3), LinearLR(total_iters=0), LinearLR(total_iters=3),
    LinearLR(1.0, 0.0, 4), StepLR(2, 0.0), StepLR(3, 1.5), MultiStepLR([0, 2]), PolynomialLR(3, 0.0), PolynomialLR(4),
    PolynomialLR(0), ExponentialLR(0.5),
]  # fmt: skip


@pytest.mark.parametrize("two", [*itertools.product(FACTORS_ALONE, repeat=2)], ids=repr)
def test_each_two_factors_multiply(two: tuple[Scheduler, Scheduler]) -> None:
    scheduler = ChainedScheduler(list(two))
    assert [scheduler.lr(0.1, count) for count in range(9)] == pytest.approx(torch_lrs(scheduler, 0.1, 9), rel=1e-12)


def test_every_schedule_says_whether_it_is_a_factor() -> None:
    """Of torch's schedules: in a chain, each of them multiplies what the others make."""
    factors = {scheduler for scheduler in components(Scheduler).values() if scheduler.is_factor}
    assert factors == {type(scheduler) for scheduler in FACTORS_ALONE}


Options = dict[str, Any]


def each(scheduler_class: Any, **values: list[Any]) -> list[tuple[Any, Options]]:
    """Every combination of the values."""
    return [(scheduler_class, dict(zip(values, drawn, strict=True))) for drawn in itertools.product(*values.values())]


def chains() -> Iterator[tuple[Any, Options]]:
    """One after the other: two of all, at each edge of a milestone, and three."""
    parts: list[Scheduler] = [
        ConstantLR(total_iters=0), ConstantLR(total_iters=3), LinearLR(total_iters=0), LinearLR(total_iters=3),
        StepLR(2, 0.0), CosineAnnealingLR(1), CosineAnnealingLR(5, 0.2), MultiStepLR([0, 2]), PolynomialLR(3, 0.0),
        CosineAnnealingWarmRestarts(2, 2),
    ]  # fmt: skip
    for two, milestone in itertools.product(itertools.product(parts, repeat=2), (-1, 0, 1, 40)):
        yield SequentialLR, {"schedulers": list(two), "milestones": [milestone]}
    for milestones in ([0, 0], [0, 4], [3, 3], [3, 2], [3], []):
        yield SequentialLR, {"schedulers": [LinearLR(), StepLR(2), ConstantLR()], "milestones": milestones}


COUNTS = [-3, -1, 0, 1, 2, 7, 29, 30, 10**9, 2.5, math.nan]
FACTORS = [-0.1, 0, 0.0, 1e-9, 0.5, 1, 1.0, 1.0000001, 2]
EDGES = [
    *each(ConstantLR, factor=FACTORS, total_iters=COUNTS),
    *each(LinearLR, start_factor=FACTORS, end_factor=FACTORS, total_iters=COUNTS),
    *each(StepLR, step_size=COUNTS, gamma=[*FACTORS, 1e200]),
    *each(CosineAnnealingLR, T_max=COUNTS, eta_min=[-0.1, 0, 0.1, 1, 1e9]),
    *each(CosineAnnealingWarmRestarts, T_0=COUNTS, T_mult=[0, 1, 2, 3, 2.5], eta_min=[-0.1, 0, 0.1]),
    *each(MultiStepLR, milestones=[[], [0], [0, 0, 1], [3, 2], [-1], [2.0], [29, 30, 44]], gamma=FACTORS),
    *each(ExponentialLR, gamma=[*FACTORS, 0.9, 1.1, 1e200]),
    *each(PolynomialLR, total_iters=COUNTS, power=[-1.0, 0.0, 0.5, 1, 3.0]),
    *chains(),
]


def not_whole(*counts: float) -> bool:
    return not all(isinstance(count, int) for count in counts)


#: What torch takes and the package does not: docs/configs.md says so.
REFUSED_HERE: dict[Any, Callable[..., bool]] = {
    ConstantLR: lambda factor, total_iters: not_whole(total_iters) or total_iters < 0 or factor == 0 < total_iters,
    LinearLR: lambda total_iters, **_: not_whole(total_iters) or total_iters < 0,
    StepLR: lambda step_size, gamma: not_whole(step_size) or step_size < 0 or gamma < 0,
    CosineAnnealingLR: lambda T_max, eta_min: not_whole(T_max) or T_max < 0 or eta_min < 0,
    CosineAnnealingWarmRestarts: lambda T_0, T_mult, eta_min: not_whole(T_0, T_mult) or eta_min < 0,
    MultiStepLR: lambda milestones, gamma: (
        not_whole(*milestones) or min(milestones, default=0) < 0 or milestones != sorted(milestones) or gamma < 0
    ),
    ExponentialLR: lambda gamma: gamma < 0,
    PolynomialLR: lambda total_iters, power: not_whole(total_iters) or total_iters < 0 or power < 0,
    SequentialLR: lambda schedulers, milestones: (
        min(milestones) < 0 or milestones != sorted(milestones)
        or any(at and later == ConstantLR(total_iters=0) for at, later in zip(milestones, schedulers[1:], strict=True))
    ),
}  # fmt: skip


def torch_lrs_of_groups(scheduler_class: Any, options: Options, initial_lrs: list[float]) -> list[list[float]] | None:
    """The lrs of parameter groups over 45 epochs; None where torch refuses the schedule, or ends within them."""
    optimizer = torch.optim.SGD([{"params": [torch.zeros(1)], "lr": lr} for lr in initial_lrs])
    theirs = {name: value for name, value in options.items() if name != "schedulers"}
    lrs = []
    try:
        if "schedulers" in options:
            theirs["schedulers"] = [torchs(inner, optimizer) for inner in options["schedulers"]]
        schedule = getattr(torch.optim.lr_scheduler, scheduler_class.__name__)(optimizer, **theirs)
        for _ in range(45):
            lrs.append([float(group["lr"]) for group in optimizer.param_groups])
            optimizer.step()
            schedule.step()
    except (ValueError, ZeroDivisionError):
        return None
    return lrs


@pytest.mark.parametrize("scheduler_class", REFUSED_HERE)
def test_what_torch_takes_at_the_edges(scheduler_class: Any) -> None:
    initial_lrs, num_taken = [0.1, 0.0, 1e3], 0
    for options in [options for edge_class, options in EDGES if edge_class is scheduler_class]:
        expected = torch_lrs_of_groups(scheduler_class, options, initial_lrs)
        if expected is None or REFUSED_HERE[scheduler_class](**options):
            with pytest.raises(ValueError, match=r" must "):
                scheduler_class(**options)
            continue
        ours, num_taken = scheduler_class(**options), num_taken + 1
        parts = options.get("schedulers", [ours])
        eta_min = max(getattr(part, "eta_min", 0) for part in parts)  # torch's recursion rounds by it at lr 0, too
        for group, initial_lr in enumerate(initial_lrs):
            for epoch, lrs in enumerate(expected):
                lr, torchs = ours.lr(initial_lr, epoch), lrs[group]
                within = 1e-12 * max(abs(torchs), initial_lr, eta_min)
                assert lr == torchs or abs(lr - torchs) <= within < math.inf, (options, initial_lr, epoch)
    assert num_taken >= 9


def test_one_after_the_other_moves_a_momentum() -> None:
    """Of a schedule of one's own: each with its own count."""

    class Halving(StepLR):
        moves_momentum = True

        def momentum(self, initial_momentum: float, count: int) -> float:
            return initial_momentum * 0.5**count

    both = SequentialLR([StepLR(2), Halving(1)], [3])
    assert both.moves_momentum
    assert [both.scheduled(Scheduled(0.1, 0.8), count).momentum for count in range(6)] == [0.8, 0.8, 0.8, 0.8, 0.4, 0.2]
    assert not SequentialLR([StepLR(2)], []).moves_momentum


def test_defaults_are_torchs() -> None:
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=0.1)
    for ours, theirs in [
        (ConstantLR(), torch.optim.lr_scheduler.ConstantLR(optimizer)),
        (StepLR(3), torch.optim.lr_scheduler.StepLR(optimizer, 3)),
        (CosineAnnealingLR(3), torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 3)),
        (LinearLR(), torch.optim.lr_scheduler.LinearLR(optimizer)),
    ]:
        for name, value in vars(ours).items():
            assert value == getattr(theirs, name)


@pytest.mark.parametrize(
    ("scheduler_class", "options", "message"),
    [
        (ConstantLR, {"factor": 0.0}, "factor must be above 0 if total_iters isn't 0, not 0.0: torch divides by it"),
        (ConstantLR, {"factor": 1.1}, "factor must be at least 0 and at most 1, not 1.1"),
        (ConstantLR, {"factor": float("nan")}, "factor must be at least 0 and at most 1, not nan"),
        (ConstantLR, {"total_iters": 2.5}, "total_iters must be an integer, not 2.5"),
        (ConstantLR, {"total_iters": True}, "total_iters must be an integer, not True"),
        (ConstantLR, {"total_iters": -1}, "total_iters must be at least 0, not -1"),
        (StepLR, {"step_size": 0}, "step_size must be at least 1, not 0"),
        (StepLR, {"step_size": 1, "gamma": -0.5}, "gamma must be at least 0 and finite, not -0.5"),
        (StepLR, {"step_size": 1, "gamma": math.inf}, "gamma must be at least 0 and finite, not inf"),
        (CosineAnnealingLR, {"T_max": 0}, "T_max must be at least 1, not 0"),
        (CosineAnnealingLR, {"T_max": 1, "eta_min": -1.0}, "eta_min must be at least 0, not -1.0"),
        (LinearLR, {"start_factor": 0.0}, "start_factor must be above 0 and at most 1, not 0.0"),
        (LinearLR, {"end_factor": 1.5}, "end_factor must be at least 0 and at most 1, not 1.5"),
        (LinearLR, {"total_iters": -1}, "total_iters must be at least 0, not -1"),
        (SequentialLR, {"schedulers": [], "milestones": []}, "schedulers must hold at least one"),
        (
            SequentialLR,
            {"schedulers": [LinearLR()], "milestones": [3]},
            "milestones must be one fewer than the 1 scheduler, not 1",
        ),
        (
            SequentialLR,
            {"schedulers": [LinearLR(), LinearLR(), LinearLR()], "milestones": [3, 2]},
            r"milestones must not decrease, not \[3, 2\]",
        ),
        (
            SequentialLR,
            {"schedulers": [LinearLR(), LinearLR()], "milestones": [-1]},
            r"milestones\.0 must be at least 0, not -1",
        ),
        (
            SequentialLR,
            {"schedulers": [LinearLR(), LinearLR(total_iters=0)], "milestones": [3]},
            "schedulers must not have a LinearLR with total_iters 0 that begins after a count of 0",
        ),
        (
            SequentialLR,
            {"schedulers": [LinearLR(), ReduceLROnPlateau()], "milestones": [3]},
            "schedulers must not hold a ReduceLROnPlateau: torch's SequentialLR can't",
        ),
        (
            SequentialLR,
            {"schedulers": [SequentialLR([LinearLR()], [])], "milestones": []},
            "schedulers must not hold a SequentialLR: torch's SequentialLR can't",
        ),
        (ChainedScheduler, {"schedulers": []}, "schedulers must hold at least one"),
        (
            ChainedScheduler,
            {"schedulers": [LinearLR(), CosineAnnealingLR(3)]},
            "schedulers must not hold a CosineAnnealingLR: it doesn't multiply the lr by a factor alone",
        ),
    ],
)
def test_values_out_of_range_are_named(scheduler_class: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        scheduler_class(**options)


def test_a_schedule_in_closed_form_has_no_state() -> None:
    for scheduler in SCHEDULERS:
        assert scheduler.state() == {}
        scheduler.load_state({})
    with pytest.raises(ValueError, match=r"^StepLR keeps \[\], not \['best'\]$"):
        StepLR(1).load_state({"best": 1.0})


@pytest.mark.parametrize(
    ("scheduler", "duration"),
    [
        (ConstantLR(total_iters=7), 7),
        (LinearLR(total_iters=7), 7),
        (StepLR(step_size=7), 7),
        (CosineAnnealingLR(T_max=7), 7),
        (SequentialLR([LinearLR(), CosineAnnealingLR(T_max=7)], [3]), 10),
        (SequentialLR([LinearLR(total_iters=7)], []), 7),
        (ChainedScheduler([LinearLR(total_iters=7), StepLR(3)]), 7),
        (ReduceLROnPlateau(), 0),
    ],
)
def test_how_long_it_takes(scheduler: Scheduler, duration: int) -> None:
    assert scheduler.duration == duration


def test_a_warm_up_by_steps() -> None:
    scheduler = SequentialLR([LinearLR(start_factor=0.1, total_iters=3), ConstantLR(factor=0.5, total_iters=2)], [3])
    assert [scheduler.lr(1.0, count) for count in range(7)] == pytest.approx([0.1, 0.4, 0.7, 0.5, 0.5, 1.0, 1.0])
