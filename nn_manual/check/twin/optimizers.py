"""torch's versions of optimizers and schedules."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from nn_manual.arrays import Array
from nn_manual.check.twin.layers import settings
from nn_manual.check.twin.model import TORCH_DTYPES
from nn_manual.optim import Optimizer, Scheduler


class OptimizerTwin:
    """torch.optim's class of the optimizer's name with the same keyword arguments, on a flat vector of `size` elements.

    One vector does for all parameters, or for any part of them: the optimizers here are elementwise. `param` and
    `vectors` are numpy arrays over torch's memory, the latter by torch's names. Raises TypeError where torch has none.
    """

    def __init__(self, optimizer: Optimizer, size: int, dtype: np.dtype[Any]) -> None:
        torch_class = getattr(torch.optim, type(optimizer).__name__, None)
        if torch_class is None:
            raise TypeError(f"torch.optim has no {type(optimizer).__name__}: there is nothing to check it against")
        options = {name: value for name, value in settings(optimizer).items() if name not in ("model", "lr")}
        options["lr"] = 0.0  # each step brings its own
        if "fused" in inspect.signature(torch_class).parameters:
            options["fused"] = True  # torch's fastest kernel
        self._parameter = torch.zeros(size, dtype=TORCH_DTYPES[dtype.name])
        self._optimizer: torch.optim.Optimizer = torch_class([self._parameter], **options)
        self._vectors = {name: torch.zeros_like(self._parameter) for name in optimizer.vectors}
        self._num_steps = torch.tensor(0.0)
        self.param: Array = self._parameter.numpy()
        self.vectors: dict[str, Array] = {}

    def step(self, param: Array, vectors: Mapping[str, Array], grad: Array, *, lr: float, num_steps: int) -> None:
        """One step from copies of `param` and `vectors`, after which `num_steps` steps were made, along `grad`.

        Before the first step torch has no state and makes its own.
        """
        self._parameter.copy_(torch.from_numpy(param))
        self._parameter.grad = torch.from_numpy(grad)
        self._optimizer.param_groups[0]["lr"] = lr
        if num_steps:
            for name, vector in vectors.items():
                self._vectors[name].copy_(torch.from_numpy(vector))
            self._num_steps.fill_(num_steps)
            self._optimizer.state[self._parameter] = {**self._vectors, "step": self._num_steps}
        else:
            self._optimizer.state.clear()
        self._optimizer.step()
        state = self._optimizer.state[self._parameter]
        self.vectors = {name: state[name].numpy() for name in self._vectors}


class SchedulerTwin:
    """torch's schedule of the same name, one step an epoch. TypeError if torch has none."""

    def __init__(self, scheduler: Scheduler, initial_lr: float) -> None:
        torch_class = getattr(torch.optim.lr_scheduler, type(scheduler).__name__, None)
        if torch_class is None:
            raise TypeError(f"torch.optim.lr_scheduler has no {scheduler!r}: there is nothing to check it against")
        self._torch_class, self._settings, self._initial_lr = torch_class, settings(scheduler), initial_lr
        self._rewind()

    def _rewind(self) -> None:
        """Start again at epoch 0."""
        # A parameter of its own: torch's schedulers only need an optimizer to hold the lr.
        self._optimizer = torch.optim.SGD([torch.zeros(1)], lr=self._initial_lr)
        self._scheduler = self._torch_class(self._optimizer, **self._settings)
        self._epoch = 0

    def lr(self, epoch: int) -> float:
        """The learning rate during `epoch`, counted from 0. torch steps there from the epoch asked for last, or from
        the first one.
        """
        if epoch < self._epoch:
            self._rewind()
        while self._epoch < epoch:
            self._optimizer.step()  # no gradients, no effect; torch warns about a schedule that runs ahead
            self._scheduler.step()
            self._epoch += 1
        return float(self._optimizer.param_groups[0]["lr"])
