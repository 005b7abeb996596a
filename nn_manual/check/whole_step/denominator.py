"""Whether a loss's `denominator` is what its mean divides by: the loss of an epoch, and slices, rely on it."""

from __future__ import annotations

import copy
import math
from typing import NamedTuple

import numpy as np

from nn_manual.check.compare import tolerances
from nn_manual.check.step.calls import LossCalls
from nn_manual.errors import raise_if_nobodys_fault
from nn_manual.losses import Loss, as_number


class _Part(NamedTuple):
    """A part of the batch: its denominator, its own loss, and what its own gradient is multiplied by in the gradient
    of the batch.
    """

    denominator: float
    loss: float
    factor: float


def wrong_denominator(calls: LossCalls) -> str:
    """What is wrong with the denominator of a mean that has run on a batch, as a sentence, or nothing.

    The batch is cut in two, in its middle, and once more behind a third: two halves tell nothing of a denominator that
    counts no examples. Of a mean, loss = sum(weight * loss of a part), and grad_prediction is each part's own, times
    its weight. So the gradients tell the weights, and the denominators must give the same. A loss that isn't such a
    mean of its parts, as one that compares each example with all others, has no right denominator: nothing is said of
    it.
    """
    loss, prediction, target = calls.loss, calls.prediction, calls.target
    assert prediction is not None  # it ran
    assert target is not None
    assert calls.grad_prediction is not None
    is_cut_by_rows = prediction.ndim and target.ndim and len(target) > 1 and not len(prediction) % len(target)
    if loss.reduction == "sum" or not is_cut_by_rows:
        return ""
    num_examples = len(target)
    cuts = dict.fromkeys((-(-num_examples // 2), max(num_examples // 3, 1)))
    return next(filter(None, (_wrong_where_cut(calls, first) for first in cuts)), "")


def _wrong_where_cut(calls: LossCalls, num_first: int) -> str:
    """The same, from a cut behind so many examples."""
    loss, prediction, target = calls.loss, calls.prediction, calls.target
    assert prediction is not None
    assert target is not None
    tolerance = tolerances.sum_of_products(prediction.dtype, prediction.size)
    try:
        with np.errstate(all="ignore"):  # nothing may count in a part
            again = copy.deepcopy(loss)  # what it keeps of these runs must not be in later ones
            parts = [_part(again, calls, rows, tolerance) for rows in (slice(num_first), slice(num_first, len(target)))]
    except BaseException as error:  # a user's own loss need not take a part of a batch
        raise_if_nobodys_fault(error)
        return ""
    found = [part for part in parts if part is not None]
    if len(found) < len(parts):
        return ""
    value, total = as_number(loss, calls.value), sum(part.denominator for part in found)
    is_mean = abs(sum(part.factor for part in found) - 1) <= tolerance
    is_mean &= abs(sum(part.factor * part.loss for part in found) - value) <= tolerance * abs(value)
    first = found[0]
    weight = first.denominator / total if total else 0.0
    # A function of a mean, as its root, has factors too. Where both parts have nearly the same loss, their sum is 1 up
    # to the square of what they are off.
    if not is_mean or abs(first.factor - weight) <= math.sqrt(tolerance):
        return ""
    words = f"its denominators give the first {num_first} of {len(target)} examples the weight {weight:.6g} in the mean"
    return f"loss ({type(loss).__name__}): {words}, and its gradient has {first.factor:.6g}: override denominator"


def _part(loss: Loss, calls: LossCalls, of_target: slice, tolerance: float) -> _Part | None:
    """A part, or None where its gradient in the batch isn't a multiple of its own."""
    assert calls.prediction is not None
    assert calls.target is not None
    assert calls.grad_prediction is not None
    num_rows = len(calls.prediction) // len(calls.target)  # of each example
    target = calls.target[of_target].copy()
    start = num_rows * (of_target.start or 0)
    rows = slice(start, start + num_rows * len(target))
    value, saved = loss.forward(calls.prediction[rows].copy(), target)
    own, in_batch = (grad.astype(np.float64) for grad in (loss.backward(saved), calls.grad_prediction[rows]))
    factor = float(np.vdot(own, in_batch) / np.vdot(own, own))
    if not np.abs(in_batch - factor * own).max() <= tolerance * np.abs(in_batch).max():  # NaN where it is 0
        return None
    return _Part(loss.denominator(target), as_number(loss, value), factor)
