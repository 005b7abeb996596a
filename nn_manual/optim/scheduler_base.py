"""The contract that every schedule keeps."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

from nn_manual.defaults import default


class Scheduled(NamedTuple):
    """The settings of an optimizer that a schedule may move. `momentum` is None for an optimizer that has none."""

    lr: float
    momentum: float | None


class Scheduler(ABC):
    """A schedule, named as in torch.optim.lr_scheduler. It gives the lr of each epoch, or of each step, and the
    momentum if it moves that, too.
    """

    #: Whether torch's SequentialLR can't hold it.
    stands_alone: ClassVar[bool] = False
    #: Whether it multiplies the initial lr by a number that depends on the count alone, in torch's steps, too.
    is_factor: ClassVar[bool] = False

    @classmethod
    def examples(cls) -> list[Scheduler]:
        """Schedules of this class: the catalogue checks them. Together they use each line of the formula."""
        return [cls()]

    @abstractmethod
    def lr(self, initial_lr: float, count: int) -> float:
        """The learning rate after `count` epochs or steps."""

    @default
    def reference(self, optimizer: Any) -> Any:
        """A schedule of torch.optim.lr_scheduler for torch's `optimizer`, for a class that torch doesn't have. By
        default, the reference is torch's class of the same name.
        """
        raise NotImplementedError

    def momentum(self, initial_momentum: float, count: int) -> float:  # noqa: ARG002 - the contract's signature
        """The momentum after `count` epochs or steps, where the schedule moves it."""
        return initial_momentum

    @property
    def moves_momentum(self) -> bool:
        """Whether `momentum` isn't always the initial one."""
        return False

    def scheduled(self, initial: Scheduled, count: int) -> Scheduled:
        """What `initial` is after `count` epochs or steps."""
        momentum = initial.momentum
        if momentum is not None and self.moves_momentum:
            momentum = self.momentum(momentum, count)
        return Scheduled(self.lr(initial.lr, count), momentum)

    @property
    def duration(self) -> int:
        """The number of epochs or steps to the schedule's end or, if it has no end, to its first change."""
        return 0

    @property
    def last_count(self) -> float:
        """The last count that it has an lr for."""
        return math.inf

    def observe(self, validation_loss: float) -> None:  # noqa: B027 - most schedules have nothing to do here
        """Take note of the validation loss after an epoch."""

    def state(self) -> dict[str, float]:
        """What the schedule remembers of the epochs so far; {} if their number alone gives the lr."""
        return {}

    def load_state(self, state: Mapping[str, float]) -> None:
        """Go on from what `state` returned. Raises ValueError for names that are not the schedule's."""
        if state.keys() != self.state().keys():
            raise ValueError(f"{type(self).__name__} keeps {sorted(self.state())}, not {sorted(state)}")


def check_count(name: str, value: int, least: int) -> None:
    """Raise ValueError unless `value` is an integer of at least `least`."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise ValueError(f"{name} must be an integer, not {value!r}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, not {value}")
