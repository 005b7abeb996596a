"""Wrong backward passes written by hand: the mistakes that people make, ten or more of each class that stands here.

Each is a formula for one gradient that takes the place of the right one, everything else staying as it is. A class that
does not stand here has the mistakes that are made by rule.
"""

# ruff: noqa: ARG005 - the formulas of one table take the same arguments, and being wrong, many leave some out

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.mutation.handwritten_layers import LAYERS
from benchmarks.mutation.mutants import Mutant
from benchmarks.mutation.replacing import Formula, method_of, replace_gradient
from nn_manual.arrays import Array
from nn_manual.losses import CrossEntropyLoss, Loss, MSELoss, TraceLoss


def _batch(loss: Loss, array: Array) -> int:
    return len(array) if loss.reduction == "mean" else 1


def _count(loss: Loss, array: Array) -> int:
    return array.size if loss.reduction == "mean" else 1


def _onehot(log_probability: Array, target: Array) -> Array:
    return np.eye(log_probability.shape[1], dtype=log_probability.dtype)[target]


def _expected(log_probability: Array, target: Array, smoothing: float) -> Array:
    """q of CrossEntropyLoss's formula."""
    expected: Array = (1 - smoothing) * _onehot(log_probability, target) + smoothing / log_probability.shape[1]
    return expected


#: MSELoss and TraceLoss save prediction - target; their right formula is 2 * difference, and / N for a mean.
SQUARES: dict[str, Formula] = {
    "the 2 is lost": lambda loss, difference: difference / _count(loss, difference),
    "the sign": lambda loss, difference: -2 * difference / _count(loss, difference),
    "1/N is lost, or one too many": lambda loss, difference: (
        2 * difference / (1 if loss.reduction == "mean" else difference.size)
    ),
    "divided by the batch alone": lambda loss, difference: 2 * difference / len(difference),
    "divided by the outputs alone": lambda loss, difference: 2 * difference / difference.shape[-1],
    "the absolute error's": lambda loss, difference: np.sign(difference) / _count(loss, difference),
    "the absolute difference": lambda loss, difference: 2 * np.abs(difference) / _count(loss, difference),
    "not derived": lambda loss, difference: difference**2 / _count(loss, difference),
    "of the batch's mean": lambda loss, difference: (
        2 * (difference.mean(axis=0) + 0 * difference) / _count(loss, difference)
    ),
    "scaled by the loss": lambda loss, difference: 2 * difference * (difference**2).sum() / _count(loss, difference),
    "clipped to 1": lambda loss, difference: 2 * np.clip(difference, -1, 1) / _count(loss, difference),
    "scaled by its first element": lambda loss, difference: (
        2 * difference * difference.flat[0] / _count(loss, difference)
    ),
}


def _negative(formula: Formula) -> Formula:
    return lambda loss, saved: -formula(loss, saved)


NEGATIVE_SQUARES = {description: _negative(formula) for description, formula in SQUARES.items()}


def _cross_entropy(wrong: Callable[[CrossEntropyLoss, Array, Array, Array], Array]) -> Formula:
    """A formula of the loss, the probabilities p, the expected ones q, and the target; divided by the batch."""

    def formula(loss: CrossEntropyLoss, saved: tuple[Array, Array]) -> Array:
        log_probability, target = saved
        q = _expected(log_probability, target, loss.label_smoothing)
        return wrong(loss, np.exp(log_probability), q, target) / _batch(loss, log_probability)

    return formula


CROSS_ENTROPY: dict[str, Formula] = {
    "minus onehot is lost": _cross_entropy(lambda loss, p, q, target: p),
    "the softmax is lost": _cross_entropy(lambda loss, p, q, target: -q),
    "the sign": _cross_entropy(lambda loss, p, q, target: q - p),
    "the log-probability's": _cross_entropy(lambda loss, p, q, target: np.log(p) - q),
    "1/N is lost, or one too many": _cross_entropy(
        lambda loss, p, q, target: (p - q) * (len(p) if loss.reduction == "mean" else 1 / len(p))
    ),
    "a mean over the classes, too": _cross_entropy(lambda loss, p, q, target: (p - q) / p.shape[1]),
    "smoothing is ignored, or made up": _cross_entropy(
        lambda loss, p, q, target: p - _expected(p, target, 0 if loss.label_smoothing else 0.1)
    ),
    "smoothing leaves out the target, or adds to it": _cross_entropy(
        lambda loss, p, q, target: p - q + (loss.label_smoothing or 0.1) / p.shape[1] * _onehot(p, target)
    ),
    "through the softmax twice": _cross_entropy(lambda loss, p, q, target: p * (p - q)),
    "the softmax over the batch": _cross_entropy(lambda loss, p, q, target: p / p.sum(axis=0) - q),
    "one label for all": _cross_entropy(lambda loss, p, q, target: p - q[:1]),
    "labels off by one": _cross_entropy(lambda loss, p, q, target: p - np.roll(q, 1, axis=1)),
    "labels reversed": _cross_entropy(lambda loss, p, q, target: p - q[::-1]),
    "the target's class alone": _cross_entropy(lambda loss, p, q, target: (p - q) * _onehot(p, target)),
}

LOSSES: dict[type, dict[str, dict[str, Formula]]] = {
    MSELoss: {"grad_prediction": SQUARES, "grad_target": NEGATIVE_SQUARES},
    TraceLoss: {"grad_prediction": SQUARES, "grad_target": NEGATIVE_SQUARES},
    CrossEntropyLoss: {"grad_prediction": CROSS_ENTROPY},
}


def handwritten(owner: type) -> Iterator[Mutant]:
    """The wrong backward passes of a layer or a loss; none of a class that has none here."""
    for tensor, formulas in (LAYERS | LOSSES).get(owner, {}).items():
        for description, formula in formulas.items():
            changed = replace_gradient(owner, tensor, formula)
            mistake, method = f"{tensor}: {description}", method_of(owner, tensor)
            yield Mutant(owner, method, "by hand", tensor, mistake, frozenset({tensor}), changed)
