"""Schedules in closed form: what they move depends on the number of the epoch or step alone."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from nn_manual.messages.text import counted
from nn_manual.optim.cosine import CosineAnnealingLR
from nn_manual.optim.decays import ExponentialLR, PolynomialLR, StepLR
from nn_manual.optim.scheduler_base import Scheduler, check_count


@dataclass(frozen=True)
class ConstantLR(Scheduler):
    """lr = initial_lr * factor for the first `total_iters` epochs or steps, initial_lr from then on.

    With total_iters = 0 it is always initial_lr * factor, as in torch. Only then may factor be 0, because torch divides
    by it at the end of total_iters.
    """

    factor: float = 1 / 3
    total_iters: int = 5

    is_factor: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_count("total_iters", self.total_iters, least=0)
        if not 0 <= self.factor <= 1:
            raise ValueError(f"factor must be at least 0 and at most 1, not {self.factor}")
        if self.factor == 0 < self.total_iters:
            raise ValueError(f"factor must be above 0 if total_iters isn't 0, not {self.factor}: torch divides by it")

    @classmethod
    def examples(cls) -> list[Scheduler]:
        """torch's defaults, a long one, which shows a wrong count, and one without an end."""
        return [cls(), cls(factor=1e-3, total_iters=1500), cls(total_iters=0)]

    def lr(self, initial_lr: float, count: int) -> float:
        """The learning rate after `count` epochs or steps."""
        return initial_lr * (self.factor if count < self.total_iters or self.total_iters == 0 else 1)

    @property
    def duration(self) -> int:
        """total_iters: from then on the lr is the initial one."""
        return self.total_iters


@dataclass(frozen=True)
class LinearLR(Scheduler):
    """lr = initial_lr * (start_factor + (end_factor - start_factor) * min(count, total_iters) / total_iters).

    Mostly used as warm-up: the factor goes in a straight line from start_factor to end_factor, and stays there. With
    total_iters = 0 it stays at start_factor, as in torch.
    """

    start_factor: float = 1 / 3
    end_factor: float = 1.0
    total_iters: int = 5

    is_factor: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 < self.start_factor <= 1:  # torch divides by it
            raise ValueError(f"start_factor must be above 0 and at most 1, not {self.start_factor}")
        if not 0 <= self.end_factor <= 1:
            raise ValueError(f"end_factor must be at least 0 and at most 1, not {self.end_factor}")
        check_count("total_iters", self.total_iters, least=0)

    @classmethod
    def examples(cls) -> list[Scheduler]:
        """torch's defaults, a fall to 0, and total_iters = 0."""
        return [cls(), cls(start_factor=0.9, end_factor=0.0, total_iters=20), cls(total_iters=0)]

    def lr(self, initial_lr: float, count: int) -> float:
        """The learning rate after `count` epochs or steps."""
        progress = min(count, self.total_iters) / max(1, self.total_iters)
        return initial_lr * (self.start_factor + (self.end_factor - self.start_factor) * progress)

    @property
    def duration(self) -> int:
        """total_iters: from then on the lr stays."""
        return self.total_iters


@dataclass(frozen=True)
class SequentialLR(Scheduler):
    """One schedule after the other: schedulers[i] begins at milestones[i - 1], with a count of 0."""

    schedulers: list[Scheduler]
    milestones: list[int]

    stands_alone: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.schedulers:
            raise ValueError("schedulers must hold at least one")
        for scheduler in self.schedulers:
            if scheduler.state() or scheduler.stands_alone:
                # One with a state needs the validation loss, torch can't restart a SequentialLR, and OneCycleLR changes
                # what the others begin with.
                raise ValueError(f"schedulers must not hold a {type(scheduler).__name__}: torch's SequentialLR can't")
        if len(self.milestones) != len(self.schedulers) - 1:
            raise ValueError(
                f"milestones must be one fewer than the {counted(len(self.schedulers), 'scheduler')}, "
                f"not {len(self.milestones)}"
            )
        for index, milestone in enumerate(self.milestones):
            check_count(f"milestones.{index}", milestone, least=0)
        if not all(earlier <= later for earlier, later in pairwise(self.milestones)):
            raise ValueError(f"milestones must not decrease, not {self.milestones}")
        for milestone, scheduler in zip(self.milestones, self.schedulers[1:], strict=True):
            if milestone and isinstance(scheduler, ConstantLR | LinearLR) and scheduler.total_iters == 0:
                name = type(scheduler).__name__
                raise ValueError(f"schedulers must not have a {name} with total_iters 0 that begins after a count of 0")

    @classmethod
    def examples(cls) -> list[Scheduler]:
        """Warm-up and cosine, and four schedules."""
        return [
            cls([LinearLR(total_iters=10), CosineAnnealingLR(T_max=40)], [10]),
            cls([ConstantLR(factor=0.5), StepLR(step_size=3), ConstantLR(), LinearLR()], [8, 25, 31]),
        ]

    def lr(self, initial_lr: float, count: int) -> float:
        """The learning rate after `count` epochs or steps."""
        scheduler, own_count = self._at(count)
        return scheduler.lr(initial_lr, own_count)

    def momentum(self, initial_momentum: float, count: int) -> float:
        """The momentum after `count` epochs or steps."""
        scheduler, own_count = self._at(count)
        return scheduler.momentum(initial_momentum, own_count)

    @property
    def moves_momentum(self) -> bool:
        """Whether one of the schedules moves it."""
        return any(scheduler.moves_momentum for scheduler in self.schedulers)

    def _at(self, count: int) -> tuple[Scheduler, int]:
        """The schedule at a count, and its own count."""
        index = bisect_right(self.milestones, count)
        return self.schedulers[index], count - (self.milestones[index - 1] if index else 0)

    @property
    def duration(self) -> int:
        """The end of the last schedule."""
        return sum(self.milestones[-1:]) + self.schedulers[-1].duration


@dataclass(frozen=True)
class ChainedScheduler(Scheduler):
    """Several schedules at once: lr = initial_lr * the product of their factors.

    Each of `schedulers` is one that multiplies the initial lr by a factor: ConstantLR, ExponentialLR, LinearLR,
    MultiStepLR, PolynomialLR, StepLR.

    Derivation: in torch, each schedule multiplies the lr, whatever it is, by the ratio of its factor to the one before.
    All ratios of a schedule up to the count multiply to its factor there.
    """

    schedulers: list[Scheduler]

    stands_alone: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.schedulers:
            raise ValueError("schedulers must hold at least one")
        for scheduler in self.schedulers:
            if not scheduler.is_factor:
                name = type(scheduler).__name__
                raise ValueError(f"schedulers must not hold a {name}: it doesn't multiply the lr by a factor alone")

    @classmethod
    def examples(cls) -> list[Scheduler]:
        """A warm-up in a fall, and three schedules that change at different counts."""
        return [
            cls([LinearLR(total_iters=10), ExponentialLR(gamma=0.95)]),
            cls([ConstantLR(factor=0.5, total_iters=7), StepLR(step_size=11), PolynomialLR(total_iters=30, power=2.0)]),
        ]

    def lr(self, initial_lr: float, count: int) -> float:
        """The learning rate after `count` epochs or steps."""
        return initial_lr * math.prod(scheduler.lr(1.0, count) for scheduler in self.schedulers)

    @property
    def duration(self) -> int:
        """The longest of theirs."""
        return max(scheduler.duration for scheduler in self.schedulers)
