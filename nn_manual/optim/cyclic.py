"""A schedule that moves the lr up and down in triangles, and momentum against it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from nn_manual.optim.scheduler_base import Scheduler, check_count

Mode = Literal["triangular", "triangular2", "exp_range"]


@dataclass(frozen=True)
class CyclicLR(Scheduler):
    """The lr rises and falls in lines, and the momentum goes against it, as torch.optim.lr_scheduler.CyclicLR.

    With step_size_down null, the fall takes as long as the rise. With period = step_size_up + step_size_down and
    share = step_size_up / period:

        cycle    = 1 + count // period
        place    = 1 + count / period - cycle
        height   = place / share if place <= share else (place - 1) / (share - 1)
        scale    = 1                                                                 where mode = triangular
        scale    = 1 / 2**(cycle - 1)                                                where mode = triangular2
        scale    = gamma**count                                                      where mode = exp_range
        lr       = base_lr + (max_lr - base_lr) * height * scale
        momentum = max_momentum - (max_momentum - base_momentum) * height * scale

    The lr that the optimizer has at first doesn't count, as in torch. With cycle_momentum, neither does its momentum:
    the setting `momentum`, or the first of `betas`. Source: Smith, 2017.

    Raises ValueError for values out of range.
    """

    base_lr: float
    max_lr: float
    step_size_up: int = 2000
    step_size_down: int | None = None
    mode: Mode = "triangular"
    gamma: float = 1.0
    cycle_momentum: bool = True
    base_momentum: float = 0.8
    max_momentum: float = 0.9

    stands_alone: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name in ("base_lr", "max_lr"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be at least 0 and finite, not {getattr(self, name)}")
        if not 0 <= self.gamma <= 1:
            raise ValueError(f"gamma must be at least 0 and at most 1, not {self.gamma}")
        check_count("step_size_up", self.step_size_up, least=1)
        if self.step_size_down is not None:
            check_count("step_size_down", self.step_size_down, least=0)
        for name in ("base_momentum", "max_momentum"):
            if not 0 < getattr(self, name) < 1:
                raise ValueError(f"{name} must be above 0 and below 1, not {getattr(self, name)}")
        if self.mode not in get_args(Mode):
            raise ValueError(f"mode must be {', '.join(get_args(Mode)[:-1])} or exp_range, not {self.mode}")

    @classmethod
    def examples(cls) -> list[Scheduler]:
        """Each mode, falls as long as the rise, shorter ones and none, a momentum that stays, and a long rise, which
        shows a wrong count.
        """
        return [
            cls(0.01, 0.5, step_size_up=9, gamma=0.5),  # which only exp_range heeds
            cls(0.1, 0.4, step_size_up=7, step_size_down=4, mode="triangular2", base_momentum=0.3, max_momentum=0.7),
            cls(0.02, 0.3, step_size_up=3, step_size_down=11, mode="exp_range", gamma=0.97),
            cls(0.0, 0.2, step_size_up=5, step_size_down=0, cycle_momentum=False),
            cls(0.001, 0.1, step_size_up=1200),
        ]

    def lr(self, initial_lr: float, count: int) -> float:  # noqa: ARG002 - the contract's signature
        """The learning rate after `count` epochs or steps."""
        return self.base_lr + self._at(count, self.max_lr - self.base_lr)

    def momentum(self, initial_momentum: float, count: int) -> float:  # noqa: ARG002 - the contract's signature
        """The momentum after `count` epochs or steps, where it is moved."""
        return self.max_momentum - self._at(count, self.max_momentum - self.base_momentum)

    @property
    def moves_momentum(self) -> bool:
        """cycle_momentum."""
        return self.cycle_momentum

    @property
    def duration(self) -> int:
        """step_size_up: then the lr falls for the first time."""
        return self.step_size_up

    @property
    def last_count(self) -> float:
        """The end of cycle 1024 of triangular2: torch's 2**1024 is no number any more."""
        return 1024 * self._period - 1 if self.mode == "triangular2" else math.inf

    @property
    def _period(self) -> int:
        return self.step_size_up + (self.step_size_up if self.step_size_down is None else self.step_size_down)

    def _at(self, count: int, height: float) -> float:
        """How high above its foot a triangle of this height is."""
        period = self._period
        share, cycle = self.step_size_up / period, 1 + count // period
        place = 1 + count / period - cycle
        height = height * (place / share if place <= share else (place - 1) / (share - 1))
        if self.mode == "triangular2":
            return height * (1 / 2.0 ** (cycle - 1))
        return height * self.gamma**count if self.mode == "exp_range" else height
