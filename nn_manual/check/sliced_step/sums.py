"""The sums of the slices' gradients, beside the same sums in float64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from nn_manual.arrays import Array, blocks, carve, first_not_finite
from nn_manual.check.compare import tolerances
from nn_manual.check.compare.comparison import Comparison, Quantity, compare
from nn_manual.check.judge.diagnosis import describe_difference
from nn_manual.check.judge.report import GradientReport
from nn_manual.errors import NotFiniteError
from nn_manual.model import Sequential
from nn_manual.step.slices.process_group import ProcessGroup


class Sums(NamedTuple):
    """The gradients of all slices, each times its weight, added up: in float64, their magnitudes in float64, and in the
    slices' order in the dtype of the model.
    """

    truth: Array
    terms: Array
    in_order: Array


def sums_of(grads: Sequence[Array], weights: Sequence[float], model: Sequential, group: ProcessGroup) -> Sums:
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


def compare_sums(sums: Sums, model: Sequential, num_slices: int, *, is_in_order: bool) -> GradientReport:
    """The gradients that the model holds, beside these sums; where `is_in_order`, they must be the sum in order, bit
    for bit. Raises NotFiniteError where the terms of one are more than its dtype can hold.
    """
    shapes, dtype = model.parameter_shapes(), model.dtype
    views = [vars(carve(vector, shapes)) for vector in (model.grad_arena, *sums)]
    tolerance = tolerances.sum_of_products(dtype, num_slices)
    # Below the smallest normal number, each product is off by half of the smallest of all, whatever its own size is.
    smallest = num_slices * float(np.finfo(dtype).smallest_subnormal)
    compared, rounding, words = list[Comparison](), set[str](), ""
    for name, ours, reference, magnitudes, ordered in zip(shapes, *(view.values() for view in views), strict=True):
        quantity = Quantity(f"summed {name}", "sum over the slices", tolerance, "their sum is")
        in_dtype = torch.from_numpy(reference).to(torch.from_numpy(ours).dtype)
        comparison = compare(quantity, ours, in_dtype, float(magnitudes.max()))
        compared.append(comparison)
        if not comparison.passed:
            found = first_not_finite(ours)
            if found and comparison.scale > np.finfo(dtype).max:
                raise NotFiniteError(f"{quantity.name} holds {found}")
            if comparison.absolute <= smallest:
                rounding.add(quantity.name)
            else:
                words = words or describe_difference(ours, in_dtype.numpy())
        elif is_in_order and not np.array_equal(ours, ordered):
            where = np.unravel_index(np.flatnonzero(ours != ordered)[0], ours.shape)
            problem = f"sum over the slices: {quantity.name}{list(map(int, where))} is not their sum in order"
            return GradientReport((), problem=f"{problem}, bit for bit")
    return GradientReport(tuple(compared), rounding=frozenset(rounding), diagnosis=words)
