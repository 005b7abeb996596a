"""Negative log-likelihood of classes: the loss behind a LogSoftmax."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.losses.base import Loss, check_reduction
from nn_manual.losses.class_targets import OfClasses, as_rows, in_shape


class Saved(NamedTuple):
    """What backward needs: the prediction's shape, its classes, and the label and the weight of each row."""

    shape: Shape
    num_classes: int
    label: Array
    row_weight: Array


@dataclass(eq=False)
class NLLLoss(OfClasses):
    """Minus the log-probability of the right class, prediction (batch, classes, ...).

    The target is class indices, int64 (batch, ...). Each position behind the class axis is a row of its own: in the
    formulas, the prediction is (rows, classes), and the target is (rows,).

        counted         = target != ignore_index
        label           = where(counted, target, 0)
        row_weight      = counted * weight[label]
        given           = row_weight[:, newaxis] * eye(classes)[label]
        total           = sum(row_weight)
        loss            = -sum(given * prediction) / total                       where reduction = mean
        loss            = -sum(given * prediction)                               where reduction = sum
        grad_prediction = -given / (total + (total == 0))                        where reduction = mean
        grad_prediction = -given                                                 where reduction = sum

    The prediction is the logarithm of probabilities, as LogSoftmax gives it: LogSoftmax and NLLLoss are together
    CrossEntropyLoss, which keeps more digits where a prediction is confident. `weight` has one number for each class;
    None means 1 for each. A row whose index is `ignore_index` does not count. If none counts, the mean is not a number,
    and its gradient is 0.

    Derivation: the loss is linear in the prediction, and given holds its coefficients.
    Raises ValueError for weights that are negative, not finite or all 0.
    """

    reduction: str = "mean"
    weight: list[float] | None = None
    ignore_index: int = -100

    def __post_init__(self) -> None:
        check_reduction(self.reduction)
        self.check_weight()

    @classmethod
    def examples(cls, num_outputs: int = 5) -> list[Loss]:
        """Both reductions, weights, and an ignored class: with a sum, since all may be ignored."""
        weight = [(1 + number) / 2 for number in range(num_outputs)]
        return [cls("mean"), cls("sum"), cls("mean", weight), cls("sum", weight, ignore_index=1)]

    def forward(self, prediction: Array, target: Array) -> tuple[Any, Saved]:
        """The scalar loss; saves the labels, and their weights."""
        rows = as_rows(prediction)
        num_rows, num_classes = rows.shape
        label, row_weight = self._labels(target, rows.dtype)
        place = np.arange(0, num_rows * num_classes, num_classes) + label
        loss = -(row_weight * rows.take(place)).sum()
        saved = Saved(prediction.shape, num_classes, label, row_weight)
        return (loss / row_weight.sum() if self.reduction == "mean" else loss), saved

    def backward(self, saved: Saved) -> Array:
        """grad_prediction."""
        shape, num_classes, label, row_weight = saved
        given = row_weight[:, np.newaxis] * (np.arange(num_classes) == label[:, np.newaxis])
        if self.reduction == "sum":
            return in_shape(-given, shape)
        total = row_weight.sum()
        return in_shape(-given / (total + (total == 0)), shape)  # where nothing counts, 0 divided by 1
