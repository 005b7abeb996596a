"""The claim of an evaluation: what `infer` returned, beside torch's modules in eval()."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from nn_manual.check.judge.claim import DOUBLE, Claim, Values
from nn_manual.check.judge.rounding import Rounding
from nn_manual.check.step.evaluation import Evaluated
from nn_manual.check.step.reference import Move


class EvaluationClaim(Claim):
    """What each `infer` of a model made of its input. `make_in_float64` evaluates the same step again in float64."""

    def __init__(
        self,
        evaluated: Sequence[Evaluated],
        dtype: np.dtype[Any],
        make_in_float64: Callable[[], Sequence[Evaluated]],
    ) -> None:
        self.pairs, self.dtype = [each.pair for each in evaluated], dtype
        self._evaluated, self._make_in_float64 = evaluated, make_in_float64
        self._in_double: Sequence[Evaluated] = evaluated if self.dtype == DOUBLE else ()

    def in_float64(self) -> EvaluationClaim:
        """As of every claim."""
        self._in_double = self._make_in_float64()
        return EvaluationClaim(self._in_double, DOUBLE, self._make_in_float64)

    def measured(self) -> Rounding:
        """torch's values in float64, of the same input."""
        return Rounding(self._values(DOUBLE, _stay))

    def moved(self, dtype: np.dtype[Any], move: Move, move_grad: Move) -> Values:  # noqa: ARG002 - no gradients here
        """As of every claim; the input alone is moved. There is nothing in float32 of a model in float64."""
        return self._values(dtype, move) if dtype in {DOUBLE, self.dtype} else {}

    @torch.no_grad()
    def _values(self, dtype: np.dtype[Any], move: Move) -> Values:
        functions = self._in_double if dtype == DOUBLE else self._evaluated
        values = {}
        for given, each in zip(self._evaluated, functions, strict=True):
            input = given.input.to(each.input.dtype)
            values[each.pair.quantity.name] = each.function(move(input)).numpy()
        return values


def _stay(tensor: torch.Tensor) -> torch.Tensor:
    return tensor
