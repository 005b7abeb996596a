"""How far rounding takes the reference's values: all that it computes is moved, and what follows is measured."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from nn_manual.arrays import Array
from nn_manual.check.functions.arguments import as_tensor
from nn_manual.check.functions.case import Case
from nn_manual.check.functions.pairs import values_of_reference
from nn_manual.check.verdict.rounding import NUM_PERTURBATIONS

#: By which fraction everything is moved, once and again: far above float64's eps, so that its own rounding is nothing
#: beside it, and small enough for the effects to be in proportion to it.
MOVE, LARGER_MOVE = 2.0**-40, 2.0**-36

#: An effect that is in proportion grows by 16 from one move to the other. At a kink it jumps, and stays as it is: that
#: is no rounding. It may grow by less than 16, as each is rounded, but not by less than this.
PROPORTIONAL = 8.0


def sensitivities(case: Case) -> tuple[dict[str, Array], dict[str, float]]:
    """The reference's values in float64, by name, 0 where there is no number; and how far each tensor goes, for a unit
    by which its inputs, the upstream gradients and the results of all operations are moved: each by half to one and a
    half of it, at random.
    """
    truth = _values(replace(case, change=as_double))
    largest = dict.fromkeys(truth, 0.0)
    for draw in range(NUM_PERTURBATIONS):
        effects = [_effects(case, truth, move, case.seed + draw) for move in (MOVE, LARGER_MOVE)]
        for name in truth:
            one, other = (effect[name] for effect in effects)
            proportional = np.where(other >= PROPORTIONAL * one, one, 0.0)  # of NaN neither
            largest[name] = max(largest[name], float(proportional.max(initial=0.0)) / MOVE)
    return {name: np.where(np.isfinite(values), values, 0.0) for name, values in truth.items()}, largest


def as_double(array: Any) -> Any:
    """The numpy array or the tensor in float64."""
    return array.astype(np.float64) if isinstance(array, np.ndarray) else array.double()


def _values(case: Case) -> dict[str, Array]:
    return {name: value.numpy() for name, value in values_of_reference(case).items()}


def _effects(case: Case, truth: dict[str, Array], move: float, seed: int) -> dict[str, Array]:
    moved = _Moved(move, seed)

    def changed(array: Any) -> torch.Tensor:
        return torch.mul(as_tensor(array).double(), 1.0)  # an operation, whose result is moved

    with moved:
        values = _values(replace(case, change=changed))
    with np.errstate(invalid="ignore"):
        return {name: np.abs(values[name] - true) for name, true in truth.items()}


#: These compute nothing.
COPIES = {torch.ops.aten.clone.default, torch.ops.aten._to_copy.default}


class _Moved(TorchDispatchMode):  # type: ignore[no-untyped-call] # torch has no types here
    """Moves what every operation returns, but for views, and for what an operation writes into."""

    def __init__(self, size: float, seed: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # as above
        self.size, self.generator = size, torch.Generator().manual_seed(seed)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func in COPIES or any(returned.alias_info is not None for returned in func._schema.returns):
            return result
        if isinstance(result, tuple | list):
            return type(result)(map(self._move, result))
        return self._move(result)

    def _move(self, tensor: Any) -> Any:
        if not (isinstance(tensor, torch.Tensor) and tensor.is_floating_point() and tensor.layout == torch.strided):
            return tensor
        signed = 2 * torch.rand(tensor.shape, generator=self.generator, dtype=torch.float64) - 1
        signed = signed + signed.sign() / 2
        return tensor + tensor * (self.size * signed).to(tensor)
