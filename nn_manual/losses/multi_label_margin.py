"""The hinge loss of labels: the scores of those that an example has should be above the others' by a margin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.losses.base import Loss, check_reduction
from nn_manual.losses.class_targets import as_rows
from nn_manual.losses.elementwise import check_alike, check_values


class Saved(NamedTuple):
    """What backward needs: the prediction's shape, the places of the scores from the highest to the lowest, and across
    how many pairs the gap behind each of them lies.
    """

    shape: Shape
    places: Array
    num_pairs: Array


@dataclass(eq=False)
class MultiLabelMarginLoss(Loss):
    """Hinge loss of labels, (batch, classes): what each class that an example has lacks of a margin to each other.

    The target has the prediction's shape and dtype: 1 for the classes that an example has, and 0 for the others. Both
    may also be (classes,). In the formulas, rows is the number of examples.

        score           = prediction - target
        is_pair         = target[:, :, newaxis] * (1 - target[:, newaxis, :])
        lack            = is_pair * maximum(score[:, newaxis, :] - score[:, :, newaxis], 0)
        pull            = is_pair * (score[:, newaxis, :] > score[:, :, newaxis]) / classes
        loss            = sum(lack) / classes / rows                            where reduction = mean
        loss            = sum(lack) / classes                                   where reduction = sum
        grad_prediction = (sum(pull, axis=1) - sum(pull, axis=2)) / rows        where reduction = mean
        grad_prediction = sum(pull, axis=1) - sum(pull, axis=2)                 where reduction = sum

    A pair is a class j that the example has and one k that it doesn't have; lack[row, j, k] is 1 - x_j + x_k where that
    is above 0. An example that has no class, or all of them, has no pair: it costs nothing, and has no gradient. Only
    differences of scores count: no score by itself says whether an example has a class.

    Of many classes there are too many pairs to write them down. So the scores are sorted, the highest first, and those
    that the example has first among equals. The lack of a pair is the sum of the gaps between the two. The gap behind a
    place lies within the pairs of a class before it that the example doesn't have and one behind it that it has:

        num_pairs = (others up to this place) * (classes that the example has, behind it)
        loss      = sum(gap * num_pairs) / classes

    Derivation: 1 - x_j + x_k rises with x_k and falls with x_j, by 1 each. So a class that the example doesn't have is
    pulled down once for each that lacks something to it, and one that it has is pulled up once for each that it lacks
    something to. Where exactly nothing is lacking there is a kink; any slope from 0 to 1 is a subgradient, and torch
    takes 0.

    In the order of the scores, each stands above the gap behind it, and below the gap before it: its slope is the
    num_pairs of the first less those of the second.
    """

    reduction: str = "mean"

    def __post_init__(self) -> None:
        check_reduction(self.reduction)

    @classmethod
    def examples(cls, num_outputs: int = 5) -> list[Loss]:  # noqa: ARG003 - it takes any number
        """Both reductions."""
        return [cls("mean"), cls("sum")]

    def as_target(self, values: Array) -> Array:
        """1 for what is positive, 0 for the others."""
        return (values > 0).astype(values.dtype)

    def check_target(self, prediction: Array, target: Array) -> None:
        """Raise ValueError if the shapes differ, for other dimensions, without classes, and for a target that is
        neither 1 nor 0, and TypeError if the dtypes differ.
        """
        check_alike(self, prediction, target)
        if prediction.ndim not in (1, 2):
            raise ValueError(f"MultiLabelMarginLoss takes a prediction (batch, classes), not {prediction.shape}")
        if not prediction.shape[-1]:
            raise ValueError(f"MultiLabelMarginLoss takes a prediction of one class at least, not {prediction.shape}")
        check_values(self, target, lambda values: (values == 0) | (values == 1), "1 or 0")

    def forward(self, prediction: Array, target: Array) -> tuple[Any, Saved]:
        """The scalar loss; saves the order of the scores. The mean over nothing is not a number."""
        has = as_rows(target)
        score = as_rows(prediction) - has
        num_rows, num_classes = score.shape
        order = np.lexsort((-has, -score))
        places = (order.T + np.arange(0, num_rows * num_classes, num_classes)).T
        ordered, has_ordered = score.take(places), has.take(places)
        num_others = np.cumsum(1 - has_ordered, axis=1)
        num_behind = has_ordered.sum(axis=1, keepdims=True) - np.cumsum(has_ordered, axis=1)
        num_pairs = num_others * num_behind
        term = (ordered[:, :-1] - ordered[:, 1:]) * num_pairs[:, :-1] / num_classes
        saved = Saved(prediction.shape, places, num_pairs)
        if self.reduction == "mean":
            return (term.sum() / num_rows if num_rows else score.dtype.type(np.nan)), saved
        return term.sum(), saved

    def backward(self, saved: Saved) -> Array:
        """grad_prediction."""
        shape, places, num_pairs = saved
        num_rows, num_classes = num_pairs.shape
        slope = num_pairs.copy()
        slope[:, 1:] -= num_pairs[:, :-1]
        grad_prediction = np.empty_like(num_pairs)  # `places` are all places
        grad_prediction.put(places, slope / (num_classes * num_rows if self.reduction == "mean" else num_classes))
        return grad_prediction.reshape(shape)
