"""Schedules along a cosine, once or again and again (Loshchilov and Hutter, 2017)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from nn_manual.optim.scheduler_base import Scheduler, check_count


@dataclass(frozen=True)
class CosineAnnealingLR(Scheduler):
    """lr = eta_min + (initial_lr - eta_min) (1 + cos(pi count / T_max)) / 2 (Loshchilov and Hutter, 2017)."""

    T_max: int
    eta_min: float = 0.0

    def __post_init__(self) -> None:
        check_count("T_max", self.T_max, least=1)
        if not self.eta_min >= 0:
            raise ValueError(f"eta_min must be at least 0, not {self.eta_min}")

    @classmethod
    def examples(cls) -> list[Scheduler]:
        """Down to 0, and down to an eta_min and up again."""
        return [cls(T_max=50), cls(T_max=11, eta_min=0.02)]

    def lr(self, initial_lr: float, count: int) -> float:
        """The learning rate after `count` epochs or steps."""
        return self.eta_min + (initial_lr - self.eta_min) * (1 + math.cos(math.pi * count / self.T_max)) / 2

    @property
    def duration(self) -> int:
        """T_max: then the lr is eta_min."""
        return self.T_max


@dataclass(frozen=True)
class CosineAnnealingWarmRestarts(Scheduler):
    """lr = eta_min + (initial_lr - eta_min) (1 + cos(pi since / length)) / 2, and then it begins anew.

    The first fall takes T_0 epochs or steps, and each further one T_mult times as many as the one before: `length` is
    that of the fall at the count, and `since` the part of the count that lies in it.
    """

    T_0: int
    T_mult: int = 1
    eta_min: float = 0.0

    def __post_init__(self) -> None:
        check_count("T_0", self.T_0, least=1)
        check_count("T_mult", self.T_mult, least=1)
        if not self.eta_min >= 0:
            raise ValueError(f"eta_min must be at least 0, not {self.eta_min}")

    @classmethod
    def examples(cls) -> list[Scheduler]:
        """Falls of one length, and of doubled ones that end above 0."""
        return [cls(T_0=7), cls(T_0=5, T_mult=2, eta_min=0.02), cls(T_0=300, T_mult=3)]

    def lr(self, initial_lr: float, count: int) -> float:
        """The learning rate after `count` epochs or steps."""
        since, length = count, self.T_0
        if self.T_mult == 1:
            since %= length
        while since >= length:
            since -= length
            length *= self.T_mult
        return self.eta_min + (initial_lr - self.eta_min) * (1 + math.cos(math.pi * since / length)) / 2

    @property
    def duration(self) -> int:
        """T_0: then the lr is the initial one again."""
        return self.T_0
