"""A schedule that moves lr and momentum against each other."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Literal, NamedTuple

from nn_manual.optim.scheduler_base import Scheduler, check_count


class _Phase(NamedTuple):
    """A part of the cycle: the count at which it ends, and what lr and momentum go from and to."""

    end: float
    lr: tuple[float, float]
    momentum: tuple[float, float]


@dataclass(frozen=True)
class OneCycleLR(Scheduler):
    """The lr rises once, falls for long, and the momentum goes against it, as torch.optim.lr_scheduler.OneCycleLR.

    With initial = max_lr / div_factor and least = initial / final_div_factor, lr and momentum go through these phases:

        the phase ends at the count            lr                   momentum
        pct_start * total_steps - 1            initial to max_lr    max_momentum to base_momentum
        total_steps - 1                        max_lr to least      base_momentum to max_momentum

    With three_phase they are:

        pct_start * total_steps - 1            initial to max_lr    max_momentum to base_momentum
        2 * pct_start * total_steps - 2        max_lr to initial    base_momentum to max_momentum
        total_steps - 1                        initial to least     max_momentum

    A phase that begins at the count `begin`, and ends at the count `end`, goes from the value `first` to `last`:

        done  = (count - begin) / (end - begin)
        value = last + (first - last) * (1 + cos(pi * done)) / 2  if anneal_strategy is cos
        value = first + (last - first) * done                     if anneal_strategy is linear

    The lr that the optimizer has at first doesn't count, as in torch. With cycle_momentum, neither does its momentum:
    the setting `momentum`, or the first of `betas`. At the count total_steps the last phase goes on; after it there is
    no lr. Source: Smith and Topin, 2018; three_phase is the paper's form.

    Raises ValueError for values out of range, and for a pct_start that gives a phase no length: torch divides by it.
    """

    max_lr: float
    total_steps: int
    pct_start: float = 0.3
    anneal_strategy: Literal["cos", "linear"] = "cos"
    cycle_momentum: bool = True
    base_momentum: float = 0.85
    max_momentum: float = 0.95
    div_factor: float = 25.0
    final_div_factor: float = 1e4
    three_phase: bool = False

    stands_alone: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_count("total_steps", self.total_steps, least=1)
        if not 0 <= self.max_lr < math.inf:
            raise ValueError(f"max_lr must be at least 0 and finite, not {self.max_lr}")
        for name in ("pct_start", "base_momentum", "max_momentum"):
            if not 0 < getattr(self, name) < 1:
                raise ValueError(f"{name} must be above 0 and below 1, not {getattr(self, name)}")
        for name in ("div_factor", "final_div_factor"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be above 0 and finite, not {getattr(self, name)}")
        if self.anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be cos or linear, not {self.anneal_strategy}")
        ends = [0.0, *(phase.end for phase in self._phases())]
        if any(begin == end for begin, end in pairwise(ends)):
            raise ValueError(
                f"pct_start must not be {self.pct_start} with total_steps {self.total_steps}: a phase has no length"
            )

    @classmethod
    def examples(cls) -> list[Scheduler]:
        """Two phases and three, each along a cosine and a line, a momentum that stays, and a rise within one count."""
        return [
            cls(max_lr=0.5, total_steps=40),
            cls(max_lr=0.5, total_steps=37, anneal_strategy="linear", base_momentum=0.6, max_momentum=0.9),
            cls(max_lr=0.2, total_steps=50, pct_start=0.33, three_phase=True, div_factor=10.0, final_div_factor=50.0),
            cls(max_lr=0.2, total_steps=41, pct_start=0.4, three_phase=True, anneal_strategy="linear"),
            cls(max_lr=0.1, total_steps=30, cycle_momentum=False, div_factor=2.0, final_div_factor=0.5),
            cls(max_lr=0.1, total_steps=9, pct_start=0.05),
        ]

    def lr(self, initial_lr: float, count: int) -> float:  # noqa: ARG002 - the contract's signature
        """The learning rate after `count` epochs or steps. Raises ValueError for a count above total_steps."""
        phase, done = self._at(count)
        return self._between(*phase.lr, done)

    def momentum(self, initial_momentum: float, count: int) -> float:  # noqa: ARG002 - the contract's signature
        """The momentum after `count` epochs or steps, where it is moved. Raises ValueError as `lr` does."""
        phase, done = self._at(count)
        return self._between(*phase.momentum, done)

    @property
    def moves_momentum(self) -> bool:
        """cycle_momentum."""
        return self.cycle_momentum

    @property
    def duration(self) -> int:
        """total_steps."""
        return self.total_steps

    @property
    def last_count(self) -> float:
        """total_steps."""
        return self.total_steps

    def _phases(self) -> list[_Phase]:
        initial = self.max_lr / self.div_factor
        least, peak = initial / self.final_div_factor, self.pct_start * self.total_steps - 1
        base, most, end = self.base_momentum, self.max_momentum, self.total_steps - 1
        rise = _Phase(peak, (initial, self.max_lr), (most, base))
        if not self.three_phase:
            return [rise, _Phase(end, (self.max_lr, least), (base, most))]
        fall = _Phase(2 * self.pct_start * self.total_steps - 2, (self.max_lr, initial), (base, most))
        return [rise, fall, _Phase(end, (initial, least), (most, most))]

    def _at(self, count: int) -> tuple[_Phase, float]:
        """The phase at a count, and which part of it is done."""
        if count > self.total_steps:
            raise ValueError(f"OneCycleLR ends at total_steps {self.total_steps}: it has no lr for the count {count}")
        phases, begin = self._phases(), 0.0
        while count > phases[0].end and len(phases) > 1:
            begin = phases.pop(0).end
        return phases[0], (count - begin) / (phases[0].end - begin)

    def _between(self, first: float, last: float, done: float) -> float:
        if self.anneal_strategy == "linear":
            return first + (last - first) * done
        return last + (first - last) * (1 + math.cos(math.pi * done)) / 2
