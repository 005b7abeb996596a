"""What is rounding in a function: by the judge of all claims, by the distance to float64, or by that of its terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nn_manual.arrays import Array
from nn_manual.check.compare.comparison import CannotCompare, Pair
from nn_manual.check.judge.rounding import distance
from nn_manual.check.judge.verdict import judged
from nn_manual.check.tolerances import LOW_PRECISION_FACTOR, MARGIN
from nn_manual.errors import raise_if_nobodys_fault
from nn_manual.functions.arguments import as_tensor
from nn_manual.functions.callables import floats
from nn_manual.functions.function_case import FunctionCase, eps_of
from nn_manual.functions.function_claim import FunctionClaim
from nn_manual.functions.own_forward import OwnForward
from nn_manual.functions.pairs import pairs
from nn_manual.functions.sensitivity import as_double, own_sensitivities, sensitivities


def beyond_by_rounding(case: FunctionCase, failed: Sequence[Pair]) -> frozenset[str]:
    """The names of those of `failed` that are beyond the tolerance by rounding; none where a formula is wrong.

    It is judged as a training step is: the formulas must agree in float64, and our values must be as near to the
    reference's float64 ones as its own are, in float32 and in float64, with every input and upstream gradient moved by
    one eps.

    A function that can't compute in float64 is judged by the distance to these values alone: it may be three times that
    of the reference in float32. 16 bits are judged so from the beginning. On inputs that were drawn, as a feature alone
    is, of which a norm leaves only rounding, one that takes float64 and sums in float32 may be as far as the reference;
    and what rounding amounts to is measured in all that the reference computes.
    """
    if case.tolerance is not None or isinstance(case.reference, OwnForward):
        return frozenset()
    excused = _by_formulas_or_distance(case, failed)
    left = [pair for pair in failed if pair.quantity.name not in excused]
    return excused | _within_terms(case, left) if case.drawn and case.excuses_terms and left else excused


def _by_formulas_or_distance(case: FunctionCase, failed: Sequence[Pair]) -> frozenset[str]:
    if case.is_low:
        return frozenset()
    try:
        found = judged(FunctionClaim(case, failed), failed)
        excused = frozenset() if found.wrong else found.rounding
        return _by_distance(case, failed, 1) if not excused and case.drawn else excused
    except CannotCompare:  # it doesn't compute in float64
        return _by_distance(case, failed, LOW_PRECISION_FACTOR)
    except Exception as error:  # a reference may raise anything where it can't compute in another dtype
        raise_if_nobodys_fault(error)
        return frozenset()


def _within_terms(case: FunctionCase, failed: Sequence[Pair]) -> frozenset[str]:
    """Those that differ from the reference, here or in float64, by no more than a few roundings of the terms that they
    are made of. Where a softmax has become 1, its gradient is the difference of two such terms, which one formula
    computes as 0 and another as one rounding of them. What is left of terms is more than the truth: where ours is less
    than half of it, a gradient was lost, unless the truth is such a rounding itself.

    The terms of the reference are measured. Another formula may have larger ones, where the case has `own_terms`:
    products of an upstream gradient, which is of the order of 1, and two of the inputs; and where an exponent is such a
    product, by two more. The larger ones are measured, too. So a function may be off by their rounding where it is
    right by float64's, at the same values. Of one that doesn't compute in float64, a rounded exponent is all that may
    be larger: of exp(x), a rounding of x is x roundings.
    """
    try:
        truth, measured = sensitivities(case)
    except Exception as raised:  # a reference may raise anything where it can't compute in another dtype
        raise_if_nobodys_fault(raised)
        return frozenset()
    inputs = [as_tensor(leaf).detach() for leaf in case.leaves() if floats(leaf)]
    largest = max([1.0, *(float(tensor.abs().max()) for tensor in inputs if tensor.numel())])
    eps, eps_of_double = case.eps_of_low_precision or eps_of(case.dtype), eps_of(np.float64)
    factor = LOW_PRECISION_FACTOR / 2 if case.is_low else MARGIN  # one rounding is half an eps
    distances = _in_double(case, truth)
    names = [pair.quantity.name for pair in failed]
    terms_of = measured
    if case.own_terms:
        most = {name: max(size, largest**4) for name, size in measured.items()}
        own = own_sensitivities(case) if _proven(distances, most).intersection(names) else {}  # they take long
        terms_of = {name: max(size, largest**2, min(own.get(name, 0), largest**4)) for name, size in measured.items()}
    proven = _proven(distances, terms_of)
    excused = set()
    for pair in failed:
        name = pair.quantity.name
        if name not in truth:  # it is an integer, or has no gradient
            continue
        size = float(np.abs(truth[name]).max())
        terms = terms_of[name] if name in proven else measured[name]
        allowed = factor * eps * terms
        if name not in proven:
            allowed = max(allowed, LOW_PRECISION_FACTOR * eps_of(case.dtype) * largest * size)
        nothing = MARGIN * eps_of_double * terms
        is_lost = np.abs(pair.ours).max() < size / 2 and size > nothing
        error = np.minimum(np.abs(pair.ours - truth[name]), np.abs(pair.ours - pair.reference.numpy())).max()
        if error <= allowed and not is_lost:
            excused.add(name)
    return frozenset(excused)


def _in_double(case: FunctionCase, truth: dict[str, Array]) -> dict[str, float]:
    """How far each tensor of the function is from the truth where it computes in float64; nothing where it doesn't."""
    try:
        ours = {pair.quantity.name: pair.ours for pair in pairs(replace(case, change=as_double, watched=False))}
    except CannotCompare:
        return {}
    return {name: distance(ours[name], values) for name, values in truth.items() if name in ours}


def _proven(distances: dict[str, float], terms: dict[str, float]) -> set[str]:
    """The names of the tensors that the function computes in float64, too, with no more than its rounding."""
    return {name for name, far in distances.items() if far <= MARGIN * eps_of(np.float64) * terms[name]}


def _by_distance(case: FunctionCase, failed: Sequence[Pair], factor: float) -> frozenset[str]:
    """Those in float32 that are no further from float64 than `factor` times the reference in float32."""
    if case.dtype != np.float32:
        return frozenset()
    in_double = pairs(replace(case, function=case.reference, change=as_double, watched=False))
    truth = {pair.quantity.name: pair.reference.numpy() for pair in in_double}
    return frozenset(
        name
        for name, ours, reference in ((pair.quantity.name, pair.ours, pair.reference.numpy()) for pair in failed)
        if distance(ours, truth[name]) <= factor * distance(reference, truth[name])
    )

