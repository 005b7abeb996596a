"""Adam and AdamW: steps of about the size lr, whatever the scale of the gradient."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nn_manual.arrays import Array
from nn_manual.optim.base import Optimizer
from nn_manual.optim.checked_settings import check_at_least_0, check_betas


@dataclass(eq=False)
class _Moments(Optimizer):
    """Adam and AdamW without their weight decay. Adam's docstring has the formulas."""

    lr: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0
    amsgrad: bool = False
    maximize: bool = False

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """Each setting alone, betas of 0, which have no memory, with a large eps, and all settings together."""
        return [
            {},
            {"betas": (0.5, 0.9)},
            {"betas": (0.0, 0.0), "eps": 0.5},
            {"weight_decay": 0.1},
            {"amsgrad": True, "betas": (0.9, 0.5)},
            {"maximize": True, "betas": (0.8, 0.9), "eps": 0.01, "weight_decay": 0.01, "amsgrad": True},
        ]

    def check_settings(self) -> None:
        """Raise ValueError outside torch's ranges."""
        check_at_least_0(self, "lr", "eps", "weight_decay")
        check_betas(self.betas)

    def vector_names(self) -> list[str]:
        """exp_avg and exp_avg_sq; with amsgrad, max_exp_avg_sq too."""
        return ["exp_avg", "exp_avg_sq", *(["max_exp_avg_sq"] if self.amsgrad else [])]

    def coefficients(self, step: int) -> dict[str, float]:
        """step_size and eps contain the corrections of the moments, as the last line of Adam's docstring has them."""
        beta1, beta2 = self.betas
        correction = math.sqrt(1 - beta2**step)
        return {
            "decay": self.decay_factor(),
            "keep": beta1,
            "add": 1 - beta1,
            "keep_sq": beta2,
            "add_sq": 1 - beta2,
            "eps": self.eps * correction,
            "step_size": self.lr * correction / (1 - beta1**step),
        }

    @abstractmethod
    def decay_factor(self) -> float:
        """The factor that `decay` multiplies the parameters by."""

    @abstractmethod
    def decay(self, direction: Array, factor: Array, *, param: Array) -> Array:
        """The direction with weight decay; or the direction itself, after `param` was decayed in place."""

    def move(
        self, param: Array, grad: Array, vectors: Mapping[str, Array], coefficients: Mapping[str, Array]
    ) -> None:
        """The formulas, on one block."""
        direction = -grad if self.maximize else grad
        if self.weight_decay:
            direction = self.decay(direction, coefficients["decay"], param=param)
        exp_avg, exp_avg_sq = vectors["exp_avg"], vectors["exp_avg_sq"]
        exp_avg *= coefficients["keep"]
        exp_avg += coefficients["add"] * direction
        exp_avg_sq *= coefficients["keep_sq"]
        exp_avg_sq += coefficients["add_sq"] * direction * direction
        if self.amsgrad:
            np.maximum(vectors["max_exp_avg_sq"], exp_avg_sq, out=vectors["max_exp_avg_sq"])
            exp_avg_sq = vectors["max_exp_avg_sq"]
        param -= coefficients["step_size"] * exp_avg / (np.sqrt(exp_avg_sq) + coefficients["eps"])


@dataclass(eq=False)
class Adam(_Moments):
    """Adam (Kingma and Ba, 2015), as torch.optim.Adam.

        direction      = -grad if maximize else grad
        direction      = direction + weight_decay * param
        exp_avg        = beta1 * exp_avg + (1 - beta1) * direction
        exp_avg_sq     = beta2 * exp_avg_sq + (1 - beta2) * direction**2
        mean           = exp_avg / (1 - beta1**step)
        mean_sq        = exp_avg_sq / (1 - beta2**step)
        max_exp_avg_sq = maximum(max_exp_avg_sq, exp_avg_sq)
        mean_sq        = max_exp_avg_sq / (1 - beta2**step)
        param          = param - lr * mean / (sqrt(mean_sq) + eps)

    Steps are counted from 1. Why the corrections: exp_avg starts as 0, so after `step` steps it is the sum of
    (1 - beta1) * beta1**(step - i) * direction_i, and these weights add up to 1 - beta1**step. Divided by this, exp_avg
    is a weighted mean of the directions. The same holds for exp_avg_sq.

    The lines with max_exp_avg_sq apply with amsgrad (Reddi et al., 2018): but for its correction, the divisor never
    falls, as in torch.

    The order of section 2 of the paper needs fewer passes. With c = sqrt(1 - beta2**step), numerator and denominator
    are multiplied by c:

        param = param - (lr * c / (1 - beta1**step)) * exp_avg / (sqrt(exp_avg_sq) + eps * c)

    Raises ValueError for values out of range.
    """

    def decay_factor(self) -> float:
        """weight_decay."""
        return self.weight_decay

    def decay(self, direction: Array, factor: Array, *, param: Array) -> Array:
        """L2 regularization: the gradient of weight_decay * sum(param**2) / 2 is added."""
        decayed: Array = direction + factor * param
        return decayed


@dataclass(eq=False)
class AdamW(_Moments):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019), as torch.optim.AdamW.

        param = param - lr * weight_decay * param

    and then Adam's formulas without their line of weight_decay. In Adam the decay goes through the moments, so
    parameters with large gradients decay less. Here all parameters decay at the same rate. Raises ValueError for values
    out of range.
    """

    weight_decay: float = 1e-2

    def decay_factor(self) -> float:
        """1 - lr * weight_decay."""
        return 1 - self.lr * self.weight_decay

    def decay(self, direction: Array, factor: Array, *, param: Array) -> Array:
        """Decay the parameters in place; return the direction unchanged."""
        param *= factor
        return direction
