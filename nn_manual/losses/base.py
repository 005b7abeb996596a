"""The contract that every loss keeps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from nn_manual.arrays import Array


class Loss(ABC):
    """A scalar function of (prediction, target); the gradient of the loss with respect to itself is 1.

    Concrete losses are dataclasses whose fields are keyword arguments of the torch.nn class of the same name. A
    loss that torch doesn't have defines `reference(prediction, target)`, its formula in operators that torch
    tensors have too.
    """

    reduction: str

    @abstractmethod
    def forward(self, prediction: Array, target: Array) -> tuple[Any, Any]:
        """`value, saved`: the scalar loss in the prediction's dtype, and exactly what `backward` needs."""

    @abstractmethod
    def backward(self, saved: Any) -> Array:
        """grad_prediction, shaped as the prediction."""

    @classmethod
    def examples(cls) -> list[Loss]:
        """Losses of this class with different settings, on which the catalogue checks the class."""
        return [cls()]


def check_reduction(reduction: str) -> None:
    """Raise ValueError unless `reduction` is mean or sum."""
    if reduction not in ("mean", "sum"):
        raise ValueError(f"reduction must be mean or sum, not {reduction!r}")
