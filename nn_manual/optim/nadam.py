"""NAdam: Adam that looks ahead along its momentum."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nn_manual.arrays import Array
from nn_manual.optim.checked_settings import check_at_least_0, check_betas
from nn_manual.optim.l2 import WithEitherDecay


@dataclass(eq=False)
class NAdam(WithEitherDecay):
    """Adam with Nesterov's momentum (Dozat, 2016), as torch.optim.NAdam.

        direction  = -grad if maximize else grad
        direction  = direction if decoupled_weight_decay else direction + weight_decay * param
        param      = param - lr * weight_decay * param if decoupled_weight_decay else param
        mu         = beta1 * (1 - 0.96**(step * momentum_decay) / 2)
        mu_next    = beta1 * (1 - 0.96**((step + 1) * momentum_decay) / 2)
        mu_product = mu if step == 1 else mu_product * mu
        exp_avg    = beta1 * exp_avg + (1 - beta1) * direction
        exp_avg_sq = beta2 * exp_avg_sq + (1 - beta2) * direction**2
        mean       = mu_next * exp_avg / (1 - mu_product * mu_next) + (1 - mu) * direction / (1 - mu_product)
        mean_sq    = exp_avg_sq / (1 - beta2**step)
        param      = param - lr * mean / (sqrt(mean_sq) + eps)

    Steps are counted from 1. Why: Adam moves along the momentum that it had with the share beta1, and along the new
    direction with 1 - beta1. Nesterov's momentum takes the share that the next step will have, mu_next, of a momentum
    that already holds the new direction. The shares begin at about half of beta1 and grow, and what is divided by
    corrects for a momentum that began as 0.

    mu_product is a vector, because a schedule may move beta1: each of its elements is the product of the shares so far.
    torch keeps it as one number, in float32 unless torch's default dtype is float64. Raises ValueError for values out
    of range.
    """

    lr: float = 2e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0
    momentum_decay: float = 4e-3
    decoupled_weight_decay: bool = False
    maximize: bool = False

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """Each setting alone, betas of 0, which have no memory, both weight decays, and all settings together."""
        return [
            {},
            {"betas": (0.5, 0.9), "momentum_decay": 2.0},
            {"betas": (0.0, 0.0), "eps": 0.5},
            {"weight_decay": 0.1},
            {"weight_decay": 0.1, "decoupled_weight_decay": True, "betas": (0.8, 0.7)},
            {"maximize": True, "betas": (0.8, 0.9), "eps": 0.01, "weight_decay": 0.01, "momentum_decay": 0.5},
        ]

    def check_settings(self) -> None:
        """Raise ValueError outside torch's ranges."""
        check_at_least_0(self, "lr", "eps", "weight_decay", "momentum_decay")
        check_betas(self.betas)

    def vector_names(self) -> list[str]:
        """mu_product, exp_avg and exp_avg_sq."""
        return ["mu_product", "exp_avg", "exp_avg_sq"]

    def coefficients(self, step: int) -> dict[str, float]:
        """The numbers of a step. A state begins with zeros: the first step adds the 1 that mu_product begins with.
        step_size and eps contain the correction of exp_avg_sq, as Adam's do.
        """
        beta1, beta2 = self.betas
        mu = beta1 * (1 - 0.96 ** (step * self.momentum_decay) / 2)
        mu_next = beta1 * (1 - 0.96 ** ((step + 1) * self.momentum_decay) / 2)
        correction = math.sqrt(1 - beta2**step)
        return {
            "initial": 1.0 * (step == 1),
            "mu": mu,
            "mu_next": mu_next,
            "weight_decay": self.weight_decay,
            "decay": 1 - self.lr * self.weight_decay,
            "keep": beta1,
            "add": 1 - beta1,
            "keep_sq": beta2,
            "add_sq": 1 - beta2,
            "eps": self.eps * correction,
            "step_size": self.lr * correction,
        }

    def move(
        self, param: Array, grad: Array, vectors: Mapping[str, Array], coefficients: Mapping[str, Array]
    ) -> None:
        """The formulas, on one block."""
        mu_product, exp_avg, exp_avg_sq = vectors["mu_product"], vectors["exp_avg"], vectors["exp_avg_sq"]
        mu, mu_next = coefficients["mu"], coefficients["mu_next"]
        direction = self.direction(param, grad, coefficients)
        mu_product += coefficients["initial"]
        mu_product *= mu
        exp_avg *= coefficients["keep"]
        exp_avg += coefficients["add"] * direction
        exp_avg_sq *= coefficients["keep_sq"]
        exp_avg_sq += coefficients["add_sq"] * direction * direction
        ahead = mu_next / (1 - mu_product * mu_next) * exp_avg
        mean = ahead + (1 - mu) / (1 - mu_product) * direction
        param -= coefficients["step_size"] * mean / (np.sqrt(exp_avg_sq) + coefficients["eps"])

    def reference(
        self, param: Any, grad: Any, vectors: Mapping[str, Any], step: int
    ) -> tuple[Any, dict[str, Any]]:
        """The formulas as they stand above, on torch tensors: torch's class keeps mu_product as one number, in another
        shape.
        """
        beta1, beta2 = self.betas
        direction = -grad if self.maximize else grad
        kept = param
        if self.decoupled_weight_decay:
            kept = param - self.lr * self.weight_decay * param
        else:
            direction = direction + self.weight_decay * param
        mu, mu_next = (beta1 * (1 - 0.96 ** (each * self.momentum_decay) / 2) for each in (step, step + 1))
        mu_product = (vectors["mu_product"] if step > 1 else param.new_ones(param.shape)) * mu
        exp_avg = vectors["exp_avg"].lerp(direction, 1 - beta1)
        exp_avg_sq = beta2 * vectors["exp_avg_sq"] + (1 - beta2) * direction.square()
        mean = mu_next * exp_avg / (1 - mu_product * mu_next) + (1 - mu) * direction / (1 - mu_product)
        moved = kept - self.lr * mean / ((exp_avg_sq / (1 - beta2**step)).sqrt() + self.eps)
        return moved, {"mu_product": mu_product, "exp_avg": exp_avg, "exp_avg_sq": exp_avg_sq}
