"""Whether a loss's `denominator` is what its mean divides by: the loss of an epoch, and slices, rely on it."""

from __future__ import annotations

import copy
import math
from typing import NamedTuple

import numpy as np

from nn_manual.check import tolerances
from nn_manual.check.step.calls import LossCalls
from nn_manual.errors import raise_if_nobodys_fault
from nn_manual.losses import Loss, as_number
from nn_manual.step.slices.cut import BatchPart, parts_of


class _Half(NamedTuple):
    """A half of the batch: the weight that its denominator gives it, its own loss, and what its own gradient is
    multiplied by in the gradient of the batch.
    """

    weight: float
    loss: float
    factor: float


def wrong_denominator(calls: LossCalls) -> str:
    """What is wrong with the denominator of a mean that has run on a batch, as a sentence, or nothing.

    Of a mean, loss = sum(weight * loss of a half) over both halves, and grad_prediction is each half's own, times its
    weight. So the gradients tell the weights, and the denominators must give the same. A loss that isn't such a mean of
    its halves, as one that compares each example with all others, has no right denominator: nothing is said of it.
    """
    loss, prediction, target = calls.loss, calls.prediction, calls.target
    assert prediction is not None  # it ran
    assert target is not None
    assert calls.grad_prediction is not None
    is_cut_by_rows = prediction.ndim and target.ndim and len(target) > 1 and not len(prediction) % len(target)
    if loss.reduction != "mean" or not is_cut_by_rows:
        return ""
    tolerance = tolerances.sum_of_products(prediction.dtype, prediction.size)
    try:
        with np.errstate(all="ignore"):  # nothing may count in a half
            again = copy.deepcopy(loss)  # what it keeps of these runs must not be in later ones
            halves = [_half(again, calls, part, tolerance) for part in parts_of(loss, target, 2)]
    except BaseException as error:  # a user's own loss need not take half a batch
        raise_if_nobodys_fault(error)
        return ""
    found = [half for half in halves if half is not None]
    if len(found) < len(halves):
        return ""
    value = as_number(loss, calls.value)
    is_mean = abs(sum(half.factor for half in found) - 1) <= tolerance
    is_mean &= abs(sum(half.factor * half.loss for half in found) - value) <= tolerance * abs(value)
    first = found[0]
    # A function of a mean, as its root, has factors too. Where both halves have nearly the same loss, their sum is 1 up
    # to the square of what they are off.
    if not is_mean or abs(first.factor - first.weight) <= math.sqrt(tolerance):
        return ""
    words = f"its denominators give the first half of the batch the weight {first.weight:.6g} in the mean"
    return f"loss ({type(loss).__name__}): {words}, and its gradient has {first.factor:.6g}: override denominator"


def _half(loss: Loss, calls: LossCalls, part: BatchPart, tolerance: float) -> _Half | None:
    """A half, or None where its gradient in the batch isn't a multiple of its own."""
    assert calls.prediction is not None
    assert calls.target is not None
    assert calls.grad_prediction is not None
    num_rows = len(calls.prediction) // len(calls.target)  # of each example
    rows = slice(num_rows * part.rows.start, num_rows * part.rows.stop)
    value, saved = loss.forward(calls.prediction[rows].copy(), calls.target[part.rows].copy())
    own, in_batch = (grad.astype(np.float64) for grad in (loss.backward(saved), calls.grad_prediction[rows]))
    factor = float(np.vdot(own, in_batch) / np.vdot(own, own))
    if not np.abs(in_batch - factor * own).max() <= tolerance * np.abs(in_batch).max():  # NaN where it is 0
        return None
    return _Half(part.weight, as_number(loss, value), factor)
