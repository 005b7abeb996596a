"""Losses of equal shapes: one term for each element, a formula and its derivative, put together by a mean or a sum."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nn_manual.arrays import Array, Shape, size_of
from nn_manual.losses.base import Loss, check_reduction


def check_alike(loss: Loss, prediction: Array, target: Array) -> None:
    """Raise ValueError if the shapes differ, because nothing is broadcast, and TypeError if the dtypes differ."""
    name = type(loss).__name__
    if prediction.shape != target.shape:
        raise ValueError(f"{name} takes equal shapes, not prediction {prediction.shape} and target {target.shape}")
    if prediction.dtype != target.dtype:
        raise TypeError(f"{name} takes equal dtypes, not prediction {prediction.dtype} and target {target.dtype}")


def check_values(loss: Loss, target: Array, fits: Callable[[Array], Array], must: str) -> None:
    """Raise ValueError, which names the first number of a target that doesn't fit, and its place."""
    wrong = ~fits(target)  # NaN among them
    if wrong.any():
        index = tuple(map(int, np.argwhere(wrong)[0]))
        place = f" at index {index if len(index) > 1 else index[0]}" if index else ""
        raise ValueError(f"{type(loss).__name__}: target {target[index]}{place} must be {must}")


def check_weights(name: str, weights: Sequence[float] | None) -> list[float] | None:
    """The numbers of a setting, one for each output, as floats. Raises ValueError unless they are finite and at least
    0.
    """
    if weights is None:
        return None
    if not len(weights):
        raise ValueError(f"{name} must have a number for each output, not none at all")
    for index, weight in enumerate(weights):
        if not 0 <= weight < np.inf:
            raise ValueError(f"{name} must be finite and at least 0, not {weight}, that of output {index}")
    return [float(weight) for weight in weights]


@dataclass(eq=False)
class ElementwiseLoss(Loss):
    """A mean, or a sum, over N terms, one for each element; prediction and target have the same shape.

        loss            = sum(term) / N
        grad_prediction = derivative / N
        grad_target     = derivative_target / N

    `derivative` is that of each term with respect to its prediction. N is 1 for a sum. A loss whose target has a
    gradient writes `backward_target` itself: `divided` divides by N.

    Derivation: term[i] depends on prediction[i] alone, so d loss / d prediction[i] = (d term[i] / d prediction[i]) / N.
    """

    REDUCTIONS: ClassVar[tuple[str, ...]] = ("mean", "sum")

    reduction: str = "mean"

    def __post_init__(self) -> None:
        check_reduction(self.reduction, self.REDUCTIONS)

    @classmethod
    def examples(cls, num_outputs: int = 5) -> list[Loss]:  # noqa: ARG003 - it takes any number
        """Both reductions."""
        return [cls("mean"), cls("sum")]

    @abstractmethod
    def term(self, prediction: Array, target: Array) -> tuple[Array, Any]:
        """`term, saved`: the term of each element, and what `derivative` needs."""

    @abstractmethod
    def derivative(self, saved: Any) -> Array:
        """d term / d prediction, of each element."""

    def num_terms(self, shape: Shape) -> int:
        """N, for a prediction of this shape."""
        return size_of(shape) if self.reduction == "mean" else 1

    def forward(self, prediction: Array, target: Array) -> tuple[Any, Any]:
        """The scalar loss; saves what the derivative needs. The mean over nothing is not a number."""
        term, saved = self.term(prediction, target)
        num_terms = self.num_terms(term.shape)
        return (term.sum() / num_terms if num_terms else term.dtype.type(np.nan)), saved

    def backward(self, saved: Any) -> Array:
        """grad_prediction."""
        return self.divided(self.derivative(saved))

    def divided(self, derivative: Array) -> Array:
        """The derivatives of the terms, divided by N."""
        return derivative / self.num_terms(derivative.shape)

    def check_target(self, prediction: Array, target: Array) -> None:
        """Raise ValueError if the shapes differ, and TypeError if the dtypes differ."""
        check_alike(self, prediction, target)
