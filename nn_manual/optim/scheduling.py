"""Which settings of an optimizer a schedule moves, and whether it can."""

from __future__ import annotations

import copy
from typing import Any

from nn_manual.optim.base import Optimizer
from nn_manual.optim.scheduler_base import Scheduler


def settings_that_stay(optimizer: Optimizer, scheduler: Scheduler | None) -> dict[str, Any]:
    """The settings that the schedule doesn't move, by name; the lr may change anyway."""
    settings = {name: getattr(optimizer, name) for name in optimizer.setting_names() if name != "lr"}
    if scheduler is not None and scheduler.moves_momentum:
        if "betas" in settings:
            settings["betas"] = settings["betas"][1:]
        else:
            settings.pop("momentum", None)
    return settings


def check_schedule(optimizer: Optimizer, scheduler: Scheduler) -> None:
    """Raise ValueError where a schedule moves a momentum that the optimizer or one of its groups doesn't have."""
    if not scheduler.moves_momentum:
        return
    name, schedule = type(optimizer).__name__, type(scheduler).__name__
    for member in optimizer.members:
        own, later = member.scheduled, copy.copy(member)
        if own.momentum is None:
            raise ValueError(f"{schedule} moves the momentum, and {name} has none")
        later.scheduled = scheduler.scheduled(own, 0)
        if later.vector_names() != member.vector_names():  # the formula has other lines for a momentum of 0
            raise ValueError(f"{schedule} moves the momentum: that of {name} must be above 0, not {own.momentum}")
