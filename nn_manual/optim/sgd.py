"""Stochastic gradient descent."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from nn_manual.arrays import Array
from nn_manual.optim.checked_settings import check_at_least_0
from nn_manual.optim.l2 import WithL2


@dataclass(eq=False)
class SGD(WithL2):
    """Stochastic gradient descent with momentum, as torch.optim.SGD.

        direction       = -grad if maximize else grad
        direction       = direction + weight_decay * param
        momentum_buffer = direction if step == 1 else momentum * momentum_buffer + (1 - dampening) * direction
        direction       = direction + momentum * momentum_buffer if nesterov else momentum_buffer
        param           = param - lr * direction

    The lines with momentum_buffer apply if momentum is not 0. Steps are counted from 1. Source: the algorithm in
    torch.optim.SGD's documentation; nesterov as in Sutskever et al., 2013. Raises ValueError for values out of range.
    """

    lr: float = 1e-3
    momentum: float = 0.0
    dampening: float = 0.0
    weight_decay: float = 0.0
    nesterov: bool = False
    maximize: bool = False

    settles_at: ClassVar[float] = 2  # the first step isn't dampened

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """Momentum alone and with each setting that changes it, weight decay, and all settings together."""
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

    def check_settings(self) -> None:
        """Raise ValueError for a number out of range, and for nesterov without momentum or with dampening."""
        check_at_least_0(self, "lr", "momentum", "weight_decay")
        for name in ("momentum", "dampening"):
            if not math.isfinite(getattr(self, name)):  # the first step multiplies it by 0
                raise ValueError(f"{name} must be finite, not {getattr(self, name)}")
        if self.nesterov and (self.momentum == 0 or self.dampening != 0):
            raise ValueError("nesterov needs a momentum above 0 and a dampening of 0")

    def vector_names(self) -> list[str]:
        """momentum_buffer, if momentum is not 0."""
        return ["momentum_buffer"] if self.momentum else []

    def coefficients(self, step: int) -> dict[str, float]:
        """The numbers of a step. The first step isn't dampened: momentum_buffer is 0, and becomes the direction."""
        return {
            "lr": self.lr,
            "weight_decay": self.weight_decay,
            "momentum": self.momentum,
            "undampened": 1 - self.dampening * (step > 1),
        }

    def move(
        self, param: Array, grad: Array, vectors: Mapping[str, Array], coefficients: Mapping[str, Array]
    ) -> None:
        """The formulas, on one block."""
        direction = self.direction(param, grad, coefficients)
        if self.momentum:
            momentum_buffer = vectors["momentum_buffer"]
            momentum_buffer *= coefficients["momentum"]
            momentum_buffer += coefficients["undampened"] * direction if self.dampening else direction
            direction = direction + coefficients["momentum"] * momentum_buffer if self.nesterov else momentum_buffer
        param -= coefficients["lr"] * direction
