"""Adagrad and Adadelta: each parameter has a step of its own, by the squares of its gradients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nn_manual.arrays import Array
from nn_manual.optim.checked_settings import check_at_least_0
from nn_manual.optim.l2 import WithL2


@dataclass(eq=False)
class Adagrad(WithL2):
    """Adagrad (Duchi, Hazan and Singer, 2011), as torch.optim.Adagrad.

        direction = -grad if maximize else grad
        direction = direction + weight_decay * param
        sum       = (initial_accumulator_value if step == 1 else sum) + direction**2
        rate      = lr / (1 + (step - 1) * lr_decay)
        param     = param - rate * direction / (sqrt(sum) + eps)

    Steps are counted from 1. Raises ValueError for values out of range.
    """

    lr: float = 1e-2
    lr_decay: float = 0.0
    weight_decay: float = 0.0
    initial_accumulator_value: float = 0.0
    eps: float = 1e-10
    maximize: bool = False

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """Each setting alone, and all settings together."""
        return [
            {},
            {"lr_decay": 0.1},
            {"initial_accumulator_value": 0.5},
            {"weight_decay": 0.1, "eps": 0.1},
            {"maximize": True, "lr_decay": 0.01, "weight_decay": 0.01, "initial_accumulator_value": 0.1, "eps": 0.01},
        ]

    def check_settings(self) -> None:
        """Raise ValueError outside torch's ranges."""
        check_at_least_0(self, "lr", "lr_decay", "weight_decay", "initial_accumulator_value", "eps")

    def vector_names(self) -> list[str]:
        """sum."""
        return ["sum"]

    def coefficients(self, step: int) -> dict[str, float]:
        """The numbers of a step. A state begins with zeros: the first step adds what sum begins with."""
        return {
            "rate": self.lr / (1 + (step - 1) * self.lr_decay),
            "weight_decay": self.weight_decay,
            "initial": self.initial_accumulator_value * (step == 1),
            "eps": self.eps,
        }

    def move(
        self, param: Array, grad: Array, vectors: Mapping[str, Array], coefficients: Mapping[str, Array]
    ) -> None:
        """The formulas, on one block."""
        direction = self.direction(param, grad, coefficients)
        sum_of_squares = vectors["sum"]
        if self.initial_accumulator_value:
            sum_of_squares += coefficients["initial"]
        sum_of_squares += direction * direction
        param -= coefficients["rate"] * direction / (np.sqrt(sum_of_squares) + coefficients["eps"])


@dataclass(eq=False)
class Adadelta(WithL2):
    """Adadelta (Zeiler, 2012), as torch.optim.Adadelta.

        direction  = -grad if maximize else grad
        direction  = direction + weight_decay * param
        square_avg = rho * square_avg + (1 - rho) * direction**2
        delta      = sqrt(acc_delta + eps) / sqrt(square_avg + eps) * direction
        acc_delta  = rho * acc_delta + (1 - rho) * delta**2
        param      = param - lr * delta

    Why both roots: the step then has the unit of the parameter, whatever the unit of the loss is.
    Raises ValueError for values out of range.
    """

    lr: float = 1.0
    rho: float = 0.9
    eps: float = 1e-6
    weight_decay: float = 0.0
    maximize: bool = False

    settles_at: ClassVar[float] = 1

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """Each setting alone, and all settings together."""
        return [
            {},
            {"rho": 0.5, "eps": 0.01},
            {"weight_decay": 0.1},
            {"maximize": True, "rho": 0.8, "eps": 0.1, "weight_decay": 0.01},
        ]

    def check_settings(self) -> None:
        """Raise ValueError outside torch's ranges."""
        check_at_least_0(self, "lr", "rho", "eps", "weight_decay")
        if not self.rho <= 1:
            raise ValueError(f"rho must be at most 1, not {self.rho}")

    def vector_names(self) -> list[str]:
        """square_avg and acc_delta."""
        return ["square_avg", "acc_delta"]

    def coefficients(self, step: int) -> dict[str, float]:  # noqa: ARG002 - the same in each step
        """The numbers of each step."""
        return {
            "lr": self.lr,
            "weight_decay": self.weight_decay,
            "keep": self.rho,
            "add": 1 - self.rho,
            "eps": self.eps,
        }

    def move(
        self, param: Array, grad: Array, vectors: Mapping[str, Array], coefficients: Mapping[str, Array]
    ) -> None:
        """The formulas, on one block."""
        direction = self.direction(param, grad, coefficients)
        square_avg, acc_delta, eps = vectors["square_avg"], vectors["acc_delta"], coefficients["eps"]
        square_avg *= coefficients["keep"]
        square_avg += coefficients["add"] * direction * direction
        delta = np.sqrt(acc_delta + eps) / np.sqrt(square_avg + eps) * direction
        acc_delta *= coefficients["keep"]
        acc_delta += coefficients["add"] * delta * delta
        param -= coefficients["lr"] * delta
