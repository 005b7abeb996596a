"""The loss and the accuracy of a model over a set of examples."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from nn_manual.arrays import Array
from nn_manual.data import Examples
from nn_manual.losses import Loss
from nn_manual.messages.text import counted
from nn_manual.model import Sequential
from nn_manual.step.slices.process_group import ALONE, ProcessGroup
from nn_manual.trainer.evaluation_slices import slice_size
from nn_manual.trainer.steps import check_targets


class Evaluation(NamedTuple):
    """The loss over a set of examples. Where the targets are class indices, `accuracy` is the fraction of them, among
    those that the loss counts, for which the prediction is largest, along axis 1. Where all targets are 0 or 1 and the
    loss has a threshold, it is the fraction of them for which the prediction is on their side of it.
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
    group: ProcessGroup = ALONE,
) -> Evaluation:
    """Evaluate the model slice by slice. The processes of the group share the slices. `after_first` is called after the
    first prediction of each process. Where the targets are class indices, their counts by class and predicted class are
    added to `confusion`, int64 (classes, classes): on each process those of all processes. The loss that is returned
    may be NaN or infinite.

    Raises ValueError where the model doesn't make equally many predictions for all examples, where no target counts,
    and for a confusion of another shape.
    """
    loss.check_data(examples.target)
    model.check_values(examples.input)
    size = slice_size(model, examples.input.shape[1:])
    starts = range(0, len(examples.input), size)
    threshold = loss.threshold if np.isin(examples.target, (0, 1)).all() else None
    own = starts[group.rank :: group.size]
    figures = np.zeros((len(starts), 4))  # for each slice what _figures_of returns
    counts = None if confusion is None else np.zeros(confusion.shape, np.int64)
    # All processes check the targets. One without a slice takes the first slice for that, and counts nothing of it.
    for position, start in enumerate(own or starts[:1]):
        input, target = (array[start : start + size] for array in examples)
        prediction = model(input)
        if not position and after_first is not None:
            after_first()
        if not prediction.ndim or not len(prediction) or len(prediction) % len(input):
            raise ValueError(f"in evaluation, the model makes {prediction.shape} of {counted(len(input), 'example')}")
        if not position:
            check_targets(loss, *examples, input, prediction)
            _check_confusion(counts, target, prediction)
        if own:
            figures[start // size] = _figures_of(loss, prediction, target, counts, threshold)
    group.start_sum(figures).wait()
    if confusion is not None and counts is not None:
        group.start_sum(counts).wait()
        confusion += counts
    losses = [(value, denominator) for value, denominator, *_ in figures.tolist() if loss.has_value(denominator)]
    num_right, num_counted = figures[:, 2:].sum(axis=0).tolist()
    return Evaluation(mean_loss(loss, losses), num_right / num_counted if num_counted else None)


def _check_confusion(confusion: Array | None, target: Array, prediction: Array) -> None:
    if confusion is not None and target.dtype.kind == "i" and confusion.shape != (prediction.shape[1],) * 2:
        raise ValueError(f"confusion has shape {confusion.shape}, and the number of classes is {prediction.shape[1]}")


def _figures_of(
    loss: Loss, prediction: Array, target: Array, confusion: Array | None, threshold: float | None
) -> tuple[float, ...]:
    """The loss of a slice, its denominator, how many predictions are right, and how many targets count. Classes are
    added to `confusion`; labels are compared with the predictions above the `threshold`.
    """
    denominator = loss.denominator(target)
    # A mean over nothing is not a number.
    value = float(loss.forward(prediction, target)[0]) if loss.has_value(denominator) else 0.0
    if target.dtype.kind != "i" or not loss.has_places:
        if threshold is None:
            return value, denominator, 0, 0
        return value, denominator, ((prediction > threshold) == (target == 1)).sum(), target.size
    counted = loss.counted(target).ravel()
    actual, predicted = target.ravel()[counted], prediction.argmax(axis=1).ravel()[counted]
    if confusion is not None:
        np.add.at(confusion, (actual, predicted), 1)
    return value, denominator, (predicted == actual).sum(), len(actual)


def mean_loss(loss: Loss, batches: Sequence[tuple[float, float]]) -> float:
    """The loss over all batches, each given as (value, denominator): the mean of the values, weighted by the
    denominators, or their sum if the loss is a sum over the examples. A batch whose denominator is 0 is left out of a
    mean.
    """
    if loss.reduction == "sum":
        return sum(value for value, _ in batches)
    counting = [batch for batch in batches if batch[1]]
    total = sum(denominator for _, denominator in counting)
    return sum(value * (denominator / total) for value, denominator in counting) if counting else math.nan
