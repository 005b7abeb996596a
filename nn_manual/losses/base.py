"""The contract that every loss keeps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from nn_manual.arrays import Array


class Loss(ABC):
    """A scalar function of (prediction, target); the gradient of the loss with respect to itself is 1.

    Concrete losses are dataclasses whose fields are keyword arguments of the torch.nn class of the same name. A
    loss that torch doesn't have defines `reference(prediction, target)`, its formula in operators that torch
    tensors have too.

    `forward` and `backward` are formulas: they take it that the target fits and never branch on a value. What refuses
    a target is `check_target`. The trainer and the check call it, once for a data set or for a batch.
    """

    reduction: str

    @abstractmethod
    def forward(self, prediction: Array, target: Array) -> tuple[Any, Any]:
        """`value, saved`: the scalar loss in the prediction's dtype, and exactly what `backward` needs."""

    @abstractmethod
    def backward(self, saved: Any) -> Array:
        """grad_prediction, shaped as the prediction."""

    def check_target(self, prediction: Array, target: Array) -> None:  # noqa: B027 - a loss may take any target
        """Raise ValueError or TypeError, with what is at fault, for a target that doesn't fit the prediction. Of the
        prediction, only the shape and the dtype count.
        """

    def counted(self, target: Array) -> Array:
        """Which elements of the target count, bool, shaped as the target: all, unless the loss ignores some."""
        return np.ones(target.shape, dtype=bool)

    def check_data(self, target: Array, part: str = "data") -> None:
        """Raise ValueError where the target of a whole data set, or of a part of it, has elements, and none counts.
        That of a batch may have none that counts.
        """
        if target.size and not self.counted(target).any():
            raise ValueError(f"{type(self).__name__} ignores every target of the {part}")

    def check_slices(self, target: Array) -> None:  # noqa: B027 - most losses can be put together
        """Raise ValueError where the loss of a batch of such targets may not be that of its slices, put together by
        their denominators.
        """

    def denominator(self, target: Array) -> float:
        """What the loss of several batches is divided by where reduction is mean: with the denominators d of batches
        whose losses are l, the loss of all of them together is sum(d * l) / sum(d). The number of examples, unless the
        loss weighs them.
        """
        return float(len(target)) if target.ndim else 1.0

    def denominators(self, targets: Array) -> list[float]:
        """The `denominator` of each of several batches, which lie one behind the other: (batches, batch, ...)."""
        return [self.denominator(target) for target in targets]

    def has_value(self, denominator: float) -> bool:
        """Whether the loss of a batch with this denominator is a number: a mean over nothing is none."""
        return denominator > 0 or self.reduction != "mean"

    @classmethod
    def examples(cls, num_outputs: int = 5) -> list[Loss]:  # noqa: ARG003 - most losses take any number
        """Losses of this class with different settings, on which the catalogue checks the class. The prediction has
        `num_outputs` columns: that many classes, where the loss has classes.
        """
        return [cls()]


def as_number(loss: Loss, value: Any) -> float:
    """What `forward` of the loss has returned, as a number. Raises TypeError where it is none."""
    try:
        return float(value)
    except TypeError:
        found = f"an array of shape {np.shape(value)}" if isinstance(value, np.ndarray) else type(value).__name__
        raise TypeError(f"{type(loss).__name__}.forward must return one number, not {found}") from None


def check_reduction(reduction: str) -> None:
    """Raise ValueError unless `reduction` is mean or sum."""
    if reduction not in ("mean", "sum"):
        raise ValueError(f"reduction must be mean or sum, not {reduction!r}")
