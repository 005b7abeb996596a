"""A claim that our values equal torch's: how both are made again in float64, and how far rounding moves them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch

from nn_manual.arrays import Array
from nn_manual.check.compare.comparison import Pair
from nn_manual.check.judge.rounding import (
    FURTHER,
    MOST_PERTURBATIONS,
    NEARER,
    NUM_PERTURBATIONS,
    Rounding,
    move_as_in_float32,
    move_but_ties,
    move_by_eps,
)
from nn_manual.check.step.reference import Move

#: Each measurement makes the prediction smaller by this factor once more. The last one is small enough for the smallest
#: positive loss that float64 has, 1e-323, where a logit leads by 744: a 256th of that lead is 3.
SMALLER = 0.25

SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)

Values = Mapping[str, Array]


class Claim(ABC):
    """That `pairs` of our values and torch's, in this `dtype`, are equal up to rounding."""

    dtype: np.dtype[Any]
    pairs: Sequence[Pair]

    @abstractmethod
    def in_float64(self) -> Claim:
        """The same, both made again in float64. Raises CannotCompare where ours can't be."""

    @abstractmethod
    def measured(self) -> Rounding:
        """torch's values in float64, from which rounding is measured."""

    @abstractmethod
    def moved(self, dtype: np.dtype[Any], move: Move, move_grad: Move) -> Values:
        """torch's values, computed again in this dtype. Values go through `move` first, and gradients through
        `move_grad`.
        """

    def of_loss(self, pairs: Sequence[Pair]) -> Sequence[Pair]:  # noqa: ARG002 - a claim without a loss has none
        """Those of the pairs that a loss computes: these alone change with the prediction."""
        return []

    def of_smaller_prediction(self, dtype: np.dtype[Any], factor: float) -> Values:
        """What the loss computes from `factor` times the prediction."""
        raise NotImplementedError  # a claim without a loss is never asked

    def within_terms(self, failed: Sequence[Pair]) -> frozenset[str]:  # noqa: ARG002 - the claim of a step uses it
        """The names of those of `failed` that are off by a few roundings of the terms that they are made of."""
        return frozenset()

    @cached_property
    def _rounding(self) -> Rounding:
        return self.measured()

    def rounding(self, failed: Sequence[Pair], num_perturbations: int = MOST_PERTURBATIONS) -> frozenset[str]:
        """The names of those of `failed` that are as near to the true values as their dtype brings them. Rounding is
        measured until it explains all of them, or is far from explaining the rest. Another measurement can only allow
        more.
        """
        found: frozenset[str] = frozenset()
        if not failed:
            return found
        rounding = self._rounding
        unseen: list[int] = []  # the numbers of the moves of which nobody knows yet what they make jump
        for number in range(1, num_perturbations + 1):
            unseen.append(number)
            for rounded, elsewhere in self._reruns(number, failed):
                rounding.measure(_of(failed, rounded), elsewhere)
                found = self._explained(failed)
                if len(found) == len(failed):
                    found = self._without_jumps(failed, found, unseen)
                if len(found) == len(failed):
                    return found
            if all(self._is_hopeless(pair, number) for pair in without(failed, found)):
                break
        return self._without_jumps(failed, found, unseen)

    def _is_hopeless(self, pair: Pair, num_measured: int) -> bool:
        """Whether more measurements would not explain the pair. In float64, where no jump excuses a number, the first
        one decides, if it shows any rounding: a draw shows less than a millionth of it once in a million. Of a loss it
        doesn't: the rounding of an almost perfect prediction shows only where the prediction has become small enough.
        """
        name, rounding = pair.quantity.name, self._rounding
        by_one = self.dtype == DOUBLE and rounding.effect(name, DOUBLE) > 0 and not self.of_loss([pair])
        decides = num_measured >= NUM_PERTURBATIONS or by_one
        return decides and rounding.is_far(name, pair.ours)

    def _explained(self, failed: Sequence[Pair]) -> frozenset[str]:
        """The names of those of `failed` that rounding explains, as far as it was measured."""
        names = ((pair.quantity.name, pair.ours) for pair in failed)
        return frozenset(name for name, ours in names if self._rounding.explains(name, ours))

    def _without_jumps(self, failed: Sequence[Pair], found: frozenset[str], unseen: list[int]) -> frozenset[str]:
        """Those of `found`, which are explained, that stay so where a number that jumps excuses no other. To see what
        jumps takes four reruns for each of the `unseen` moves: so only where a number needs what others have shown.
        """
        rounding, pairs = self._rounding, [pair for pair in failed if pair.quantity.name in found]
        if self.dtype != SINGLE or all(rounding.explains(pair.quantity.name, pair.ours, each=True) for pair in pairs):
            return found
        while unseen:
            number = unseen.pop()
            for back in (False, True):
                further, nearer = (self._moved_as_single(number, back, times) for times in (FURTHER, NEARER))
                rounding.find_jumps(_of(failed, further), _of(failed, nearer))
        return self._explained(failed)

    def _moved_as_single(self, number: int, back: bool, times: float) -> Values:
        """torch's values in float64, where everything is moved by a multiple of a move in float32."""
        move = partial(move_as_in_float32, move=randomly(number, back=back), times=times)
        return self.moved(DOUBLE, move, move)

    def _reruns(self, number: int, failed: Sequence[Pair]) -> Iterator[tuple[Values, Values | None]]:
        """The values to measure for the `number`-th time: those that torch computes when everything is moved, in
        several ways; and those of the loss of a smaller prediction, each with the true values there.
        """
        for back in (False, True):  # one of the two moves a value across the kink at which it lies
            random = randomly(number, back=back)
            single = self.moved(SINGLE, random, random)
            yield single, None
            if overflowed := [pair for pair in failed if not _is_finite(single, pair)]:  # in float64 they needn't
                yield _of(overflowed, self.moved(DOUBLE, random, random)), None
        yield self.moved(DOUBLE, partial(move_but_ties, seed=number), random), None
        if number <= NUM_PERTURBATIONS and self.of_loss(failed):
            single, double = (self.of_smaller_prediction(dtype, SMALLER**number) for dtype in (SINGLE, DOUBLE))
            yield single, double


def without(pairs: Sequence[Pair], names: frozenset[str]) -> list[Pair]:
    """Those of the pairs that have other names."""
    return [pair for pair in pairs if pair.quantity.name not in names]


def randomly(number: int, *, back: bool = False) -> Move:
    """Moves all values by about one eps, in the `number`-th way."""
    return partial(move_by_eps, generator=torch.Generator().manual_seed(number), back=back)


def _of(pairs: Sequence[Pair], values: Values) -> Values:
    """Those of the values that have the names of these pairs."""
    return {pair.quantity.name: values[pair.quantity.name] for pair in pairs if pair.quantity.name in values}


def _is_finite(values: Values, pair: Pair) -> bool:
    """Whether the values that have the name of this pair are finite, if there are any."""
    name = pair.quantity.name
    return name not in values or bool(np.isfinite(values[name]).all())
