"""What slices add up to: the loss of the batch, its gradient, and the gradients of the parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from nn_manual.arrays import Array, blocks, carve
from nn_manual.check import tolerances
from nn_manual.check.comparison import Comparison, Pair, Quantity, as_tensor, compare
from nn_manual.check.twin.model import Twin
from nn_manual.check.verdict.report import GradientReport
from nn_manual.distributed.group import Group
from nn_manual.errors import GradientMismatch
from nn_manual.model import Sequential


class Sums(NamedTuple):
    """Of the gradients of all slices, each times its weight: the sum in float64, that of their magnitudes, and the sum
    in the slices' order in the dtype of the model.
    """

    truth: Array
    terms: Array
    in_order: Array


def sums_of(grads: Sequence[Array], weights: Sequence[float], model: Sequential, group: Group) -> Sums:
    """`grads` are those of this process's slices, `weights` those of all. All processes must call it."""
    size, dtype = model.grad_arena.size, model.dtype
    sums = Sums(np.zeros(size), np.zeros(size), np.zeros(size, dtype))
    for block in blocks(size):
        own = np.array([grad[block] for grad in grads], dtype).reshape(-1, block.stop - block.start)
        for weight, grad in zip(weights, np.concatenate(group.gather_arrays(own)), strict=True):
            exact = torch.from_numpy(grad).double() * float(dtype.type(weight))
            torch.from_numpy(sums.truth[block]).add_(exact)
            torch.from_numpy(sums.terms[block]).add_(exact.abs())
            sums.in_order[block] += grad * dtype.type(weight)
    return sums


def compare_sums(sums: Sums, model: Sequential, num_slices: int, *, is_in_order: bool) -> list[Comparison]:
    """The gradients that the model holds, beside these sums. Where `is_in_order`, raises GradientMismatch unless they
    are the sum in order, bit for bit.
    """
    shapes = model.parameter_shapes()
    views = [vars(carve(vector, shapes)) for vector in (model.grad_arena, *sums)]
    tolerance = tolerances.sum_of_products(model.dtype, num_slices)
    compared = []
    for name, ours, reference, magnitudes, ordered in zip(shapes, *(view.values() for view in views), strict=True):
        quantity = Quantity(f"summed {name}", "sum over the slices", tolerance, "their sum is")
        in_dtype = torch.from_numpy(reference).to(torch.from_numpy(ours).dtype)
        compared.append(compare(quantity, ours, in_dtype, float(magnitudes.max())))
        if is_in_order and compared[-1].passed and not np.array_equal(ours, ordered):
            where = np.unravel_index(np.flatnonzero(ours != ordered)[0], ours.shape)
            problem = f"sum over the slices: summed {name}{list(map(int, where))} is not their sum in order"
            raise GradientMismatch(GradientReport((), problem=f"{problem}, bit for bit"))
    return compared


class LossOfBatch(NamedTuple):
    """The loss of a batch, and its gradient, from those of the slices."""

    value: float
    prediction: Array
    grad_prediction: Array
    target: Array


def compare_loss(batch: LossOfBatch, twin: Twin) -> list[Comparison]:
    """The loss of the batch, from the predictions of all slices, and its gradient: torch divides by what it finds in
    the whole target.
    """
    theirs = as_tensor(batch.prediction).requires_grad_()
    loss = twin.loss_function(theirs, as_tensor(batch.target))
    loss.backward()  # type: ignore[no-untyped-call]  # torch's own lack of annotations
    assert theirs.grad is not None  # it needed one
    dtype = batch.prediction.dtype
    widest = tolerances.sum_of_products(dtype, batch.prediction.size)
    pairs = [
        Pair(Quantity("batch.loss", "batch", widest), np.asarray(batch.value, dtype), loss.detach()),
        Pair(Quantity("batch.grad_prediction", "batch", widest), batch.grad_prediction, theirs.grad),
    ]
    return [compare(*pair) for pair in pairs]
