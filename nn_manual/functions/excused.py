"""What is rounding in a function: by the judge of all claims, by the distance to float64, or by that of its terms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch

from nn_manual.arrays import Array
from nn_manual.check.compare.comparison import CannotCompare, Pair, compare
from nn_manual.check.compare.tolerances import LOW_PRECISION_FACTOR, MARGIN, MEANINGLESS
from nn_manual.check.judge.rounding import distance
from nn_manual.check.judge.verdict import judged
from nn_manual.errors import raise_if_nobodys_fault
from nn_manual.functions.arguments import as_tensor
from nn_manual.functions.callables import floats
from nn_manual.functions.function_case import FunctionCase, eps_of
from nn_manual.functions.function_claim import FunctionClaim
from nn_manual.functions.own_forward import OwnForward
from nn_manual.functions.pairs import pairs
from nn_manual.functions.sensitivity import as_double, own_sensitivities, sensitivities
from nn_manual.functions.softplus import ExactSoftplus


class Excused(NamedTuple):
    """The names of the tensors that are beyond the tolerance by rounding; and a sentence for each of them that proves
    nothing, since half of its size may be rounding.
    """

    rounding: frozenset[str] = frozenset()
    not_judged: Mapping[str, str] = {}


def beyond_by_rounding(case: FunctionCase, failed: Sequence[Pair]) -> Excused:
    """Those of `failed` that are beyond the tolerance by rounding; none where a formula is wrong.

    It is judged as a training step is: the formulas must agree in float64, and our values must be as near to the
    reference's float64 ones as its own are, in float32 and in float64, with every input and upstream gradient moved by
    one eps.

    A function that can't compute in float64, or makes float32 of it, is judged by the distance to these values alone:
    it may be three times that of the reference in float32. 16 bits are judged so from the beginning. On inputs that
    were drawn, as a feature alone is, of which a norm leaves only rounding, one that takes float64 and sums in float32
    may be as far as the reference; and what rounding amounts to is measured in all that both compute.

    Where one of both is made of torch's softplus, which is x above 20, and the other of an exact one, they may agree
    when torch's is exact, too.
    """
    if case.tolerance is not None or isinstance(case.reference, OwnForward):
        return Excused()
    exact, names = ExactSoftplus(), {pair.quantity.name for pair in failed}
    try:
        with exact:
            again = list(pairs(replace(case, watched=False))) if case.dtype == np.float64 else []
    except Exception as raised:  # anyone's function may raise anything in such a context
        raise_if_nobodys_fault(raised)
        return _beyond_by_rounding(case, failed)
    if not exact.is_used:
        return _beyond_by_rounding(case, failed)
    left = [pair for pair in again if pair.quantity.name in names and not compare(*pair).passed]
    with exact:
        excused = _beyond_by_rounding(case, left)
    agree = names.intersection(pair.quantity.name for pair in again) - {pair.quantity.name for pair in left}
    return excused._replace(rounding=excused.rounding | agree)


def _beyond_by_rounding(case: FunctionCase, failed: Sequence[Pair]) -> Excused:
    """The same, where torch's softplus is what it is."""
    terms = _Terms(case, failed)
    # What takes least time comes first: in float64 the formulas seldom explain what the terms don't, and take longer.
    for own in (False, True) if case.dtype == np.float64 else ():
        by_terms = terms.explain(failed, own=own)
        if len(by_terms.rounding) == len(failed) and not by_terms.not_judged:
            return by_terms
    excused, factor = (frozenset[str](), 0) if case.is_low else _by_formulas(case, failed)
    left = [pair for pair in failed if pair.quantity.name not in excused]
    others = terms.explain(left, factor) if left else Excused()
    return Excused(excused | others.rounding, others.not_judged)


def _by_formulas(case: FunctionCase, failed: Sequence[Pair]) -> tuple[frozenset[str], int]:
    """The names of those that the judge of all claims calls rounding; and how many times as far from float64 as the
    reference in float32 the others may be.
    """
    try:
        found = judged(FunctionClaim(case, failed), failed)
    except CannotCompare:  # it doesn't compute in float64
        return frozenset(), LOW_PRECISION_FACTOR if case.dtype == np.float32 else 0
    except Exception as error:  # a reference may raise anything where it can't compute in another dtype
        raise_if_nobodys_fault(error)
        return frozenset(), 0
    if found.wrong and case.dtype == np.float32 and _makes_float32(case):
        return frozenset(), LOW_PRECISION_FACTOR
    excused = frozenset[str]() if found.wrong else found.rounding
    return excused, int(not excused and case.drawn and case.dtype == np.float32)


def _makes_float32(case: FunctionCase) -> bool:
    """Whether the function computes in float32 what it gets in float64: its results stay the same where inputs and
    upstream gradients move by less than float32 holds.
    """

    def nearly(array: Any) -> Any:
        moved = as_double(array) * (1 + eps_of(np.float32) / 128)
        return moved if isinstance(moved, torch.Tensor) else np.asarray(moved)  # a number is no array otherwise

    both = (pairs(replace(case, change=change, watched=False)) for change in (as_double, nearly))
    return all(np.array_equal(one.ours, other.ours, equal_nan=True) for one, other in zip(*both, strict=True))


class _Terms:
    """How far the tensors of a case are from float64, beside the terms that they are made of. All is measured once."""

    def __init__(self, case: FunctionCase, failed: Sequence[Pair]) -> None:
        self.case, self.failed = case, failed
        self.by_terms = case.drawn and case.excuses_terms

    @cached_property
    def _measured(self) -> tuple[Mapping[str, Array], Mapping[str, float]]:
        """The reference's values in float64, and how large their terms are; nothing where it raises an error there."""
        try:
            return sensitivities(self.case)
        except Exception as raised:  # as above
            raise_if_nobodys_fault(raised)
            return {}, {}

    @cached_property
    def _allowed(self) -> tuple[dict[str, float], dict[str, float]]:
        """How far each tensor may be off by its terms; and below which size the function's own ones hide a number."""
        truth, terms = self._measured
        try:
            if self.case.is_low:
                return _allowed_in_16_bits(self.case, terms), {}
            return _allowed(self.case, truth, terms, self.failed)
        except Exception as raised:  # as above
            raise_if_nobodys_fault(raised)
            return {}, {}

    def explain(self, failed: Sequence[Pair], factor: int = 0, *, own: bool = True) -> Excused:
        """Those of `failed` that are no further from float64 than `factor` times the reference. On drawn inputs also
        those that differ from the reference, here or in float64, by no more than a few roundings of the terms that they
        are made of: where a softmax has become 1, its gradient is the difference of two such terms, which one formula
        computes as 0 and another as one rounding of them. With `own`, the terms of the function count, too.

        Where ours is less than half of the truth, a gradient was lost, unless the truth is such a rounding itself, of
        the reference's terms or of our own, or the reference has lost it, too.
        """
        if not (factor or self.by_terms):
            return Excused()
        truth, terms = self._measured
        allowed, hidden = dict[str, float](), dict[str, float]()
        if self.by_terms:
            few = MARGIN * eps_of(self.case.dtype)
            allowed, hidden = self._allowed if own else ({name: few * size for name, size in terms.items()}, {})
        excused, not_judged = set[str](), dict[str, str]()
        for pair in failed:
            name = pair.quantity.name
            if name not in truth:  # it is an integer, or has no gradient
                continue
            size, reference = float(np.abs(truth[name]).max()), pair.reference.numpy()
            is_a_number = size > max(MARGIN * eps_of(np.float64) * terms[name], hidden.get(name, 0))
            ours_is_less, its_is_less = (np.abs(values).max() < size / 2 for values in (pair.ours, reference))
            is_near = distance(pair.ours, truth[name]) <= factor * distance(reference, truth[name])
            error = np.minimum(np.abs(pair.ours - truth[name]), np.abs(pair.ours - reference)).max()
            is_within = error <= allowed.get(name, 0)
            if not (is_near or is_within) or (is_a_number and ours_is_less and not its_is_less):
                continue
            excused.add(name)
            if is_a_number and is_within and allowed[name] >= MEANINGLESS * size:
                not_judged[name] = f"{name}: rounding alone may be {allowed[name] / size:.2g} of its largest value"
        return Excused(frozenset(excused), not_judged)


def _allowed_in_16_bits(case: FunctionCase, terms: Mapping[str, float]) -> dict[str, float]:
    """What the reference's operations return may be rounded to 16 bits, as it is where they run one after the other.
    The inputs are given in 16 bits, so nothing rounds them there; inside, a kernel may compute in float32.
    """
    assert case.eps_of_low_precision is not None  # as is_low says
    rounding = case.eps_of_low_precision / 2
    operations = sensitivities(case, of_operations=True)[1]
    inside = MARGIN * eps_of(np.float32)
    return {name: LOW_PRECISION_FACTOR * rounding * operations[name] + inside * size for name, size in terms.items()}


def _allowed(
    case: FunctionCase, truth: Mapping[str, Array], terms: Mapping[str, float], failed: Sequence[Pair]
) -> tuple[dict[str, float], dict[str, float]]:
    """How far each tensor may be off: a few roundings of the reference's terms. A function may have larger ones, where
    the case has `own_terms`. They count as they are measured, where it is right in float64 by their rounding, up to a
    product of four inputs and an upstream gradient of the order of 1: two of them in a score, whose rounding is an
    error of its exponential. And a few roundings of its own terms alone, in which a smaller number is lost.
    """
    inputs = [as_tensor(leaf).detach() for leaf in case.leaves() if floats(leaf)]
    largest = max([1.0, *(float(tensor.abs().max()) for tensor in inputs if tensor.numel())])
    own_terms, own, distances = dict(terms), dict[str, float](), _in_double(case, truth)
    most = {name: max(size, largest**4, float(np.abs(truth[name]).max(initial=0.0))) for name, size in terms.items()}
    if case.own_terms and _proven(distances, most).intersection(pair.quantity.name for pair in failed):
        own = own_sensitivities(case)  # they take long
        own_terms = {name: max(size, min(own.get(name, 0), most[name])) for name, size in terms.items()}
    proven, few = _proven(distances, own_terms), MARGIN * eps_of(case.dtype)
    hidden = {name: few * min(own.get(name, 0), most[name]) for name in proven}
    return {name: few * (own_terms[name] if name in proven else size) for name, size in terms.items()}, hidden


def _in_double(case: FunctionCase, truth: Mapping[str, Array]) -> dict[str, float]:
    """How far each tensor of the function is from the truth where it computes in float64; nothing where it doesn't."""
    try:
        ours = {pair.quantity.name: pair.ours for pair in pairs(replace(case, change=as_double, watched=False))}
    except CannotCompare:
        return {}
    return {name: distance(ours[name], values) for name, values in truth.items() if name in ours}


def _proven(distances: Mapping[str, float], terms: Mapping[str, float]) -> set[str]:
    """The names of the tensors that the function computes in float64, too, with no more than its rounding."""
    return {name for name, far in distances.items() if far <= MARGIN * eps_of(np.float64) * terms[name]}
