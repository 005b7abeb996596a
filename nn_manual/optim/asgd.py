"""ASGD: gradient descent that also keeps the average of the parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nn_manual.arrays import Array
from nn_manual.optim.checked_settings import check_at_least_0
from nn_manual.optim.l2 import WithL2


@dataclass(eq=False)
class ASGD(WithL2):
    """Averaged stochastic gradient descent (Polyak and Juditsky, 1992), as torch.optim.ASGD.

        direction = -grad if maximize else grad
        direction = direction + weight_decay * param
        eta       = lr if step == 1 else eta
        param     = param - lambd * eta * param - eta * direction
        mu        = 1 / maximum(1, step - 1 - t0)
        ax        = ax + mu * (param - ax)
        eta       = lr / (1 + lambd * lr * step)**alpha

    Steps are counted from 1. ax, in the state, follows the parameters until t0 steps were made, and is their mean from
    then on: the model itself never takes it. Why a mean: with a lr that falls slowly, the parameters end up near the
    best ones and move around there; their mean lies closer.

    eta is made at the end of a step, for the next one: where a schedule moves the lr, the step follows one step later,
    as in torch. So it is state, and a vector, whose elements are all alike; torch keeps it as one number, in float32
    unless torch's default dtype is float64. Raises ValueError for values out of range.
    """

    lr: float = 1e-2
    lambd: float = 1e-4
    alpha: float = 0.75
    t0: float = 1e6
    weight_decay: float = 0.0
    maximize: bool = False

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """An average from the first steps on, each other setting alone, and all settings together."""
        return [
            {},
            {"t0": 1.0},
            {"lambd": 0.5, "alpha": 0.5},
            {"weight_decay": 0.1, "t0": 0.0},
            {"maximize": True, "lambd": 0.1, "alpha": 1.0, "t0": 0.5, "weight_decay": 0.01},
        ]

    def check_settings(self) -> None:
        """Raise ValueError for values below 0: in torch, lambd, alpha and t0 may be."""
        check_at_least_0(self, "lr", "lambd", "alpha", "t0", "weight_decay")

    def vector_names(self) -> list[str]:
        """eta and ax."""
        return ["eta", "ax"]

    def coefficients(self, step: int) -> dict[str, float]:
        """The numbers of a step. A state begins with zeros: the first step adds the lr that eta begins with."""
        add = 1 / max(1, step - 1 - self.t0)
        return {
            "initial": self.lr * (step == 1),
            "weight_decay": self.weight_decay,
            "lambd": self.lambd,
            "keep": 1 - add,
            "add": add,
            "next_eta": self.lr / (1 + self.lambd * self.lr * step) ** self.alpha,
        }

    def move(
        self, param: Array, grad: Array, vectors: Mapping[str, Array], coefficients: Mapping[str, Array]
    ) -> None:
        """The formulas, on one block."""
        direction = self.direction(param, grad, coefficients)
        eta, ax = vectors["eta"], vectors["ax"]
        eta += coefficients["initial"]
        param *= 1 - coefficients["lambd"] * eta
        param -= eta * direction
        ax *= coefficients["keep"]
        ax += coefficients["add"] * param
        eta[...] = coefficients["next_eta"]

    def reference(
        self, param: Any, grad: Any, vectors: Mapping[str, Any], step: int
    ) -> tuple[Any, dict[str, Any]]:
        """The formulas as they stand above, on torch tensors: torch's class keeps eta as one number, in another shape.
        """
        direction = -grad if self.maximize else grad
        direction = direction + self.weight_decay * param
        eta = vectors["eta"] if step > 1 else param.new_full(param.shape, self.lr)
        moved = param - self.lambd * eta * param - eta * direction
        ax = vectors["ax"].lerp(moved, 1 / max(1, step - 1 - self.t0))
        next_eta = self.lr / (1 + self.lambd * self.lr * step) ** self.alpha
        return moved, {"eta": param.new_full(param.shape, next_eta), "ax": ax}
