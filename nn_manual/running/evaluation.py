"""The loss and the accuracy of a model over a set of examples."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from nn_manual.arrays import Array, placeholder
from nn_manual.data import Examples
from nn_manual.distributed.group import ALONE, Group
from nn_manual.losses import Loss
from nn_manual.model import Sequential
from nn_manual.running.slices import slice_size


class Evaluation(NamedTuple):
    """The loss over a set of examples, and for targets of class indices the fraction of them whose prediction is
    largest, along axis 1: of the targets that the loss counts.
    """

    loss: float
    accuracy: float | None


def evaluation_of(
    model: Sequential,
    loss: Loss,
    examples: Examples,
    confusion: Array | None = None,
    *,
    after_first: Callable[[], object] | None = None,
    group: Group = ALONE,
) -> Evaluation:
    """Evaluate the model, slice by slice, which the processes of the group share. `after_first` is called after the
    first prediction. For targets of class indices, `confusion`, int64 (classes, classes), gains the count of targets by
    class and predicted class. The loss is NaN or infinite where it isn't finite.

    Raises ValueError where the model doesn't make as many predictions of each example, or where no target counts.
    """
    loss.check_data(examples.target)
    classification = examples.target.dtype.kind == "i"
    model.check_values(examples.input)
    size = slice_size(model, examples.input.shape[1:])
    starts = range(0, len(examples.input), size)
    figures = np.zeros((len(starts), 4))  # of each slice the loss, its denominator, how many are right, and counted
    for i, start in list(enumerate(starts))[group.rank :: group.size]:
        input, target = (array[start : start + size] for array in examples)
        prediction = model(input)
        if i == group.rank and after_first is not None:
            after_first()
        if not prediction.ndim or not len(prediction) or len(prediction) % len(input):
            raise ValueError(f"in evaluation, the model makes {prediction.shape} of {len(input)} examples")
        if start == 0:
            check_targets(loss, *examples, input, prediction)
        denominator = loss.denominator(target)
        if loss.has_value(denominator):  # a mean over nothing is not a number
            figures[i, :2] = float(loss.forward(prediction, target)[0]), denominator
        if classification:
            counted = loss.counted(target).ravel()
            actual, predicted = target.ravel()[counted], prediction.argmax(axis=1).ravel()[counted]
            figures[i, 2:] = (predicted == actual).sum(), len(actual)
            if confusion is not None:
                np.add.at(confusion, (actual, predicted), 1)
    group.start_sum(figures).wait()
    losses = [(value, denominator) for value, denominator, *_ in figures.tolist() if loss.has_value(denominator)]
    num_right, num_counted = figures[:, 2:].sum(axis=0).tolist()
    return Evaluation(mean_loss(loss, losses), num_right / num_counted if num_counted else None)


def mean_loss(loss: Loss, batches: Sequence[tuple[float, float]]) -> float:
    """The loss of all batches, (value, denominator) each, together: their mean weighted by the denominators, or their
    sum if the loss is a sum over the examples. A batch whose denominator is 0 is left out of a mean.
    """
    if loss.reduction == "sum":
        return sum(value for value, _ in batches)
    counting = [batch for batch in batches if batch[1]]
    total = sum(denominator for _, denominator in counting)
    return sum(value * (denominator / total) for value, denominator in counting) if counting else math.nan


def check_targets(loss: Loss, inputs: Array, targets: Array, input: Array, prediction: Array) -> None:
    """Raise ValueError or TypeError where the loss doesn't take the targets of the inputs, given the prediction for
    some of these: for `input`.
    """
    if inputs is not input:
        num_predictions = len(inputs) * len(prediction) // len(input)  # a model may make several of each example
        prediction = placeholder((num_predictions, *prediction.shape[1:]), prediction.dtype)
    loss.check_target(prediction, targets)
