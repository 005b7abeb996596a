"""The loss of a batch, put together from those of its slices, beside torch's loss of the whole batch.

What the loss made of each slice has been compared by then. What is left is the part that each slice has in the batch,
its weight. Where a value is beyond its tolerance, the questions are those of every step: do the formulas agree in
float64, and is the value as near to torch's in float64 as rounding brings it?
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from nn_manual.arrays import Array
from nn_manual.check.compare import tolerances
from nn_manual.check.compare.comparison import CannotCompare, Pair, Quantity, compare
from nn_manual.check.compare.worst import beyond_tolerance
from nn_manual.check.judge.claim import DOUBLE, Claim, Values, without
from nn_manual.check.judge.diagnosis import describe_difference
from nn_manual.check.judge.not_finite import not_finite_words
from nn_manual.check.judge.report import GradientReport
from nn_manual.check.judge.rounding import Rounding
from nn_manual.check.judge.step_claim import allow_for_large
from nn_manual.check.judge.verdict import judged
from nn_manual.check.step.reference import Move
from nn_manual.check.twin.model import TORCH_DTYPES, Twin, as_tensor, loss_function, reference_settings
from nn_manual.errors import NotFiniteError, raise_if_nobodys_fault, words_of
from nn_manual.losses import Loss, as_number
from nn_manual.step.slices.cut import BatchPart, loss_of

LOSS, GRAD_PREDICTION = "batch.loss", "batch.grad_prediction"


class LossOfBatch(NamedTuple):
    """The loss of a batch that is cut into `parts`, and its gradient, from those of the slices."""

    value: float
    prediction: Array
    grad_prediction: Array
    target: Array
    parts: Sequence[BatchPart]


def compare_loss(batch: LossOfBatch, loss: Loss, twin: Twin) -> GradientReport:
    """The loss of the batch, from the predictions of all slices, and its gradient: torch divides by what it finds in
    the whole target. Raises NotFiniteError where torch's isn't finite.
    """
    with np.errstate(over="ignore"):  # the losses of the slices may add up to more than their dtype can hold
        value = np.asarray(batch.value, batch.prediction.dtype)
    theirs = _by_torch(twin.loss_function, batch.prediction, batch.target)
    pairs = _pairs([value, batch.grad_prediction], theirs)
    failed = beyond_tolerance(pairs)
    for pair in failed:
        if not pair.reference.isfinite().all():
            raise NotFiniteError(f"{pair.quantity.name} {not_finite_words(pair)}")
    rounding = _rounding(_LossClaim(batch, loss, pairs), failed) if failed else frozenset[str]()
    wrong = without(failed, rounding)
    words = describe_difference(wrong[0].ours, wrong[0].reference.numpy()) if wrong else ""
    return GradientReport(tuple(compare(*pair) for pair in pairs), rounding=rounding, diagnosis=words)


def _rounding(claim: Claim, failed: list[Pair]) -> frozenset[str]:
    """The names of those that are off by rounding; there are none where the formulas differ in float64."""
    try:
        found = judged(claim, failed)
    except CannotCompare:
        return frozenset()
    return frozenset() if found.wrong else found.rounding


class _LossClaim(Claim):
    """The loss of a batch and its gradient, beside torch's."""

    def __init__(self, batch: LossOfBatch, loss: Loss, pairs: Sequence[Pair]) -> None:
        self.batch, self.loss, self.pairs = batch, loss, pairs
        self.dtype = pairs[-1].ours.dtype

    def in_float64(self) -> _LossClaim:
        """As in every claim."""
        try:
            ours = self._ours_in_float64()
        except BaseException as error:  # a user's own loss may raise anything there
            raise_if_nobodys_fault(error)
            raise CannotCompare(f"in float64 the loss raised {words_of(error)}") from error
        return _LossClaim(self.batch, self.loss, _pairs(ours, self.of_smaller_prediction(DOUBLE, 1)))

    def measured(self) -> Rounding:
        """As in every claim."""
        rounding = Rounding(self.of_smaller_prediction(DOUBLE, 1))
        allow_for_large(rounding)
        return rounding

    def _ours_in_float64(self) -> list[Array]:
        """The loss and its gradient, put together from those of the slices once more."""
        batch = self.batch
        prediction, target = (_converted(array, DOUBLE).numpy() for array in (batch.prediction, batch.target))
        num_rows = len(prediction) // batch.parts[-1].rows.stop  # of each example
        values, grads = list[float](), list[Array]()
        for part in batch.parts:
            rows = slice(num_rows * part.rows.start, num_rows * part.rows.stop)
            with np.errstate(invalid="ignore"):  # a mean over nothing
                value, saved = self.loss.forward(prediction[rows], target[part.rows])
            values.append(as_number(self.loss, value))
            grads.append(part.weight * self.loss.backward(saved))
        return [np.asarray(loss_of(self.loss, batch.parts, values)), np.concatenate(grads)]

    def moved(self, dtype: np.dtype[Any], move: Move, move_grad: Move) -> Values:
        """As in every claim."""
        given = (move(_converted(array, dtype)).numpy() for array in (self.batch.prediction, self.batch.target))
        values = _by_torch(loss_function(self.loss, TORCH_DTYPES[dtype.name]), *given)
        return values | {GRAD_PREDICTION: move_grad(torch.from_numpy(values[GRAD_PREDICTION])).numpy()}

    def of_loss(self, pairs: Sequence[Pair]) -> Sequence[Pair]:
        """All of them."""
        return pairs

    def of_smaller_prediction(self, dtype: np.dtype[Any], factor: float) -> Values:
        """As in every claim."""
        prediction = (factor * self.batch.prediction).astype(self.batch.prediction.dtype)
        given = (_converted(array, dtype).numpy() for array in (prediction, self.batch.target))
        return _by_torch(loss_function(self.loss, TORCH_DTYPES[dtype.name]), *given)


def _pairs(ours: Sequence[Array], theirs: Mapping[str, Array]) -> list[Pair]:
    loss, grad_prediction = ours
    tolerance = tolerances.sum_of_products(grad_prediction.dtype, grad_prediction.size)
    return [
        Pair(Quantity(name, "batch", tolerance), array, torch.from_numpy(theirs[name]))
        for name, array in ((LOSS, loss), (GRAD_PREDICTION, grad_prediction))
    ]


@reference_settings()
def _by_torch(function: Callable[..., torch.Tensor], prediction: Array, target: Array) -> dict[str, Array]:
    """The loss and its gradient, by torch's version of it."""
    given = as_tensor(prediction).requires_grad_()
    value = function(given, as_tensor(target))
    (grad,) = torch.autograd.grad(value, given, allow_unused=True, materialize_grads=True)
    return {LOSS: value.detach().numpy(), GRAD_PREDICTION: grad.numpy()}


@np.errstate(over="ignore")  # a float64 value may be more than float32 can hold
def _converted(array: Array, dtype: np.dtype[Any]) -> torch.Tensor:
    return torch.from_numpy(array.astype(dtype) if array.dtype.kind == "f" else array)
