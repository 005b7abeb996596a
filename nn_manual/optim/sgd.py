"""SGD on the two flat vectors of a model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nn_manual.arrays import Array, blocks
from nn_manual.model import Sequential


@dataclass(eq=False)
class SGD:
    """Stochastic gradient descent with momentum, as torch.optim.SGD.

        direction = -grad if maximize else grad
        direction = direction + weight_decay * param
        velocity  = direction                                               at the first step
        velocity  = momentum * velocity + (1 - dampening) * direction       at later steps
        direction = direction + momentum * velocity  if nesterov  else  velocity
        param     = param - lr * direction

    (the velocity lines only where momentum is not 0). Source: the algorithm in torch.optim.SGD's documentation;
    nesterov as in Sutskever et al., 2013. Every vector is flat, so each line runs once for all parameters, a
    cache-sized block at a time. `lr` may be set between steps. Raises ValueError for values out of range.
    """

    model: Sequential
    lr: float = 1e-3
    momentum: float = 0.0
    dampening: float = 0.0
    weight_decay: float = 0.0
    nesterov: bool = False
    maximize: bool = False

    def __post_init__(self) -> None:
        for name in ("lr", "momentum", "weight_decay"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must be at least 0, not {getattr(self, name)}")
        if self.nesterov and (self.momentum == 0 or self.dampening != 0):
            raise ValueError("nesterov needs a momentum above 0 and a dampening of 0")
        #: The momentum buffer; None before the first step and where momentum is 0.
        self.velocity: Array | None = None
        self.num_steps = 0

    def step(self) -> None:
        """Move the model's parameters once, along its gradients."""
        first = self.momentum != 0 and self.velocity is None
        if first:
            self.velocity = np.zeros_like(self.model.param_arena)
        for block in blocks(self.model.param_arena.size):
            self._step(block, first)
        self.num_steps += 1

    def _step(self, block: slice, first: bool) -> None:
        param, direction = self.model.param_arena[block], self.model.grad_arena[block]
        if self.maximize:
            direction = -direction
        if self.weight_decay:
            direction = direction + self.weight_decay * param
        if self.velocity is not None:
            velocity = self.velocity[block]
            if first:
                velocity[...] = direction
            else:
                velocity *= self.momentum
                velocity += direction if self.dampening == 0 else (1 - self.dampening) * direction
            direction = direction + self.momentum * velocity if self.nesterov else velocity
        param -= self.lr * direction
