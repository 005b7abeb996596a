"""Rprop and Lion: the sign of a gradient says where to go, and nothing how far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nn_manual.arrays import Array
from nn_manual.optim.base import Optimizer
from nn_manual.optim.checked_settings import check_at_least_0, check_betas


@dataclass(eq=False)
class Rprop(Optimizer):
    """Resilient backpropagation (Riedmiller and Braun, 1993), as torch.optim.Rprop; for whole batches.

        direction = -grad if maximize else grad
        agreement = direction * prev
        factor    = etaplus where agreement > 0, etaminus where agreement < 0, 1 where it is 0
        step_size = clip(step_size * factor, least, most)
        prev      = 0 where agreement < 0, direction elsewhere
        param     = param - sign(prev) * step_size

    etaminus and etaplus are `etas`, least and most `step_sizes`. At the first step, prev is 0 and step_size lr. Where
    the sign has changed, the last step was too long: the next one is made as if there were no gradient. As in torch,
    the product of two gradients that are too small for the dtype is 0, and says nothing of their signs.
    Raises ValueError for values out of range.
    """

    lr: float = 1e-2
    etas: tuple[float, float] = (0.5, 1.2)
    step_sizes: tuple[float, float] = (1e-6, 50.0)
    maximize: bool = False

    settles_at: ClassVar[float] = 2  # the first step begins with lr

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """Factors that soon reach the bounds, and all settings together."""
        return [
            {},
            {"etas": (0.1, 3.0), "step_sizes": (0.02, 0.5)},
            {"maximize": True, "etas": (0.7, 1.5), "step_sizes": (0.01, 1.0)},
        ]

    def check_settings(self) -> None:
        """Raise ValueError outside torch's ranges."""
        check_at_least_0(self, "lr")
        if not 0 < self.etas[0] < 1 < self.etas[1]:
            raise ValueError(f"etas must be a number between 0 and 1 and one above 1, not {list(self.etas)}")
        if not 0 <= self.step_sizes[0] <= self.step_sizes[1]:
            raise ValueError(f"step_sizes must be two numbers from 0 on, in order, not {list(self.step_sizes)}")

    def vector_names(self) -> list[str]:
        """prev and step_size."""
        return ["prev", "step_size"]

    def coefficients(self, step: int) -> dict[str, float]:
        """The numbers of a step. A state begins with zeros: the first step adds the size that steps begin with."""
        etaminus, etaplus = self.etas
        least, most = self.step_sizes
        return {
            "initial": self.lr * (step == 1),
            "etaminus": etaminus,
            "etaplus": etaplus,
            "least": least,
            "most": most,
        }

    def move(
        self, param: Array, grad: Array, vectors: Mapping[str, Array], coefficients: Mapping[str, Array]
    ) -> None:
        """The formulas, on one block."""
        prev, step_size = vectors["prev"], vectors["step_size"]
        direction = -grad if self.maximize else grad
        agreement = prev * direction
        changed = np.where(agreement < 0, coefficients["etaminus"], 1)
        factor = np.where(agreement > 0, coefficients["etaplus"], changed)
        step_size += coefficients["initial"]
        step_size *= factor
        np.minimum(np.maximum(step_size, coefficients["least"]), coefficients["most"], out=step_size)
        prev[...] = np.where(agreement < 0, 0, direction)
        param -= np.sign(prev) * step_size


@dataclass(eq=False)
class Lion(Optimizer):
    """Lion (Chen et al., 2023): the sign of a momentum, and decoupled weight decay. torch.optim has none.

        direction = -grad if maximize else grad
        param     = param - lr * weight_decay * param
        param     = param - lr * sign(beta1 * exp_avg + (1 - beta1) * direction)
        exp_avg   = beta2 * exp_avg + (1 - beta2) * direction

    The momentum that is moved along remembers less than the one that is kept. Raises ValueError for values out of
    range.
    """

    lr: float = 1e-4
    betas: tuple[float, float] = (0.9, 0.99)
    weight_decay: float = 0.0
    maximize: bool = False

    settles_at: ClassVar[float] = 1

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """Each setting alone, betas of 0, and all settings together."""
        return [
            {},
            {"betas": (0.5, 0.8)},
            {"betas": (0.0, 0.0), "maximize": True},
            {"weight_decay": 0.1},
            {"maximize": True, "betas": (0.8, 0.7), "weight_decay": 0.01},
        ]

    def check_settings(self) -> None:
        """Raise ValueError for values out of range."""
        check_at_least_0(self, "lr", "weight_decay")
        check_betas(self.betas)

    def vector_names(self) -> list[str]:
        """exp_avg."""
        return ["exp_avg"]

    def coefficients(self, step: int) -> dict[str, float]:  # noqa: ARG002 - the same in each step
        """The numbers of each step."""
        beta1, beta2 = self.betas
        return {
            "lr": self.lr,
            "decay": 1 - self.lr * self.weight_decay,
            "moved_keep": beta1,
            "moved_add": 1 - beta1,
            "keep": beta2,
            "add": 1 - beta2,
        }

    def move(
        self, param: Array, grad: Array, vectors: Mapping[str, Array], coefficients: Mapping[str, Array]
    ) -> None:
        """The formulas, on one block."""
        direction = -grad if self.maximize else grad
        exp_avg = vectors["exp_avg"]
        if self.weight_decay:
            param *= coefficients["decay"]
        moved = coefficients["moved_keep"] * exp_avg + coefficients["moved_add"] * direction
        param -= coefficients["lr"] * np.sign(moved)
        exp_avg *= coefficients["keep"]
        exp_avg += coefficients["add"] * direction

    def reference(
        self,
        param: Any,
        grad: Any,
        vectors: Mapping[str, Any],
        step: int,  # noqa: ARG002 - the same in each step
    ) -> tuple[Any, dict[str, Any]]:
        """The definition, on torch tensors."""
        direction = -grad if self.maximize else grad
        beta1, beta2 = self.betas
        exp_avg = vectors["exp_avg"]
        decayed = param * (1 - self.lr * self.weight_decay)
        moved = decayed - self.lr * (beta1 * exp_avg + (1 - beta1) * direction).sign()
        return moved, {"exp_avg": beta2 * exp_avg + (1 - beta2) * direction}
