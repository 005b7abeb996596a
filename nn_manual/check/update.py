"""The check of clipping and of the optimizer: torch clips our gradients, schedules and steps, and ends where we do.

The gradients themselves have been compared by then. torch takes ours, so that what is left to differ is the formula
of the clipping or of the step, and it is they that are named.
"""

from __future__ import annotations

import math
from typing import NoReturn

import numpy as np
import torch

from nn_manual.arrays import Array, carve
from nn_manual.check.comparison import Arena, Pair, Quantity, compare, within, worst_differences
from nn_manual.check.step.plan import Plan
from nn_manual.check.tolerances import LEARNING_RATE
from nn_manual.check.twin.model import TORCH_DTYPES, Twin
from nn_manual.check.twin.optimizers import SchedulerTwin, sgd_twin
from nn_manual.check.verdict.report import GradientReport
from nn_manual.errors import GradientMismatch, NotFiniteError
from nn_manual.optim import SGD, Scheduler


def compare_clipping(plan: Plan, clipped: Array, gradients: list[Array], max_norm: float) -> tuple[Array, Array]:
    """Have torch clip our `gradients` as they were, and compare with the flat vector `clipped` that ours became: the
    worst difference and its scale. Raises GradientMismatch.
    """
    parameter = torch.zeros(clipped.size, dtype=TORCH_DTYPES[clipped.dtype.name])
    parameter.grad = torch.from_numpy(np.concatenate(gradients, axis=None))
    torch.nn.utils.clip_grad_norm_(parameter, max_norm)
    absolute, scale = worst_differences([clipped], [parameter.grad])
    if not within(absolute, scale, np.array([plan.clipping[0].tolerance])).all():
        _raise_mismatch(plan.clipping, [clipped], [parameter.grad], scale)
    return absolute, scale


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
        model = optimizer.model
        self._arena = Arena(list(vars(model.param).values()))
        for name, grad in vars(model.grad).items():
            twin.parameters[name].grad = torch.from_numpy(grad)  # torch steps on our gradients: it shares them
        self._compared_steps: int | None = None
        #: Of each parameter, the scale of its rounding errors: that of the step, and what the velocity carries on.
        self._scale = self._carried = np.zeros(len(twin.parameters))

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
        all_compared = self._compared_steps == self.optimizer.num_steps
        param = self.optimizer.model.param_arena
        torch.from_numpy(self.twin.param).copy_(torch.from_numpy(param))  # by torch's threads
        self._scale = np.maximum(self._arena.largest_magnitudes(param), self._carried if all_compared else 0)
        if self.optimizer.velocity is not None and not all_compared:
            velocity = vars(carve(self.optimizer.velocity.copy(), self.optimizer.model.parameter_shapes()))
            for name, parameter in self.twin.parameters.items():
                self.torch_optimizer.state[parameter]["momentum_buffer"] = torch.from_numpy(velocity[name])

    def compare(self, plan: Plan) -> tuple[Array, Array]:
        """Let torch step on our gradients. The worst difference of each parameter, and its scale.

        The scale is the largest magnitude that the parameter had before or has after the step: one that lands near
        zero carries the rounding errors of where it came from. Through the velocity it carries those of earlier steps,
        too, of each `momentum` times what it was a step ago. Raises GradientMismatch, or NotFiniteError.
        """
        self.torch_optimizer.param_groups[0]["lr"] = self.optimizer.lr
        self.torch_optimizer.step()
        absolute, scale_after = self._arena.worst_differences(self.optimizer.model.param_arena, self.twin.param)
        scale = np.maximum(self._scale, scale_after)
        if not within(absolute, scale, plan.tolerances[-len(absolute) :]).all():
            ours = list(vars(self.optimizer.model.param).values())
            _raise_mismatch(plan.update, ours, [p.detach() for p in self.twin.parameters.values()], scale)
        self._carried = self.optimizer.momentum * scale
        self._compared_steps = self.optimizer.num_steps
        return absolute, scale


def _raise_mismatch(
    quantities: list[Quantity], ours: list[Array], references: list[torch.Tensor], scale: Array
) -> NoReturn:
    both = [Pair(*pair) for pair in zip(quantities, ours, references, strict=True)]
    for pair in both:
        if not np.isfinite(pair.ours).all():
            raise NotFiniteError(f"{pair.quantity.name} holds a value that is not finite after {pair.quantity.layer}")
    comparisons = tuple(compare(*pair, float(largest)) for pair, largest in zip(both, scale, strict=True))
    raise GradientMismatch(GradientReport(comparisons))
