"""The arbiter of a function: where a value is beyond the tolerance, is the formula wrong, or is it rounding?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from nn_manual.check.comparison import CannotCompare, Pair, compare
from nn_manual.check.functions.arguments import as_tensor
from nn_manual.check.functions.callables import floats
from nn_manual.check.functions.case import Case, eps_of
from nn_manual.check.functions.pairs import pairs
from nn_manual.check.tolerances import LOW_PRECISION_FACTOR, MARGIN
from nn_manual.check.verdict.rounding import NUM_PERTURBATIONS, Rounding, distance, move_but_ties, move_by_eps


def beyond_by_rounding(case: Case, failed: Sequence[Pair]) -> frozenset[str]:
    """The names of those of `failed` that are beyond the tolerance by rounding; none where a formula is wrong.

    The arbiter of a training step decides in the same way: the formulas must agree in float64, and our values must be
    as near to the reference's float64 ones as its own are, in float32 and in float64, with every input and upstream
    gradient moved by one eps.

    A function that can't compute in float64 is judged by the distance to these values alone: it may be three times that
    of the reference in float32. 16 bits are judged so from the beginning. On inputs that were drawn, as a feature alone
    is, of which a norm leaves only rounding, one that takes float64 and sums in float32 may be as far as the reference.
    """
    if case.tolerance is not None:
        return frozenset()
    of_terms = _within_terms(case, failed) if case.drawn else frozenset()
    left = [pair for pair in failed if pair.quantity.name not in of_terms]
    if case.is_low or not left:
        return of_terms
    try:
        excused = _by_both_formulas(case, left)
        if not excused and case.drawn:
            excused = _by_distance(case, left, 1)
        return of_terms | excused
    except CannotCompare:  # it doesn't compute in float64
        return of_terms | _by_distance(case, left, LOW_PRECISION_FACTOR)
    except Exception:  # a reference may raise anything where it can't compute in another dtype
        return of_terms


def _within_terms(case: Case, failed: Sequence[Pair]) -> frozenset[str]:
    """Those that differ by no more than a few roundings of the terms that they may be sums of: products of an upstream
    gradient, which is of the order of 1, and two of the inputs. Where a softmax has become 1, its gradient is the
    difference of two such terms, which one formula computes as 0 and another as one rounding of them. What is left of
    terms is more than the truth: where ours is less than half of it, a gradient was lost, unless the reference's is
    such a rounding itself.
    """
    largest = 1.0
    for leaf in case.leaves():
        if floats(leaf) and as_tensor(leaf).numel():
            largest = max(largest, float(as_tensor(leaf).detach().abs().max()))
    eps = case.eps_of_low_precision or eps_of(case.dtype)
    rounding = (LOW_PRECISION_FACTOR if case.is_low else MARGIN) * eps * largest**2
    nothing = 0.0 if case.is_low else MARGIN * eps
    return frozenset(
        name
        for name, ours, reference in ((pair.quantity.name, pair.ours, pair.reference.numpy()) for pair in failed)
        if distance(ours, reference) <= rounding
        and (np.abs(ours).max() >= np.abs(reference).max() / 2 or np.abs(reference).max() <= nothing)
    )


def _by_both_formulas(case: Case, failed: Sequence[Pair]) -> frozenset[str]:
    generator = torch.Generator().manual_seed(case.seed)

    def move(array: Any) -> torch.Tensor:
        return move_by_eps(as_tensor(array).float(), generator)

    def move_in_double(array: Any) -> torch.Tensor:
        return move_but_ties(as_tensor(array).double(), case.seed)

    in_double = {pair.quantity.name: pair for pair in pairs(replace(case, change=_double))}
    rounding = Rounding({name: pair.reference.numpy() for name, pair in in_double.items()})
    moved = replace(case, function=case.reference, change=move, watched=False)
    for _ in range(NUM_PERTURBATIONS):
        rounding.measure({pair.quantity.name: pair.reference.numpy() for pair in pairs(moved)})
    moved_in_double = replace(moved, change=move_in_double)
    rounding.measure({pair.quantity.name: pair.reference.numpy() for pair in pairs(moved_in_double)})
    if not all(compare(*pair).passed or rounding.explains(name, pair.ours) for name, pair in in_double.items()):
        return frozenset()
    return frozenset(pair.quantity.name for pair in failed if rounding.explains(pair.quantity.name, pair.ours))


def _by_distance(case: Case, failed: Sequence[Pair], factor: float) -> frozenset[str]:
    """Those in float32 that are no further from float64 than `factor` times the reference in float32."""
    if case.dtype != np.float32:
        return frozenset()
    in_double = pairs(replace(case, function=case.reference, change=_double, watched=False))
    truth = {pair.quantity.name: pair.reference.numpy() for pair in in_double}
    return frozenset(
        name
        for name, ours, reference in ((pair.quantity.name, pair.ours, pair.reference.numpy()) for pair in failed)
        if distance(ours, truth[name]) <= factor * distance(reference, truth[name])
    )


def _double(array: Any) -> Any:
    return array.astype(np.float64) if isinstance(array, np.ndarray) else array.double()
