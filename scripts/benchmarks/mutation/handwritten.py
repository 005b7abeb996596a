"""Wrong backward passes written by hand: the mistakes that people make, ten or more for each class in this file.

Each is a formula for one gradient that takes the place of the right one; everything else stays as it is. A class that
is not in this file has only the mistakes that are made by rule.
"""

# ruff: noqa: ARG005 - the formulas of one table take the same arguments, and being wrong, many leave some out

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from benchmarks.mutation.handwritten_layers import LAYERS, SAVED
from benchmarks.mutation.mutants import Mutant
from benchmarks.mutation.replacing import Formula, method_of, replace_gradient, replace_saved
from nn_manual.arrays import Array
from nn_manual.losses import CrossEntropyLoss, Loss, MSELoss, TraceLoss
from nn_manual.losses.class_targets import in_shape
from nn_manual.losses.cross_entropy import Saved


def _count(loss: Loss, array: Array) -> int:
    return array.size if loss.reduction == "mean" else 1


def _onehot(log_probability: Array, label: Array) -> Array:
    return np.eye(log_probability.shape[1], dtype=log_probability.dtype)[label]


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


class Rows(NamedTuple):
    """What CrossEntropyLoss's gradient is made of: the probabilities p, the weights of the classes, the rows that
    count, the share of each class in the target, and the smoothing.
    """

    p: Array
    weight: Array
    counted: Array
    given: Array
    smoothing: float

    @property
    def q(self) -> Array:
        """q of the docstring's formula."""
        q: Array = self.weight * ((1 - self.smoothing) * self.given + self.counted * self.smoothing / self.p.shape[1])
        return q

    @property
    def all_counted(self) -> Rows:
        """The same, but ignored examples have a share, too: class 1 in the examples."""
        given = np.where(self.counted, self.given, np.eye(len(self.weight), dtype=self.p.dtype)[1])
        return self._replace(counted=np.ones_like(self.counted), given=given)

    @property
    def label(self) -> Array:
        """The class with the largest share in the target."""
        label: Array = self.given.argmax(axis=1)
        return label

    @property
    def row_weight(self) -> Array:
        """The weight of each row."""
        row_weight: Array = (self.given * self.weight).sum(axis=1, keepdims=True)
        return row_weight


def _gradient(p: Array, q: Array) -> Array:
    """The formula, which is right if p and q are right."""
    gradient: Array = q.sum(axis=1, keepdims=True) * p - q
    return gradient


def _cross_entropy(wrong: Callable[[CrossEntropyLoss, Rows], Array]) -> Formula:
    """The formula of the loss and the rows, divided by the total if the loss is a mean."""

    def formula(loss: CrossEntropyLoss, saved: Saved) -> Array:
        p = saved.exponential / saved.exponential_sum[:, np.newaxis]
        weight = np.ones(p.shape[1], p.dtype) if loss.weight is None else np.array(loss.weight, p.dtype)
        share = np.zeros_like(p) if saved.q is None else saved.q.copy()
        share.put(saved.place, saved.q_at_place)
        share /= weight
        counted = (share.sum(axis=1, keepdims=True) > 0).astype(p.dtype)
        given = (share - counted * loss.label_smoothing / p.shape[1]) / (1 - loss.label_smoothing)
        gradient = wrong(loss, Rows(p, weight, counted, given, loss.label_smoothing))
        return in_shape(gradient / (saved.total if loss.reduction == "mean" else 1), saved.shape)

    return formula


CROSS_ENTROPY: dict[str, Formula] = {
    "minus q is lost": _cross_entropy(lambda loss, rows: rows.q.sum(axis=1, keepdims=True) * rows.p),
    "the softmax is lost": _cross_entropy(lambda loss, rows: -rows.q),
    "the sign": _cross_entropy(lambda loss, rows: -_gradient(rows.p, rows.q)),
    "the log-probability's": _cross_entropy(lambda loss, rows: _gradient(np.log(rows.p), rows.q)),
    "the sum of q is taken for 1": _cross_entropy(lambda loss, rows: rows.p - rows.q),
    "1/N is lost, or one too many": _cross_entropy(
        lambda loss, rows: (
            _gradient(rows.p, rows.q) * (len(rows.p) if loss.reduction == "mean" else 1 / len(rows.p))
        )
    ),
    "divided by the batch, not by its weights": _cross_entropy(
        lambda loss, rows: _gradient(rows.p, rows.q) * rows.row_weight.sum() / len(rows.p)
    ),
    "a mean over the classes, too": _cross_entropy(lambda loss, rows: _gradient(rows.p, rows.q) / rows.p.shape[1]),
    "smoothing is ignored": _cross_entropy(lambda loss, rows: _gradient(rows.p, rows._replace(smoothing=0).q)),
    "smoothing leaves out the target": _cross_entropy(
        lambda loss, rows: (
            _gradient(rows.p, rows.q) + rows.smoothing / rows.p.shape[1] * _onehot(rows.p, rows.label)
        )
    ),
    "the weights are ignored": _cross_entropy(
        lambda loss, rows: _gradient(rows.p, rows._replace(weight=np.ones_like(rows.weight)).q)
    ),
    "every class weighs what the target does": _cross_entropy(
        lambda loss, rows: _gradient(rows.p, rows._replace(weight=rows.row_weight).q)
    ),
    "what is ignored counts": _cross_entropy(
        lambda loss, rows: _gradient(rows.p, rows.all_counted.q)
    ),
    "through the softmax twice": _cross_entropy(lambda loss, rows: rows.p * _gradient(rows.p, rows.q)),
    "the softmax over the batch": _cross_entropy(
        lambda loss, rows: _gradient(rows.p / rows.p.sum(axis=0), rows.q)
    ),
    "one label for all": _cross_entropy(lambda loss, rows: _gradient(rows.p, rows.q[:1] + 0 * rows.q)),
    "labels off by one": _cross_entropy(lambda loss, rows: _gradient(rows.p, np.roll(rows.q, 1, axis=1))),
    "labels reversed": _cross_entropy(lambda loss, rows: _gradient(rows.p, rows.q[::-1])),
    "the target's class alone": _cross_entropy(
        lambda loss, rows: _gradient(rows.p, rows.q) * _onehot(rows.p, rows.label)
    ),
}

LOSSES: dict[type, dict[str, dict[str, Formula]]] = {
    MSELoss: {"grad_prediction": SQUARES, "grad_target": NEGATIVE_SQUARES},
    TraceLoss: {"grad_prediction": SQUARES, "grad_target": NEGATIVE_SQUARES},
    CrossEntropyLoss: {"grad_prediction": CROSS_ENTROPY},
}


def handwritten(owner: type) -> Iterator[Mutant]:
    """The wrong backward passes of a layer or a loss; empty for a class that has none here."""
    for tensor, formulas in (LAYERS | LOSSES).get(owner, {}).items():
        for description, formula in formulas.items():
            if tensor == SAVED:
                changed, method, wrong = replace_saved(owner, formula), "forward", "grad_input"
            else:
                changed, method, wrong = replace_gradient(owner, tensor, formula), method_of(owner, tensor), tensor
            yield Mutant(owner, method, "by hand", tensor, f"{tensor}: {description}", frozenset({wrong}), changed)
