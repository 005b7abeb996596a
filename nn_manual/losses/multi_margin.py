"""The multi-class hinge loss: the right class's score should be above the others' by a margin."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.losses.base import Loss, check_reduction
from nn_manual.losses.class_targets import as_rows, check_labels
from nn_manual.losses.elementwise import check_weights
from nn_manual.messages.text import counted


class Saved(NamedTuple):
    """What backward needs: the prediction's shape, where the right classes are, and what each other one lacks."""

    shape: Shape
    is_label: Array
    lack: Array
    row_weight: Array


@dataclass(eq=False)
class MultiMarginLoss(Loss):
    """Hinge loss of classes, prediction (batch, classes): what each other class's score lacks of a margin.

    The target is class indices, int64 (batch,). The prediction may also be (classes,), with an index without
    dimensions. In the formulas, rows is the number of examples.

        own             = take_along_axis(prediction, target[:, newaxis], axis=1)
        is_label        = arange(classes) == target[:, newaxis]
        lack            = where(is_label, 0, maximum(margin - own + prediction, 0))
        row_weight      = ones(rows) * weight[target]
        term            = row_weight[:, newaxis] * lack**p / classes
        pull            = row_weight[:, newaxis] * p * lack**(p - 1) * (lack > 0) / classes
        loss            = sum(term) / rows                                                  where reduction = mean
        loss            = sum(term)                                                         where reduction = sum
        grad_prediction = (pull - is_label * sum(pull, axis=1, keepdims=True)) / rows       where reduction = mean
        grad_prediction = pull - is_label * sum(pull, axis=1, keepdims=True)                where reduction = sum

    p is 1 or 2. `weight` has one number for each class; None means 1 for each. An example weighs as much as its class,
    and the mean divides by the number of examples, whatever they weigh.

    Derivation: another class's score x_j appears in one term, (margin - x_own + x_j)**p where that is above 0, whose
    derivative is p (margin - x_own + x_j)**(p - 1). The right class's score appears in all of them, with the other
    sign. Where a class lacks exactly nothing, p = 1 has a kink; any slope from 0 to 1 is a subgradient, and torch takes
    0. Raises ValueError for another p, a margin that isn't finite, and weights that are negative or not finite.
    """

    reduction: str = "mean"
    p: int = 1
    margin: float = 1.0
    weight: list[float] | None = None

    def __post_init__(self) -> None:
        check_reduction(self.reduction)
        if self.p not in (1, 2):
            raise ValueError(f"p must be 1 or 2, not {self.p}")
        if not math.isfinite(self.margin):
            raise ValueError(f"margin must be finite, not {self.margin}")
        self.weight = check_weights("weight", self.weight)

    @classmethod
    def examples(cls, num_outputs: int = 5) -> list[Loss]:
        """Both reductions with both p, other margins, of which one is so small that ties lack little, and weights."""
        weight = [(1 + number) / 2 for number in range(num_outputs)]
        return [
            *(cls("mean"), cls("sum", 2), cls("sum", 1, 0.3, weight), cls("mean", 2, 0.5, weight)),
            cls("mean", 1, 1e-9),
        ]

    def check_target(self, prediction: Array, target: Array) -> None:
        """Raise TypeError for a target of another dtype. Raise ValueError for other shapes, if there aren't as many
        weights as classes, and for a label outside 0 ... classes - 1.
        """
        name = type(self).__name__
        if target.dtype != np.int64:
            raise TypeError(f"{name} takes int64 class indices as target, not {target.dtype}")
        if prediction.ndim not in (1, 2) or target.shape != prediction.shape[:-1]:
            raise ValueError(
                f"{name} takes a prediction (batch, classes), and as target indices (batch,), "
                f"not {prediction.shape} and {target.dtype} {target.shape}"
            )
        classes = prediction.shape[-1]
        if not classes:
            raise ValueError(f"{name} takes a prediction of one class at least, not {prediction.shape}")
        if self.weight is not None and len(self.weight) != classes:
            weighted = counted(len(self.weight), "class", "classes")
            raise ValueError(f"{name} has a weight for {weighted}, the prediction {classes}")
        check_labels(name, target, classes)

    def forward(self, prediction: Array, target: Array) -> tuple[Any, Saved]:
        """The scalar loss; saves what each class lacks. The mean over nothing is not a number."""
        rows, label = as_rows(prediction), target.ravel()
        num_rows, num_classes = rows.shape
        is_label = np.arange(num_classes) == label[:, np.newaxis]
        own = rows.take(np.arange(0, num_rows * num_classes, num_classes) + label)[:, np.newaxis]
        lack = np.where(is_label, 0, np.maximum(self.margin - own + rows, 0))
        row_weight = self._row_weight(label, rows.dtype)
        term = row_weight * (lack if self.p == 1 else lack * lack) / num_classes
        saved = Saved(prediction.shape, is_label, lack, row_weight)
        if self.reduction == "mean":
            return (term.sum() / num_rows if num_rows else rows.dtype.type(np.nan)), saved
        return term.sum(), saved

    def backward(self, saved: Saved) -> Array:
        """grad_prediction."""
        shape, is_label, lack, row_weight = saved
        num_rows, num_classes = lack.shape
        slope = (lack > 0).astype(lack.dtype) if self.p == 1 else 2 * lack
        pull = row_weight * slope / (num_classes * num_rows if self.reduction == "mean" else num_classes)
        grad_prediction: Array = np.where(is_label, -pull.sum(axis=1, keepdims=True), pull).reshape(shape)
        return grad_prediction

    def _row_weight(self, label: Array, dtype: np.dtype[Any]) -> Any:
        """What each row weighs, (rows, 1), or the one number of all."""
        if self.weight is None:
            return dtype.type(1)
        return np.array(self.weight, dtype, like=label)[label][:, np.newaxis]
