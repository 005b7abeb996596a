"""The arbiter of a function: where a value is beyond the tolerance, is the formula wrong, or is it rounding?"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from nn_manual.arrays import Array
from nn_manual.check.comparison import Pair, compare
from nn_manual.check.functions.callables import as_tensor
from nn_manual.check.functions.pairs import Case, pairs
from nn_manual.check.tolerances import MARGIN
from nn_manual.check.verdict.arbiter import NUM_PERTURBATIONS, distance, eps_of, larger_effect, move_by_eps


def beyond_by_rounding(case: Case, failed: Sequence[Pair]) -> frozenset[str]:
    """The names of those of `failed` that are beyond the tolerance by rounding; none where a formula is wrong.

    The arbiter of a training step decides in the same way: the formulas must agree in float64, and our values must be
    as near to the reference's float64 ones as its own float32 ones are, with every input and upstream gradient moved by
    one eps. A function that can't compute in float64 is not excused.
    """
    generator = torch.Generator().manual_seed(case.seed)

    def move(array: Any) -> torch.Tensor:
        return move_by_eps(as_tensor(array).float(), generator)

    moved = replace(case, function=case.reference, change=move)
    try:
        in_double = {pair.quantity.name: pair for pair in pairs(replace(case, change=_double))}
        rounded = [{pair.quantity.name: pair.reference for pair in pairs(moved)} for _ in range(NUM_PERTURBATIONS)]
    except Exception:  # a function or a reference may raise anything where it can't compute in another dtype
        return frozenset()
    truth = {name: pair.reference.numpy() for name, pair in in_double.items()}
    effect = dict.fromkeys(truth, 0.0)
    for name, references in itertools.product(truth, rounded):
        away = distance(references[name].numpy(), truth[name])
        effect[name] = larger_effect(effect[name], away / eps_of(np.dtype(np.float32)))

    def is_near(name: str, ours: Array) -> bool:
        return distance(ours, truth[name]) <= MARGIN * effect[name] * eps_of(ours.dtype)

    if not all(compare(*pair).passed or is_near(name, pair.ours) for name, pair in in_double.items()):
        return frozenset()
    return frozenset(pair.quantity.name for pair in failed if is_near(pair.quantity.name, pair.ours))


def _double(array: Any) -> Any:
    return array.astype(np.float64) if isinstance(array, np.ndarray) else array.double()
