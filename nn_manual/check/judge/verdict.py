"""The verdict on a claim: is a formula wrong, or is a difference rounding? Each kind of claim is judged here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from nn_manual.check.compare.comparison import Pair
from nn_manual.check.compare.worst import beyond_tolerance
from nn_manual.check.judge.claim import DOUBLE, Claim, without
from nn_manual.check.judge.rounding import NUM_PERTURBATIONS


@dataclass(eq=False)
class Judgement:
    """What is found about the pairs in question. `in_double` are the claim's pairs computed again in float64, `wrong`
    those of them whose formula is wrong.
    """

    in_double: Sequence[Pair]
    wrong: Sequence[Pair]
    _find_rounding: Callable[[], frozenset[str]]

    @cached_property
    def rounding(self) -> frozenset[str]:
        """The names of the pairs in question that are off by rounding alone. Measuring it takes many reruns. Where a
        formula is wrong, it only decides the words of some reports, and is measured when it is asked for.
        """
        return self._find_rounding()

    def excused(self, failed: Sequence[Pair]) -> frozenset[str]:
        """The names of those of `failed`, the pairs in question, whose formula is right, and that are off by rounding.
        """
        wrong = frozenset(pair.quantity.name for pair in self.wrong)
        return self.rounding - wrong if without(failed, wrong) else frozenset()


def judged(claim: Claim, failed: Sequence[Pair]) -> Judgement:
    """The judgement on `failed`, the claim's pairs, or parts of them, that are beyond the tolerance. Computed again in
    float64, do the formulas agree? And is each value as near to torch's in float64 as rounding allows? Raises
    CannotCompare where ours can't be made again in float64.
    """
    in_double: Sequence[Pair] = ()
    if claim.dtype != DOUBLE:
        again = claim.in_float64()
        in_double, doubtful = again.pairs, beyond_tolerance(again.pairs)
        if wrong := without(doubtful, explained(again, doubtful)):
            return Judgement(in_double, wrong, lambda: claim.rounding(failed, NUM_PERTURBATIONS))
    rounding = explained(claim, failed)
    return Judgement(in_double, (), lambda: rounding)


def explained(claim: Claim, failed: Sequence[Pair]) -> frozenset[str]:
    """The names of those of `failed` that are off by rounding, or by the rounding of their terms."""
    rounding = claim.rounding(failed)
    rest = without(failed, rounding)
    return rounding | claim.within_terms(rest) if rest else rounding
