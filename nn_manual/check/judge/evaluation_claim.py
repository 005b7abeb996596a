"""The claim of an evaluation: what `infer` returned, beside torch's modules in eval()."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import torch

from nn_manual.check.judge.claim import DOUBLE, Claim, Values
from nn_manual.check.judge.in_float64 import fill
from nn_manual.check.judge.rounding import Rounding
from nn_manual.check.step.evaluated import evaluations
from nn_manual.check.step.proof import Proof
from nn_manual.check.step.reference import Move
from nn_manual.check.twin.model import reference_settings


class EvaluationClaim(Claim):
    """That each `infer` of a model returns what torch's module does, on the layer's input in a step. The parameters and
    buffers are those of now: the model may have trained on since the step. `make_again` makes the step again in
    float64. Raises CannotCompare where an `infer` raises, or torch has nothing to compare it with.
    """

    def __init__(self, step: Proof, make_again: Callable[[], Proof]) -> None:
        self.evaluated, self._make_again = list(evaluations(step.recorded, step.plan)), make_again
        self._model = step.recorded.model
        self.pairs, self.dtype = [each.pair for each in self.evaluated], self._model.dtype

    @cached_property
    def _in_double(self) -> EvaluationClaim:
        if self.dtype == DOUBLE:
            return self
        again = self._make_again()
        fill(again.recorded.model, self._model.param_arena, vars(self._model.buffer))
        return EvaluationClaim(again, self._make_again)

    def in_float64(self) -> EvaluationClaim:
        """As in every claim."""
        return self._in_double

    def measured(self) -> Rounding:
        """torch's values in float64, of the same input."""
        return Rounding(self._values(DOUBLE))

    def moved(self, dtype: np.dtype[Any], move: Move, move_grad: Move) -> Values:  # noqa: ARG002 - no gradients here
        """As in every claim; only the input is moved. A model in float64 has no values in float32 here."""
        return self._values(dtype, move) if dtype in {DOUBLE, self.dtype} else {}

    @reference_settings()
    @torch.no_grad()
    def _values(self, dtype: np.dtype[Any], move: Move | None = None) -> Values:
        functions = self._in_double.evaluated if dtype == DOUBLE else self.evaluated
        values = {}
        for given, each in zip(self.evaluated, functions, strict=True):
            input = given.input.to(each.input.dtype)
            values[each.pair.quantity.name] = each.function(move(input) if move else input).numpy()
        return values
