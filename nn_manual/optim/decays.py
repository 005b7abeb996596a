"""Schedules that lower the lr by a factor, again and again, or along a power of what is left."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from typing import ClassVar

from nn_manual.optim.scheduler_base import Scheduler, check_count


def _check_gamma(gamma: float) -> None:
    """Raise ValueError unless the factor is at least 0 and finite."""
    if not 0 <= gamma < math.inf:
        raise ValueError(f"gamma must be at least 0 and finite, not {gamma}")


def _decayed(initial_lr: float, gamma: float, times: int) -> float:
    """initial_lr * gamma**times."""
    try:
        return float(initial_lr * gamma**times)
    except OverflowError:  # torch multiplies step by step: to infinity, unless lr is 0
        return initial_lr and math.inf


@dataclass(frozen=True)
class StepLR(Scheduler):
    """lr = initial_lr * gamma**(count // step_size)."""

    step_size: int
    gamma: float = 0.1

    is_factor: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_count("step_size", self.step_size, least=1)
        _check_gamma(self.gamma)

    @classmethod
    def examples(cls) -> list[Scheduler]:
        """A change at each count, some changes, and few: after a long time a wrong count shows."""
        return [cls(step_size=1, gamma=0.8), cls(step_size=7, gamma=0.5), cls(step_size=501, gamma=0.5)]

    def lr(self, initial_lr: float, count: int) -> float:
        """The learning rate after `count` epochs or steps."""
        return _decayed(initial_lr, self.gamma, count // self.step_size)

    @property
    def duration(self) -> int:
        """step_size: then the lr changes for the first time."""
        return self.step_size


@dataclass(frozen=True)
class MultiStepLR(Scheduler):
    """lr = initial_lr * gamma**(number of milestones that are at most the count).

    A milestone that stands twice counts twice, as in torch.
    """

    milestones: list[int]
    gamma: float = 0.1

    is_factor: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for index, milestone in enumerate(self.milestones):
            check_count(f"milestones.{index}", milestone, least=0)
        if not all(earlier <= later for earlier, later in zip(self.milestones, self.milestones[1:], strict=False)):
            raise ValueError(f"milestones must not decrease, not {self.milestones}")
        _check_gamma(self.gamma)

    @classmethod
    def examples(cls) -> list[Scheduler]:
        """Some drops, two of them at once, one at the start; and few, far from each other."""
        return [cls(milestones=[0, 3, 3, 20], gamma=0.5), cls(milestones=[30, 600])]

    def lr(self, initial_lr: float, count: int) -> float:
        """The learning rate after `count` epochs or steps."""
        return _decayed(initial_lr, self.gamma, bisect_right(self.milestones, count))

    @property
    def duration(self) -> int:
        """The last milestone: from then on the lr stays."""
        return max(self.milestones, default=0)


@dataclass(frozen=True)
class ExponentialLR(Scheduler):
    """lr = initial_lr * gamma**count."""

    gamma: float

    is_factor: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_gamma(self.gamma)

    @classmethod
    def examples(cls) -> list[Scheduler]:
        """A fast fall, and a slow rise."""
        return [cls(gamma=0.8), cls(gamma=1.01)]

    def lr(self, initial_lr: float, count: int) -> float:
        """The learning rate after `count` epochs or steps."""
        return _decayed(initial_lr, self.gamma, count)

    @property
    def duration(self) -> int:
        """1: then the lr changes for the first time."""
        return 1


@dataclass(frozen=True)
class PolynomialLR(Scheduler):
    """lr = initial_lr * (1 - min(count, total_iters) / total_iters)**power.

    With total_iters = 0 it stays at initial_lr, as in torch.
    """

    total_iters: int = 5
    power: float = 1.0

    is_factor: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_count("total_iters", self.total_iters, least=0)
        if not 0 <= self.power < math.inf:
            raise ValueError(f"power must be at least 0 and finite, not {self.power}")

    @classmethod
    def examples(cls) -> list[Scheduler]:
        """torch's defaults, a long curve, and one that stays."""
        return [cls(), cls(total_iters=700, power=2.5), cls(total_iters=0)]

    def lr(self, initial_lr: float, count: int) -> float:
        """The learning rate after `count` epochs or steps."""
        if not self.total_iters:
            return initial_lr
        return float(initial_lr * (1 - min(count, self.total_iters) / self.total_iters) ** self.power)

    @property
    def duration(self) -> int:
        """total_iters: from then on the lr stays."""
        return self.total_iters
