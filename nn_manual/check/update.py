"""The check of the optimizer: torch schedules and steps on its own gradients, and ends where we do."""

from __future__ import annotations

import math

import numpy as np
import torch

from nn_manual.arrays import Array, carve
from nn_manual.check.comparison import Comparison, compare, worst_differences
from nn_manual.check.plan import Quantity
from nn_manual.check.report import GradientReport
from nn_manual.check.tolerances import LEARNING_RATE
from nn_manual.check.twin import SchedulerTwin, Twin, sgd_twin
from nn_manual.errors import GradientMismatch
from nn_manual.optim import SGD
from nn_manual.schedulers import Scheduler


class UpdateChecker:
    """Runs torch.optim.SGD beside ours.

    torch's parameters start each compared step as bitwise copies of ours. Its momentum buffers are its own as long as
    every step is compared, so that the whole trajectory is proven; after steps that nobody compared they start as
    copies of ours, too.
    """

    def __init__(self, twin: Twin, optimizer: SGD, scheduler: Scheduler | None = None) -> None:
        self.twin, self.optimizer = twin, optimizer
        self.torch_optimizer = sgd_twin(optimizer, list(twin.parameters.values()))
        self.torch_scheduler = SchedulerTwin(scheduler, optimizer.lr) if scheduler else None
        self._initial_lr = optimizer.lr
        self._compared_steps: int | None = None
        self._scale = np.empty(0)

    def start_epoch(self, epoch: int) -> None:
        """Hold the optimizer's lr in `epoch`, counted from 0, against torch's schedule. Raises GradientMismatch."""
        if self.torch_scheduler is None:
            return
        torch_lr = self.torch_scheduler.lr(epoch)
        if not math.isclose(self.optimizer.lr, torch_lr, rel_tol=0, abs_tol=LEARNING_RATE * self._initial_lr):
            raise GradientMismatch(
                GradientReport((), problem=f"scheduler: lr is {self.optimizer.lr!r}, torch's is {torch_lr!r}")
            )

    def anchor(self) -> None:
        """Start from our parameters, and from our momentum if steps went by that were not compared."""
        if self._compared_steps == self.optimizer.num_steps:
            return  # the copy at the end of `compare` still holds
        np.copyto(self.twin.param, self.optimizer.model.param_arena)
        self._scale = np.array([np.abs(p.numpy(force=True)).max(initial=0) for p in self.twin.parameters.values()])
        if self.optimizer.velocity is not None:
            velocity = vars(carve(self.optimizer.velocity.copy(), self.optimizer.model.parameter_shapes()))
            for name, parameter in self.twin.parameters.items():
                self.torch_optimizer.state[parameter]["momentum_buffer"] = torch.from_numpy(velocity[name])

    def compare(self, plan: list[Quantity]) -> tuple[Array, Array]:
        """Let torch step on the gradients that its parameters hold. The worst difference of each, and its scale.

        The scale is the largest magnitude that the parameter had before or has after the step: one that lands near
        zero carries the rounding errors of where it came from. Raises GradientMismatch.
        """
        model, parameters = self.optimizer.model, self.twin.parameters
        self.torch_optimizer.param_groups[0]["lr"] = self.optimizer.lr
        self.torch_optimizer.step()
        ours, references = list(model.state_dict().values()), [p.detach() for p in parameters.values()]
        absolute, scale_after = worst_differences(ours, references)
        scale = np.maximum(self._scale, scale_after)
        if not np.all(absolute <= np.array([q.tolerance for q in plan]) * scale):
            raise GradientMismatch(GradientReport(_in_full(plan, ours, references, scale)))
        torch.from_numpy(self.twin.param).copy_(torch.from_numpy(model.param_arena))
        self._scale, self._compared_steps = scale_after, self.optimizer.num_steps
        return absolute, scale


def _in_full(
    plan: list[Quantity], ours: list[Array], references: list[torch.Tensor], scale: Array
) -> tuple[Comparison, ...]:
    return tuple(
        compare(quantity, array, reference, float(largest))
        for quantity, array, reference, largest in zip(plan, ours, references, scale, strict=True)
    )
