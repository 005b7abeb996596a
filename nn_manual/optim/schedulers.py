"""Learning-rate schedules in closed form: the lr of an epoch depends on the epoch alone, not on the way there."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass


class Scheduler(ABC):
    """A schedule, named as in torch.optim.lr_scheduler, stepped once an epoch."""

    @abstractmethod
    def lr(self, initial_lr: float, epoch: int) -> float:
        """The learning rate during `epoch`, counted from 0."""

    def state(self) -> dict[str, float]:
        """What the schedule remembers of the epochs so far; nothing where the epoch alone gives the lr."""
        return {}

    def load_state(self, state: Mapping[str, float]) -> None:
        """Go on from what `state` returned. Raises ValueError for names that are not the schedule's."""
        if state.keys() != self.state().keys():
            raise ValueError(f"{type(self).__name__} keeps {sorted(self.state())}, not {sorted(state)}")


@dataclass(frozen=True)
class ConstantLR(Scheduler):
    """lr = initial_lr * factor for the first `total_iters` epochs, initial_lr from then on."""

    factor: float = 1 / 3
    total_iters: int = 5

    def __post_init__(self) -> None:
        if not 0 < self.factor <= 1:  # torch divides by it
            raise ValueError(f"factor must be above 0 and at most 1, not {self.factor}")
        if self.total_iters < 0:
            raise ValueError(f"total_iters must be at least 0, not {self.total_iters}")

    def lr(self, initial_lr: float, epoch: int) -> float:
        """The learning rate during `epoch`, counted from 0."""
        return initial_lr * (self.factor if epoch < self.total_iters else 1)


@dataclass(frozen=True)
class StepLR(Scheduler):
    """lr = initial_lr * gamma**(epoch // step_size)."""

    step_size: int
    gamma: float = 0.1

    def __post_init__(self) -> None:
        if self.step_size < 1:
            raise ValueError(f"step_size must be at least 1, not {self.step_size}")
        if not self.gamma > 0:
            raise ValueError(f"gamma must be above 0, not {self.gamma}")

    def lr(self, initial_lr: float, epoch: int) -> float:
        """The learning rate during `epoch`, counted from 0."""
        return float(initial_lr * self.gamma ** (epoch // self.step_size))


@dataclass(frozen=True)
class CosineAnnealingLR(Scheduler):
    """lr = eta_min + (initial_lr - eta_min) (1 + cos(pi epoch / T_max)) / 2 (Loshchilov and Hutter, 2017)."""

    T_max: int
    eta_min: float = 0.0

    def __post_init__(self) -> None:
        if self.T_max < 1:
            raise ValueError(f"T_max must be at least 1, not {self.T_max}")
        if not self.eta_min >= 0:
            raise ValueError(f"eta_min must be at least 0, not {self.eta_min}")

    def lr(self, initial_lr: float, epoch: int) -> float:
        """The learning rate during `epoch`, counted from 0."""
        return self.eta_min + (initial_lr - self.eta_min) * (1 + math.cos(math.pi * epoch / self.T_max)) / 2
