"""torch's versions of optimizers and schedules."""

from __future__ import annotations

import torch

from nn_manual.check.twin.layers import settings
from nn_manual.optim import SGD, Scheduler


def sgd_twin(optimizer: SGD, parameters: list[torch.nn.Parameter]) -> torch.optim.SGD:
    """torch.optim.SGD with the same hyperparameters; fused, its fastest kernel."""
    return torch.optim.SGD(parameters, fused=True, **{k: v for k, v in settings(optimizer).items() if k != "model"})


class SchedulerTwin:
    """torch's schedule of the same name, one step an epoch. TypeError if torch has none."""

    def __init__(self, scheduler: Scheduler, initial_lr: float) -> None:
        # A parameter of its own: torch's schedulers only need an optimizer to hold the lr.
        self._optimizer = torch.optim.SGD([torch.zeros(1)], lr=initial_lr)
        torch_class = getattr(torch.optim.lr_scheduler, type(scheduler).__name__, None)
        if torch_class is None:
            raise TypeError(f"torch.optim.lr_scheduler has no {scheduler!r}: there is nothing to check it against")
        self._scheduler = torch_class(self._optimizer, **settings(scheduler))
        self._epoch = 0

    def lr(self, epoch: int) -> float:
        """The learning rate during `epoch`, counted from 0; epochs are asked for in order."""
        while self._epoch < epoch:
            self._optimizer.step()  # no gradients, no effect; torch warns about a schedule that runs ahead
            self._scheduler.step()
            self._epoch += 1
        return float(self._optimizer.param_groups[0]["lr"])
