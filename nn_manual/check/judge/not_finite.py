"""What is said of numbers that no reference can judge: they, or its own, aren't finite, or it doesn't take them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from nn_manual.arrays import first_not_finite
from nn_manual.check.compare.comparison import Pair
from nn_manual.check.judge.diagnosis import positions
from nn_manual.check.step.calls import LossCalls
from nn_manual.errors import NotFiniteError


def not_finite_words(pair: Pair) -> str:
    """What follows the tensor's name: what ours holds or, if all of it is finite, where the reference isn't."""
    if not np.isfinite(pair.ours).all():
        return f"{'holds' if pair.ours.ndim else 'is'} {first_not_finite(pair.ours)}"
    reference = pair.reference.numpy()
    found = f"no finite number at {positions(~np.isfinite(reference))}" if reference.ndim else str(reference)
    return f"can't be judged: it is finite, and {pair.quantity.origin} {found}"


def not_finite_tensor(pair: Pair) -> str:
    """The same, with the tensor's name."""
    quantity = pair.quantity
    subject = "the loss" if quantity.name == "loss" else f"{quantity.name} of {quantity.layer}"
    return f"{subject} {not_finite_words(pair)}"


def check_finite(failed: Sequence[Pair]) -> None:
    """Raise NotFiniteError where torch's value isn't finite either: then no formula is wrong, the step is too large."""
    for pair in failed:
        if not pair.reference.isfinite().all():
            raise NotFiniteError(f"{pair.quantity.name} {not_finite_words(pair)} after {pair.quantity.layer}")


def outside_domain(calls: LossCalls) -> str:
    """That a loss isn't finite because it doesn't take the prediction, in words; empty if it takes it, is finite, or
    never ran. It takes the ends of its domain.
    """
    loss, prediction = calls.loss, calls.prediction
    domain = (0.0, math.inf) if loss.domain == "positive" else loss.domain
    if prediction is None or not isinstance(domain, tuple) or np.isfinite(calls.value):
        return ""
    low, high = domain
    outside = prediction[(prediction < low) | (prediction > high)]
    words = f"{type(loss).__name__} takes predictions from {low:g} to {high:g}, not "
    return f"{words}{outside[0]:g}" if outside.size else ""
