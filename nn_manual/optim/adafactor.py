"""Adafactor: mean squares of the gradient from those of its rows and columns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nn_manual.arrays import Array, Shape, size_of
from nn_manual.optim.base import Optimizer
from nn_manual.optim.checked_settings import check_at_least_0


@dataclass(eq=False)
class Adafactor(Optimizer):
    """Adafactor (Shazeer and Stern, 2018), as torch.optim.Adafactor.

        direction = -grad if maximize else grad
        add       = step**beta2_decay
        size      = max(eps2, rms(param)) * min(lr, 1 / sqrt(step))
        param     = param - lr * weight_decay * param
        row_var   = row_var + add * (mean(direction**2, last axis) - row_var)
        col_var   = col_var + add * (mean(direction**2, last axis but one) - col_var)
        estimate  = row_var * col_var / max(mean(row_var, last axis but one), eps1)
        update    = direction / sqrt(max(estimate, eps1**2))
        param     = param - size * update / max(1, rms(update) / d)

    Steps are counted from 1. rms is the root of the mean square; eps1 and eps2 are `eps`, and where eps1 is null, it is
    the distance from 1 to the next number of the dtype. Each parameter is one block of the formula. One with several
    dimensions is matrices, of its last two; one with one dimension has no columns: there,

        variance  = variance + add * (direction**2 - variance)
        estimate  = variance

    Why the rows and columns: of all matrices that are a product of a row's and a column's number, row_var * col_var /
    mean(row_var) is closest to the mean squares themselves, in the divergence that counts ratios. A run that keeps its
    state in the shapes of rows and columns saves memory by it; here each is in the first places of a vector of the
    parameters' size, and the others stay 0.

    Raises ValueError for values out of range, and for a parameter without numbers.
    """

    lr: float = 1e-2
    beta2_decay: float = -0.8
    eps: tuple[float | None, float] = (None, 1e-3)
    d: float = 1.0
    weight_decay: float = 0.0
    maximize: bool = False

    is_elementwise: ClassVar[bool] = False

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """Each setting alone; a lr above 1 / sqrt(step); estimates below eps1, updates that are longer than d and
        shorter; all together.
        """
        return [
            {},
            {"lr": 10.0},
            {"beta2_decay": -0.3, "d": 1.5},
            {"eps": (0.5, 2.0)},
            {"eps": (1e-3, 0.0), "weight_decay": 0.1},
            {"d": 100.0, "maximize": True},
            {"maximize": True, "beta2_decay": -0.5, "eps": (0.1, 0.3), "d": 1.2, "weight_decay": 0.01},
        ]

    def check_settings(self) -> None:
        """Raise ValueError outside torch's ranges."""
        check_at_least_0(self, "lr", "weight_decay")
        if not self.beta2_decay <= 0:
            raise ValueError(f"beta2_decay must be at most 0, not {self.beta2_decay}")
        if self.eps[1] is None or not all(each is None or each >= 0 for each in self.eps):
            raise ValueError(f"eps must be null or a number from 0 on, and a number from 0 on, not {list(self.eps)}")
        if not self.d >= 1:
            raise ValueError(f"d must be at least 1, not {self.d}")

    @classmethod
    def misfit(cls, shapes: Mapping[str, Shape]) -> str:
        """A mean over nothing is not a number: torch raises ZeroDivisionError."""
        empty = [name for name, shape in shapes.items() if not size_of(shape)]
        return f"{cls.__name__} moves parameters with one number at least, and {empty[0]} has none" if empty else ""

    @property
    def eps1(self) -> float:
        """The first of `eps`, or the dtype's."""
        return float(np.finfo(self.model.dtype).eps if self.eps[0] is None else self.eps[0])

    @property
    def eps2(self) -> float:
        """The second of `eps`."""
        return float(self.eps[1])

    def vector_names(self) -> list[str]:
        """row_var and col_var of parameters with several dimensions, and variance of the others."""
        return ["row_var", "col_var", "variance"]

    def coefficients(self, step: int) -> dict[str, float]:
        """The numbers of a step; `most` bounds the size of a step, as a share of the parameter's."""
        add = step**self.beta2_decay
        return {
            "keep": 1 - add,
            "add": add,
            "most": min(self.lr, 1 / math.sqrt(step)),
            "decay": 1 - self.lr * self.weight_decay,
            "eps1": self.eps1,
            "eps1_squared": self.eps1**2,
            "eps2": self.eps2,
            "d": self.d,
        }

    def move(
        self, param: Array, grad: Array, vectors: Mapping[str, Array], coefficients: Mapping[str, Array]
    ) -> None:
        """The formulas, on one parameter."""
        direction = -grad if self.maximize else grad
        rms = np.sqrt(np.sum(param * param) / param.size)
        size = np.maximum(rms, coefficients["eps2"]) * coefficients["most"]
        if self.weight_decay:
            param *= coefficients["decay"]
        squares = direction * direction
        if param.ndim > 1:
            row_var, col_var = self.leading(vectors["row_var"], -1), self.leading(vectors["col_var"], -2)
            row_var *= coefficients["keep"]
            row_var += coefficients["add"] * (np.sum(squares, axis=-1, keepdims=True) / param.shape[-1])
            col_var *= coefficients["keep"]
            col_var += coefficients["add"] * (np.sum(squares, axis=-2, keepdims=True) / param.shape[-2])
            mean = np.sum(row_var, axis=-2, keepdims=True) / param.shape[-2]
            estimate = row_var * col_var / np.maximum(mean, coefficients["eps1"])
        else:
            estimate = vectors["variance"]
            estimate *= coefficients["keep"]
            estimate += coefficients["add"] * squares
        update = direction / np.sqrt(np.maximum(estimate, coefficients["eps1_squared"]))
        length = np.sqrt(np.sum(update * update) / param.size)
        param -= size / np.maximum(length / coefficients["d"], 1) * update

    def leading(self, vector: Array, axis: int) -> Array:
        """A view of the first places of a vector in a parameter's shape: as many as there are where this axis is 1."""
        shape = list(vector.shape)
        count = vector.size // shape[axis]
        shape[axis] = 1
        return vector.reshape(-1)[:count].reshape(shape)

    def reference(
        self, param: Any, grad: Any, vectors: Mapping[str, Any], step: int
    ) -> tuple[Any, dict[str, Any]]:
        """The step of torch's class, on torch tensors: its row_var and col_var have shapes of their own. The tensors'
        dtype needn't be the model's.
        """
        eps1 = float(np.finfo(param.numpy().dtype).eps) if self.eps[0] is None else self.eps1
        direction = -grad if self.maximize else grad
        num_elements, add = param.numel(), step**self.beta2_decay
        size = max(self.eps2, float(param.norm()) / num_elements**0.5) * min(self.lr, step**-0.5)
        made = {name: vector.clone() for name, vector in vectors.items()}
        if param.dim() > 1:
            *matrices, rows, columns = param.shape
            row_var = made["row_var"].view(-1)[: num_elements // columns].view(*matrices, rows, 1)
            col_var = made["col_var"].view(-1)[: num_elements // rows].view(*matrices, 1, columns)
            row_var.lerp_(direction.norm(dim=-1, keepdim=True).square() / columns, add)
            col_var.lerp_(direction.norm(dim=-2, keepdim=True).square() / rows, add)
            estimate = row_var @ col_var / row_var.mean(dim=-2, keepdim=True).clamp(min=eps1)
        else:
            estimate = made["variance"].lerp_(direction.square(), add)
        update = direction * estimate.clamp(min=eps1**2).rsqrt()
        length = float(update.norm()) / num_elements**0.5
        moved = param * (1 - self.lr * self.weight_decay) - size / max(1.0, length / self.d) * update
        return moved, made
