"""torch's versions of learning-rate schedules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from nn_manual.check.twin.modules import settings
from nn_manual.defaults import defines
from nn_manual.errors import NoReference, text_of
from nn_manual.optim import ReduceLROnPlateau, Scheduler
from nn_manual.optim.scheduler_base import Scheduled


class SchedulerTwin:
    """The reference of a schedule, or torch's of its name, which steps from count to count. NoReference if there is
    neither.
    """

    def __init__(self, scheduler: Scheduler, initial: Sequence[Scheduled]) -> None:
        self._ours, self._initial = scheduler, list(initial)
        self._rewind()

    def _rewind(self) -> None:
        """Start again."""
        # Parameters of its own: torch's schedules only need an optimizer to hold what they move.
        self._optimizer = torch.optim.SGD(
            [{"params": [torch.zeros(1)], "lr": lr, "momentum": momentum or 0.0} for lr, momentum in self._initial]
        )
        self._scheduler = _torch_scheduler(self._ours, self._optimizer)
        self._count = 0
        parts = getattr(self._scheduler, "_schedulers", [self._scheduler])
        eta_min = max(getattr(part, "eta_min", 0.0) for part in parts)
        #: Of each member, the largest numbers of torch's recursion so far: its rounding errors are of that size.
        self.scales = self._now()
        for scale, group in zip(self.scales, self._optimizer.param_groups, strict=True):
            scale["lr"] = max(scale["lr"], eta_min, group.get("max_lr", 0.0))

    def scheduled(self, count: int) -> list[dict[str, float]]:
        """What each member of the optimizer has after `count` epochs or steps, by its name in Scheduled. torch steps
        there from the count asked for last, or from the start.
        """
        if count < self._count:
            self._rewind()
        while self._count < count:
            self._optimizer.step()  # no gradients, no effect; torch warns about a schedule that runs ahead
            self._scheduler.step()
            self._count += 1
            for scale, now in zip(self.scales, self._now(), strict=True):
                scale.update({name: max(scale[name], value) for name, value in now.items()})
        return self._now()

    def _now(self) -> list[dict[str, float]]:
        return [{name: float(group[name]) for name in Scheduled._fields} for group in self._optimizer.param_groups]

    def observe(self, validation_loss: float) -> None:
        """See the validation loss of an epoch. Ours must see it afterwards."""

    def state(self) -> dict[str, float]:
        """Those parts of our schedule's state that torch keeps, too."""
        return {}


class PlateauTwin(SchedulerTwin):
    """torch's ReduceLROnPlateau. It starts each epoch's observation where ours is, and then ours must have followed."""

    _ours: ReduceLROnPlateau

    def _rewind(self) -> None:
        """Go to where ours is."""
        super()._rewind()
        for name in ("best", "num_bad_epochs", "cooldown_counter"):
            setattr(self._scheduler, name, getattr(self._ours, name))
        for _ in range(self._ours.num_reductions):
            self._scheduler._reduce_lr(epoch=0)  # the epoch is for a message that torch no longer prints
        self._has_observed = False

    def scheduled(self, count: int) -> list[dict[str, float]]:  # noqa: ARG002 - the signature is SchedulerTwin's
        """What each member of the optimizer has after the losses observed so far."""
        if not self._has_observed:  # our state may have been loaded since
            self._rewind()
        return self._now()

    def observe(self, validation_loss: float) -> None:
        """See the validation loss of an epoch. Ours must see it afterwards."""
        self._rewind()
        self._scheduler.step(validation_loss)
        self._has_observed = True

    def state(self) -> dict[str, float]:
        """Those parts of our schedule's state that torch keeps, too."""
        return {name: getattr(self._scheduler, name) for name in ("best", "num_bad_epochs", "cooldown_counter")}


def schedule_twin(scheduler: Scheduler, initial: Sequence[Scheduled]) -> SchedulerTwin:
    """The reference of a schedule for an optimizer whose members begin with `initial`. NoReference if there is none."""
    twin = PlateauTwin if isinstance(scheduler, ReduceLROnPlateau) else SchedulerTwin
    return twin(scheduler, initial)


def _torch_scheduler(scheduler: Scheduler, optimizer: torch.optim.Optimizer) -> Any:
    """What the schedule's `reference` returns, or torch's class of the same name, with the same settings; schedules
    among these are made anew.
    """
    name = type(scheduler).__name__
    if defines(scheduler, "reference"):
        return _of_reference(scheduler, optimizer)
    torch_class = getattr(torch.optim.lr_scheduler, name, None)
    if torch_class is None:
        words = "the class must define reference(optimizer), which returns a schedule of torch's"
        raise NoReference(type(scheduler), f"torch.optim.lr_scheduler has no {name}: {words}")
    options = settings(scheduler)
    if "schedulers" in options:
        options["schedulers"] = [_torch_scheduler(inner, optimizer) for inner in options["schedulers"]]
    try:
        return torch_class(optimizer=optimizer, **options)
    except TypeError as error:  # a class of the user's own has other settings than torch's of the same name
        words = f"torch.optim.lr_scheduler.{name} refuses the settings: {text_of(error)}"
        raise NoReference(type(scheduler), words) from error


def _of_reference(scheduler: Scheduler, optimizer: torch.optim.Optimizer) -> torch.optim.lr_scheduler.LRScheduler:
    returned: Any = scheduler.reference(optimizer)
    if not isinstance(returned, torch.optim.lr_scheduler.LRScheduler):
        words = "reference(optimizer) must return a schedule of torch.optim.lr_scheduler"
        raise NoReference(type(scheduler), f"{words}, not {type(returned).__name__}")
    return returned
