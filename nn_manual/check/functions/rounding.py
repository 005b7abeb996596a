"""The arbiter of a function: where a value is beyond the tolerance, is the formula wrong, or is it rounding?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from nn_manual.check.comparison import Pair, compare
from nn_manual.check.functions.callables import as_tensor
from nn_manual.check.functions.pairs import Case, pairs
from nn_manual.check.verdict.rounding import NUM_PERTURBATIONS, Rounding, move_but_ties, move_by_eps


def beyond_by_rounding(case: Case, failed: Sequence[Pair]) -> frozenset[str]:
    """The names of those of `failed` that are beyond the tolerance by rounding; none where a formula is wrong.

    The arbiter of a training step decides in the same way: the formulas must agree in float64, and our values must be
    as near to the reference's float64 ones as its own are, in float32 and in float64, with every input and upstream
    gradient moved by one eps. A function that can't compute in float64 is not excused.
    """
    generator = torch.Generator().manual_seed(case.seed)

    def move(array: Any) -> torch.Tensor:
        return move_by_eps(as_tensor(array).float(), generator)

    def move_in_double(array: Any) -> torch.Tensor:
        return move_but_ties(as_tensor(array).double(), case.seed)

    moved = replace(case, function=case.reference, change=move)
    moved_in_double = replace(moved, change=move_in_double)
    try:
        in_double = {pair.quantity.name: pair for pair in pairs(replace(case, change=_double))}
        rounding = Rounding({name: pair.reference.numpy() for name, pair in in_double.items()})
        for _ in range(NUM_PERTURBATIONS):
            rounding.measure({pair.quantity.name: pair.reference.numpy() for pair in pairs(moved)})
        rounding.measure({pair.quantity.name: pair.reference.numpy() for pair in pairs(moved_in_double)})
    except Exception:  # a function or a reference may raise anything where it can't compute in another dtype
        return frozenset()
    if not all(compare(*pair).passed or rounding.explains(name, pair.ours) for name, pair in in_double.items()):
        return frozenset()
    return frozenset(pair.quantity.name for pair in failed if rounding.explains(pair.quantity.name, pair.ours))


def _double(array: Any) -> Any:
    return array.astype(np.float64) if isinstance(array, np.ndarray) else array.double()
