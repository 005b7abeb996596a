"""SGD on the two flat vectors of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nn_manual.model import Sequential
from nn_manual.optim.base import Optimizer


@dataclass(eq=False)
class SGD(Optimizer):
    """Stochastic gradient descent with momentum, as torch.optim.SGD.

        direction       = -grad if maximize else grad
        direction       = direction + weight_decay * param
        momentum_buffer = direction                                                 at the first step
        momentum_buffer = momentum * momentum_buffer + (1 - dampening) * direction  at later steps
        direction       = direction + momentum * momentum_buffer  if nesterov  else  momentum_buffer
        param           = param - lr * direction

    (the lines of the momentum_buffer apply where momentum is not 0). Source: the algorithm in torch.optim.SGD's
    documentation; nesterov as in Sutskever et al., 2013. Raises ValueError for values out of range.
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
        self.remember(*(["momentum_buffer"] if self.momentum else []))

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """Momentum with and without each of what changes it, weight decay, and everything at once."""
        return [
            {},
            {"momentum": 0.9},
            {"momentum": 0.9, "dampening": 0.5},
            {"dampening": 0.5},
            {"momentum": 0.9, "nesterov": True},
            {"weight_decay": 0.1},
            {"momentum": 0.9, "weight_decay": 0.1, "nesterov": True},
            {"momentum": 0.5, "dampening": 0.1, "weight_decay": 0.01, "maximize": True},
        ]

    def move(self, block: slice) -> None:
        """The formulas, on one block."""
        param, direction = self.model.param_arena[block], self.model.grad_arena[block]
        if self.maximize:
            direction = -direction
        if self.weight_decay:
            direction = direction + self.weight_decay * param
        if self.momentum:
            momentum_buffer = self.vectors["momentum_buffer"][block]
            if self.num_steps == 0:
                momentum_buffer[...] = direction
            else:
                momentum_buffer *= self.momentum
                momentum_buffer += direction if self.dampening == 0 else (1 - self.dampening) * direction
            direction = direction + self.momentum * momentum_buffer if self.nesterov else momentum_buffer
        param -= self.lr * direction
