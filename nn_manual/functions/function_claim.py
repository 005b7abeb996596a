"""The claim of a case of a function: its outputs and gradients, beside its reference's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import torch

from nn_manual.check.compare.comparison import Pair
from nn_manual.check.judge.claim import DOUBLE, Claim, Values
from nn_manual.check.judge.rounding import Rounding
from nn_manual.check.step.reference import Move
from nn_manual.check.twin.model import TORCH_DTYPES
from nn_manual.functions.arguments import as_tensor
from nn_manual.functions.function_case import FunctionCase
from nn_manual.functions.pairs import pairs, values_of_reference
from nn_manual.functions.sensitivity import as_double


class FunctionClaim(Claim):
    """What a function computed of a case in float32 or float64, in these pairs."""

    def __init__(self, case: FunctionCase, compared: Sequence[Pair]) -> None:
        self.case, self.pairs, self.dtype = case, compared, case.dtype

    @cached_property
    def _in_double(self) -> FunctionClaim:
        if self.dtype == DOUBLE:
            return self
        case = replace(self.case, change=as_double)
        return FunctionClaim(case, list(pairs(case)))

    def in_float64(self) -> FunctionClaim:
        """As in every claim."""
        return self._in_double

    def measured(self) -> Rounding:
        """The reference's values in float64, of the same inputs and upstream gradients."""
        return Rounding({pair.quantity.name: pair.reference.numpy() for pair in self._in_double.pairs})

    def moved(self, dtype: np.dtype[Any], move: Move, move_grad: Move) -> Values:  # noqa: ARG002 - it has one change
        """As in every claim. Only inputs and upstream gradients are moved: what lies between them isn't seen."""

        def change(array: Any) -> torch.Tensor:
            return move(as_tensor(array).to(TORCH_DTYPES[dtype.name]))

        values = values_of_reference(replace(self.case, change=change))
        # As in a pair, 0 where it isn't finite: where float32 overflows, as log(1 - p) does, float64 has few digits.
        return {name: value.nan_to_num(0, 0, 0).numpy() for name, value in values.items()}
