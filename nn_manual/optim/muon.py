"""Muon: steps along the orthogonal matrix that is nearest to the momentum."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.optim.base import Optimizer
from nn_manual.optim.checked_settings import check_at_least_0
from nn_manual.optim.scheduler_base import check_count


@dataclass(eq=False)
class Muon(Optimizer):
    """Momentum, orthogonalized in the parameters' dtype (Jordan et al., 2024), where torch.optim.Muon has bfloat16.

        momentum_buffer = momentum * momentum_buffer + (1 - momentum) * grad
        direction       = (1 - momentum) * grad + momentum * momentum_buffer  if nesterov  else  momentum_buffer
        orthogonal      = direction / max(norm(direction), eps)
        orthogonal      = a * orthogonal + (b * gram + c * gram @ gram) @ orthogonal    ns_steps times
        param           = param - lr * weight_decay * param - lr * ratio * orthogonal

    The fourth line is a Newton-Schulz iteration. The settings are torch.optim.Muon's. Each parameter must be a matrix,
    (rows, columns), and is one block of the formula. norm is the root of the sum of squares, a, b, c are
    ns_coefficients, and gram = orthogonal @ orthogonal.T. A matrix with more rows than columns is iterated as its
    transpose, so that gram is the smaller of the two products.

        ratio = sqrt(max(1, rows / columns))      if adjust_lr_fn is original or null
        ratio = 0.2 * sqrt(max(rows, columns))    if adjust_lr_fn is match_rms_adamw

    Why this orthogonalizes: let direction = U S V^T be its singular value decomposition. Then
    gram = U S^2 U^T, and one iteration gives U (a S + b S^3 + c S^5) V^T. It leaves U and V alone, and moves each
    singular value along p(s) = a s + b s^3 + c s^5, which brings all of (0, 1] close to 1 within a few steps. So the
    step has about the same size in each direction, U V^T, whatever the gradient's singular values were.

    torch.optim.Muon iterates in bfloat16, with some 3 digits, whatever the parameters' dtype. This one iterates in the
    parameters' dtype: `reference`, which moves the singular values themselves, is what the check compares it with. Each
    iteration makes a small singular value some 3.4 times larger, also one that is 0 but for rounding. After 25
    iterations it is close to 1, in a direction that is rounding alone: the check of a float64 step calls that wrong.

    Raises ValueError for values out of range, and for a parameter that isn't a matrix.
    """

    lr: float = 1e-3
    weight_decay: float = 0.1
    momentum: float = 0.95
    nesterov: bool = True
    ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315)
    eps: float = 1e-7
    ns_steps: int = 5
    adjust_lr_fn: Literal["original", "match_rms_adamw"] | None = None

    settles_at: ClassVar[float] = 1
    num_dims: ClassVar[int | None] = 2
    is_elementwise: ClassVar[bool] = False

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """Both directions, both ratios, one iteration with other coefficients, norms below eps, and all together."""
        return [
            {},
            {"nesterov": False, "momentum": 0.5},
            {"adjust_lr_fn": "match_rms_adamw", "weight_decay": 0.0},
            {"ns_steps": 1, "ns_coefficients": (1.5, -0.5, 0.0)},
            {"eps": 100.0, "ns_steps": 2, "momentum": 0.0},
            {"eps": 100.0, "nesterov": False},
            {"ns_steps": 3, "ns_coefficients": (2.0, -1.5, 0.5), "eps": 0.5, "weight_decay": 0.5, "momentum": 0.8},
        ]

    def check_settings(self) -> None:
        """Raise ValueError outside torch's ranges."""
        check_at_least_0(self, "lr", "weight_decay", "momentum")
        if not math.isfinite(self.momentum):  # the first step multiplies it by 0
            raise ValueError(f"momentum must be finite, not {self.momentum}")
        if not self.eps > 0:
            raise ValueError(f"eps must be above 0, not {self.eps}: a gradient of 0 is divided by it")
        check_count("ns_steps", self.ns_steps, least=0)
        if not self.ns_steps < 100:
            raise ValueError(f"ns_steps must be below 100, not {self.ns_steps}")
        if self.adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"adjust_lr_fn must be original, match_rms_adamw or null, not {self.adjust_lr_fn}")

    def vector_names(self) -> list[str]:
        """momentum_buffer."""
        return ["momentum_buffer"]

    def coefficients(self, step: int) -> dict[str, float]:  # noqa: ARG002 - the contract's signature
        """The numbers of a step, which are the same in all steps."""
        a, b, c = self.ns_coefficients
        return {
            "lr": self.lr,
            "keep": self.momentum,
            "add": 1 - self.momentum,
            "decay": 1 - self.lr * self.weight_decay,
            "eps": self.eps,
            "a": a,
            "b": b,
            "c": c,
        }

    def move(
        self, param: Array, grad: Array, vectors: Mapping[str, Array], coefficients: Mapping[str, Array]
    ) -> None:
        """The formulas, on one matrix."""
        momentum_buffer = vectors["momentum_buffer"]
        momentum_buffer *= coefficients["keep"]
        momentum_buffer += coefficients["add"] * grad
        direction = momentum_buffer
        if self.nesterov:
            direction = coefficients["add"] * grad + coefficients["keep"] * momentum_buffer
        is_tall = param.shape[0] > param.shape[1]
        orthogonal = direction.T if is_tall else direction
        norm = np.sqrt(np.sum(direction * direction))
        orthogonal = orthogonal / np.maximum(norm, coefficients["eps"])
        for _ in range(self.ns_steps):
            gram = orthogonal @ orthogonal.T
            polynomial = coefficients["b"] * gram + coefficients["c"] * (gram @ gram)
            orthogonal = coefficients["a"] * orthogonal + polynomial @ orthogonal
        if self.weight_decay:
            param *= coefficients["decay"]
        param -= coefficients["lr"] * self._ratio(param.shape) * (orthogonal.T if is_tall else orthogonal)

    def reference(
        self, param: Any, grad: Any, vectors: Mapping[str, Any], step: int  # noqa: ARG002 - the contract's signature
    ) -> tuple[Any, dict[str, Any]]:
        """The same by a singular value decomposition: the iteration moves the singular values alone. It shares no line
        with `move`, or a mistake in that line would be in both.
        """
        momentum_buffer = self.momentum * vectors["momentum_buffer"] + (1 - self.momentum) * grad
        direction = (1 - self.momentum) * grad + self.momentum * momentum_buffer if self.nesterov else momentum_buffer
        left, values, right = (direction / direction.norm().clamp(min=self.eps)).svd()
        a, b, c = self.ns_coefficients
        for _ in range(self.ns_steps):
            values = a * values + b * values**3 + c * values**5
        orthogonal = left * values @ right.T
        rows, columns = param.shape
        ratio = max(1, rows / columns) ** 0.5
        if self.adjust_lr_fn == "match_rms_adamw":
            ratio = 0.2 * max(rows, columns) ** 0.5
        moved = param - self.lr * self.weight_decay * param - self.lr * ratio * orthogonal
        return moved, {"momentum_buffer": momentum_buffer}

    def _ratio(self, shape: Shape) -> float:
        """The factor of lr that makes steps of matrices of all shapes about equally large."""
        rows, columns = shape
        if self.adjust_lr_fn == "match_rms_adamw":
            return 0.2 * math.sqrt(max(rows, columns))
        return math.sqrt(max(1, rows / columns))
