"""Adamax and RAdam: relatives of Adam."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nn_manual.arrays import Array
from nn_manual.optim.checked_settings import check_at_least_0, check_betas
from nn_manual.optim.l2 import WithEitherDecay, WithL2


@dataclass(eq=False)
class Adamax(WithL2):
    """Adamax (Kingma and Ba, 2015), as torch.optim.Adamax.

        direction = -grad if maximize else grad
        direction = direction + weight_decay * param
        exp_avg   = beta1 * exp_avg + (1 - beta1) * direction
        exp_inf   = maximum(beta2 * exp_inf, abs(direction) + eps)
        param     = param - lr / (1 - beta1**step) * exp_avg / exp_inf

    Steps are counted from 1. Adam divides by a root of a mean of squares; with powers p and roots of order p, for p to
    infinity, the mean becomes a maximum. It needs no correction: it doesn't begin too small.
    Raises ValueError for values out of range.
    """

    lr: float = 2e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0
    maximize: bool = False

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """Each setting alone, betas of 0, which have no memory, and all settings together."""
        return [
            {},
            {"betas": (0.5, 0.9)},
            {"betas": (0.0, 0.0), "eps": 0.5},
            {"weight_decay": 0.1},
            {"maximize": True, "betas": (0.8, 0.7), "eps": 0.01, "weight_decay": 0.01},
        ]

    def check_settings(self) -> None:
        """Raise ValueError outside torch's ranges."""
        check_at_least_0(self, "lr", "eps", "weight_decay")
        check_betas(self.betas)

    def vector_names(self) -> list[str]:
        """exp_avg and exp_inf."""
        return ["exp_avg", "exp_inf"]

    def coefficients(self, step: int) -> dict[str, float]:
        """The numbers of a step; step_size contains the correction of exp_avg."""
        beta1, beta2 = self.betas
        return {
            "weight_decay": self.weight_decay,
            "keep": beta1,
            "add": 1 - beta1,
            "keep_inf": beta2,
            "eps": self.eps,
            "step_size": self.lr / (1 - beta1**step),
        }

    def move(
        self, param: Array, grad: Array, vectors: Mapping[str, Array], coefficients: Mapping[str, Array]
    ) -> None:
        """The formulas, on one block."""
        direction = self.direction(param, grad, coefficients)
        exp_avg, exp_inf = vectors["exp_avg"], vectors["exp_inf"]
        exp_avg *= coefficients["keep"]
        exp_avg += coefficients["add"] * direction
        exp_inf *= coefficients["keep_inf"]
        np.maximum(exp_inf, np.abs(direction) + coefficients["eps"], out=exp_inf)
        param -= coefficients["step_size"] * exp_avg / exp_inf


@dataclass(eq=False)
class RAdam(WithEitherDecay):
    """Rectified Adam (Liu et al., 2020), as torch.optim.RAdam.

        direction  = -grad if maximize else grad
        direction  = direction if decoupled_weight_decay else direction + weight_decay * param
        param      = param - lr * weight_decay * param if decoupled_weight_decay else param
        exp_avg    = beta1 * exp_avg + (1 - beta1) * direction
        exp_avg_sq = beta2 * exp_avg_sq + (1 - beta2) * direction**2
        mean       = exp_avg / (1 - beta1**step)
        root       = sqrt(1 - beta2**step)
        most       = 2 / (1 - beta2) - 1
        known      = most - 2 * step * beta2**step / (1 - beta2**step)
        rectified  = sqrt((known - 4) * (known - 2) * most / ((most - 4) * (most - 2) * known))
        scale      = rectified * root / (sqrt(exp_avg_sq) + eps) if known > 5 else 1
        param      = param - lr * mean * scale

    Steps are counted from 1. Why: `known` is how many gradients exp_avg_sq is the mean of, as far as its variance
    shows. From few it says little: up to 5, the step isn't scaled by it, and then by so much less as its variance is
    larger than at the end.
    Raises ValueError for values out of range.
    """

    lr: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0
    decoupled_weight_decay: bool = False
    maximize: bool = False

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """Steps before and after the sixth; betas that are never rectified, and soon; both weight decays; maximize
        with each.
        """
        return [
            {},
            {"betas": (0.5, 0.9)},
            {"betas": (0.0, 0.0), "eps": 0.5},
            {"betas": (0.9, 0.99), "weight_decay": 0.1},
            {"betas": (0.8, 0.9), "weight_decay": 0.1, "decoupled_weight_decay": True},
            {"maximize": True, "betas": (0.8, 0.95), "eps": 0.01, "weight_decay": 0.01},
            {"maximize": True, "weight_decay": 0.1, "decoupled_weight_decay": True},
        ]

    def check_settings(self) -> None:
        """Raise ValueError outside torch's ranges."""
        check_at_least_0(self, "lr", "eps", "weight_decay")
        check_betas(self.betas)

    def vector_names(self) -> list[str]:
        """exp_avg and exp_avg_sq."""
        return ["exp_avg", "exp_avg_sq"]

    def coefficients(self, step: int) -> dict[str, float]:
        """The numbers of a step: one of `adaptive` and `plain` is 0."""
        beta1, beta2 = self.betas
        rest = 1 - beta2**step
        most = 2 / (1 - beta2) - 1
        known = most - 2 * step * beta2**step / rest
        is_known = known > 5
        above = (known - 4) * (known - 2) * most
        below = (most - 4) * (most - 2) * known
        squared = is_known * above / (is_known * below + 1 - is_known)  # 0 / 1 where it isn't
        step_size = self.lr / (1 - beta1**step)
        return {
            "weight_decay": self.weight_decay,
            "decay": 1 - self.lr * self.weight_decay,
            "keep": beta1,
            "add": 1 - beta1,
            "keep_sq": beta2,
            "add_sq": 1 - beta2,
            "eps": self.eps,
            "adaptive": step_size * math.sqrt(squared * rest),
            "plain": step_size * (1 - is_known),
        }

    def move(
        self, param: Array, grad: Array, vectors: Mapping[str, Array], coefficients: Mapping[str, Array]
    ) -> None:
        """The formulas, on one block."""
        direction = self.direction(param, grad, coefficients)
        exp_avg, exp_avg_sq = vectors["exp_avg"], vectors["exp_avg_sq"]
        exp_avg *= coefficients["keep"]
        exp_avg += coefficients["add"] * direction
        exp_avg_sq *= coefficients["keep_sq"]
        exp_avg_sq += coefficients["add_sq"] * direction * direction
        scale = coefficients["adaptive"] / (np.sqrt(exp_avg_sq) + coefficients["eps"]) + coefficients["plain"]
        param -= exp_avg * scale
