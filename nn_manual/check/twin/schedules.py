"""torch's versions of learning-rate schedules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from nn_manual.check.twin.modules import settings
from nn_manual.optim import ReduceLROnPlateau, Scheduler


class SchedulerTwin:
    """torch's schedule of the same name, which steps from count to count. TypeError if torch has none."""

    def __init__(self, scheduler: Scheduler, initial_lrs: Sequence[float]) -> None:
        self._ours, self._initial_lrs = scheduler, list(initial_lrs)
        self._rewind()

    def _rewind(self) -> None:
        """Start again."""
        # Parameters of its own: torch's schedules only need an optimizer to hold the lrs.
        self._optimizer = torch.optim.SGD([{"params": [torch.zeros(1)], "lr": lr} for lr in self._initial_lrs])
        self._scheduler = _torch_scheduler(self._ours, self._optimizer)
        self._count = 0
        parts = getattr(self._scheduler, "_schedulers", [self._scheduler])
        eta_min = max(getattr(part, "eta_min", 0.0) for part in parts)
        #: Of each member, the largest number of torch's recursion so far: its rounding errors are of that size.
        self.scales = [max(lr, eta_min) for lr in self._initial_lrs]

    def lrs(self, count: int) -> list[float]:
        """The learning rate of each member of the optimizer after `count` epochs or steps. torch steps there from the
        count asked for last, or from the start.
        """
        if count < self._count:
            self._rewind()
        while self._count < count:
            self._optimizer.step()  # no gradients, no effect; torch warns about a schedule that runs ahead
            self._scheduler.step()
            self._count += 1
            self.scales = [max(pair) for pair in zip(self.scales, self._current_lrs(), strict=True)]
        return self._current_lrs()

    def _current_lrs(self) -> list[float]:
        return [float(group["lr"]) for group in self._optimizer.param_groups]

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

    def lrs(self, count: int) -> list[float]:  # noqa: ARG002 - the signature is SchedulerTwin's
        """The learning rate of each member of the optimizer after the losses observed so far."""
        if not self._has_observed:  # our state may have been loaded since
            self._rewind()
        return self._current_lrs()

    def observe(self, validation_loss: float) -> None:
        """See the validation loss of an epoch. Ours must see it afterwards."""
        self._rewind()
        self._scheduler.step(validation_loss)
        self._has_observed = True

    def state(self) -> dict[str, float]:
        """Those parts of our schedule's state that torch keeps, too."""
        return {name: getattr(self._scheduler, name) for name in ("best", "num_bad_epochs", "cooldown_counter")}


def schedule_twin(scheduler: Scheduler, initial_lrs: Sequence[float]) -> SchedulerTwin:
    """torch's schedule for an optimizer whose members start at `initial_lrs`. TypeError if torch has none."""
    twin = PlateauTwin if isinstance(scheduler, ReduceLROnPlateau) else SchedulerTwin
    return twin(scheduler, initial_lrs)


def _torch_scheduler(scheduler: Scheduler, optimizer: torch.optim.Optimizer) -> Any:
    """torch's class of the same name, with the same settings; schedules among these are made anew."""
    torch_class = getattr(torch.optim.lr_scheduler, type(scheduler).__name__, None)
    if torch_class is None:
        raise TypeError(f"torch.optim.lr_scheduler has no {scheduler!r}: there is nothing to check it against")
    options = settings(scheduler)
    if "schedulers" in options:
        options["schedulers"] = [_torch_scheduler(inner, optimizer) for inner in options["schedulers"]]
    return torch_class(optimizer, **options)
