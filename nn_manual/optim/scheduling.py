"""The settings of an optimizer: which of them a schedule moves, and whether it can."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from nn_manual.optim.base import Optimizer
from nn_manual.optim.scheduler_base import Scheduled, Scheduler


def settings_of(member: Optimizer) -> dict[str, Any]:
    """Its settings as they are now, by name."""
    return {name: getattr(member, name) for name in member.setting_names()}


def settings_that_stay(optimizer: Optimizer, scheduler: Scheduler | None) -> dict[str, Any]:
    """The settings that the schedule doesn't move: the optimizer's by name, its groups' by groups.<index>.<name>. The
    lr may change anyway.
    """
    settings: dict[str, Any] = {}
    for index, member in enumerate(optimizer.members):
        own = settings_of(member)
        del own["lr"]
        if scheduler is not None and scheduler.moves_momentum:
            if "betas" in own:
                own["betas"] = own["betas"][1:]
            else:
                own.pop("momentum", None)
        settings |= {f"groups.{index - 1}.{name}" if index else name: value for name, value in own.items()}
    return settings


def move_scheduled(optimizer: Optimizer, initial: Sequence[Scheduled], scheduler: Scheduler, count: int) -> None:
    """Set what the schedule moves, of the optimizer and of each group, to what it is after `count` epochs or steps.
    Raises ValueError for a momentum that the optimizer doesn't take, or with which its formula has other lines.
    """
    for index, (member, at_first) in enumerate(zip(optimizer.members, initial, strict=True)):
        before, member.scheduled = member.scheduled, scheduler.scheduled(at_first, count)
        momentum = member.scheduled.momentum
        if scheduler.moves_momentum and not (momentum is not None and 0 < momentum < 1):
            try:
                _check_momentum(member)
            except ValueError as error:
                member.scheduled = before
                name, where = type(optimizer).__name__, f" of groups.{index - 1}" if index else ""
                words = f"{type(scheduler).__name__} moves the momentum{where} of {name} to {momentum}"
                raise ValueError(f"{words}: {error}") from None


def check_schedule(optimizer: Optimizer, scheduler: Scheduler) -> None:
    """Raise ValueError where a schedule moves a momentum that the optimizer or one of its groups can't have."""
    if not scheduler.moves_momentum:
        return
    name, schedule = type(optimizer).__name__, type(scheduler).__name__
    for index, member in enumerate(optimizer.members):
        where, momentum = f" of groups.{index - 1}" if index else "", member.scheduled.momentum
        if momentum is None:
            raise ValueError(f"{schedule} moves the momentum, and {name} has none")
        if momentum == 0 and _has_other_lines(member):
            words = f"{schedule} moves the momentum{where} of {name}"
            raise ValueError(f"{words}: it must be above 0 at first, not {momentum}")


def _has_other_lines(member: Optimizer) -> bool:
    """Whether the formula has other state, and so other lines, with a momentum above 0 than without any."""
    of_both = []
    for momentum in (0.0, 0.5):
        other = copy.copy(member)
        other.scheduled = member.scheduled._replace(momentum=momentum)
        of_both.append(other.vector_names())
    return of_both[0] != of_both[1]


def _check_momentum(member: Optimizer) -> None:
    member.check_settings()
    if member.scheduled.momentum == 0 and _has_other_lines(member):
        raise ValueError("it must stay above 0")
