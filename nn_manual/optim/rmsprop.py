"""RMSprop: gradients divided by a running root of their mean square."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nn_manual.arrays import Array
from nn_manual.optim.checked_settings import check_at_least_0
from nn_manual.optim.l2 import WithL2


@dataclass(eq=False)
class RMSprop(WithL2):
    """RMSprop (Tieleman and Hinton, 2012), as torch.optim.RMSprop.

        direction       = -grad if maximize else grad
        direction       = direction + weight_decay * param
        square_avg      = alpha * square_avg + (1 - alpha) * direction**2
        variance        = square_avg
        grad_avg        = alpha * grad_avg + (1 - alpha) * direction
        variance        = maximum(square_avg - grad_avg**2, 0)
        scaled          = direction / (sqrt(variance) + eps)
        momentum_buffer = momentum * momentum_buffer + scaled
        scaled          = momentum_buffer
        param           = param - lr * scaled

    The lines with grad_avg apply if centered, those with momentum_buffer if momentum is not 0. Why centered (Graves,
    2013): E[(g - E[g])**2] = E[g**2] - E[g]**2. Where the gradient hardly changes, this difference is rounding, and may
    be below 0: then it counts as 0, where torch has NaN. Raises ValueError for values out of range.
    """

    lr: float = 1e-2
    alpha: float = 0.99
    eps: float = 1e-8
    weight_decay: float = 0.0
    momentum: float = 0.0
    centered: bool = False
    maximize: bool = False

    settles_at: ClassVar[float] = 1

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """Each setting alone, and all settings together."""
        return [
            {},
            {"alpha": 0.5, "eps": 0.1},
            {"momentum": 0.9},
            {"centered": True, "eps": 0.01},
            {"weight_decay": 0.1, "alpha": 0.9},
            {"maximize": True, "momentum": 0.5, "centered": True, "weight_decay": 0.01, "alpha": 0.8, "eps": 0.1},
        ]

    def check_settings(self) -> None:
        """Raise ValueError outside torch's ranges."""
        check_at_least_0(self, "lr", "alpha", "eps", "weight_decay", "momentum")

    def vector_names(self) -> list[str]:
        """square_avg; momentum_buffer if momentum is not 0, and grad_avg if centered."""
        of_momentum = ["momentum_buffer"] if self.momentum else []
        return ["square_avg", *of_momentum, *(["grad_avg"] if self.centered else [])]

    def coefficients(self, step: int) -> dict[str, float]:  # noqa: ARG002 - the same in each step
        """The numbers of each step."""
        return {
            "lr": self.lr,
            "weight_decay": self.weight_decay,
            "keep": self.alpha,
            "add": 1 - self.alpha,
            "eps": self.eps,
            "momentum": self.momentum,
        }

    def move(
        self, param: Array, grad: Array, vectors: Mapping[str, Array], coefficients: Mapping[str, Array]
    ) -> None:
        """The formulas, on one block."""
        direction = self.direction(param, grad, coefficients)
        square_avg = vectors["square_avg"]
        square_avg *= coefficients["keep"]
        square_avg += coefficients["add"] * direction * direction
        variance = square_avg
        if self.centered:
            grad_avg = vectors["grad_avg"]
            grad_avg *= coefficients["keep"]
            grad_avg += coefficients["add"] * direction
            variance = np.maximum(square_avg - grad_avg * grad_avg, 0)
        scaled = direction / (np.sqrt(variance) + coefficients["eps"])
        if self.momentum:
            momentum_buffer = vectors["momentum_buffer"]
            momentum_buffer *= coefficients["momentum"]
            momentum_buffer += scaled
            scaled = momentum_buffer
        param -= coefficients["lr"] * scaled

    def reference(
        self, param: Any, grad: Any, vectors: Mapping[str, Any], step: int  # noqa: ARG002 - all steps are alike
    ) -> tuple[Any, dict[str, Any]]:
        """The formulas as they stand above, on torch tensors: torch's class takes the root of a negative difference."""
        direction = -grad if self.maximize else grad
        direction = direction + self.weight_decay * param
        made = {"square_avg": self.alpha * vectors["square_avg"] + (1 - self.alpha) * direction.square()}
        variance = made["square_avg"]
        if self.centered:
            made["grad_avg"] = vectors["grad_avg"].lerp(direction, 1 - self.alpha)
            variance = (variance - made["grad_avg"].square()).clamp(min=0)
        scaled = direction / (variance.sqrt() + self.eps)
        if self.momentum:
            scaled = made["momentum_buffer"] = self.momentum * vectors["momentum_buffer"] + scaled
        return param - self.lr * scaled, made
