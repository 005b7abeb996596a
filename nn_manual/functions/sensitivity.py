"""How far rounding can move the reference's values, measured: everything that it computes is moved a little."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from nn_manual.arrays import Array
from nn_manual.check.judge.moved import Moved, effects_of
from nn_manual.errors import raise_if_nobodys_fault
from nn_manual.functions.arguments import as_tensor
from nn_manual.functions.function_case import FunctionCase, eps_of
from nn_manual.functions.handwritten import Handwritten
from nn_manual.functions.pairs import values_of_reference


def sensitivities(case: FunctionCase) -> tuple[dict[str, Array], dict[str, float]]:
    """The reference's values in float64, by name, with 0 where one isn't finite; and how far each tensor moves, in
    units. The inputs, the upstream gradients and the results of all operations are moved at random by half a unit to
    one and a half. After an exponential, they are moved by as many units as its exponent is large.
    """
    return _measured(case, takes_differences=not case.is_low)


def own_sensitivities(case: FunctionCase) -> dict[str, float]:
    """How far the function's own tensors move in the same way, as far as its operations are torch's. Empty for a
    handwritten one, and for a function that raises an error in float64.
    """
    if isinstance(case.function, Handwritten):
        return {}
    try:
        return _measured(replace(case, reference=case.function), takes_differences=False)[1]
    except Exception as error:  # anyone's function may raise anything
        raise_if_nobodys_fault(error)
        return {}


def _measured(case: FunctionCase, *, takes_differences: bool) -> tuple[dict[str, Array], dict[str, float]]:
    truth = _values(replace(case, change=as_double))
    most = 1 / eps_of(case.dtype) if takes_differences else 0
    effects = effects_of(lambda size, seed: _moved(case, Moved(size, case.seed + seed, most)), truth)
    largest = {name: float(effect.max(initial=0.0)) for name, effect in effects.items()}
    return {name: np.where(np.isfinite(values), values, 0.0) for name, values in truth.items()}, largest


def as_double(array: Any) -> Any:
    """The numpy array or the tensor in float64."""
    return array.astype(np.float64) if isinstance(array, np.ndarray) else array.double()


def _values(case: FunctionCase) -> dict[str, Array]:
    return {name: value.numpy() for name, value in values_of_reference(case).items()}


def _moved(case: FunctionCase, moved: Moved) -> dict[str, Array]:
    def changed(array: Any) -> torch.Tensor:
        return torch.mul(as_tensor(array).double(), 1.0)  # an operation, whose result is moved

    with moved, sdpa_kernel(SDPBackend.MATH):  # so that each step of an attention is moved, not its result alone
        return _values(replace(case, change=changed))
