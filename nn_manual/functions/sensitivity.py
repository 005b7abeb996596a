"""How far rounding can move the reference's values, measured: everything that it computes is moved a little."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from nn_manual.arrays import Array
from nn_manual.check.judge.moved import Moved, aten, effects_of
from nn_manual.check.judge.moved_arrays import moved_array
from nn_manual.check.twin.dispatch import Dispatch
from nn_manual.errors import raise_if_nobodys_fault
from nn_manual.functions.arguments import as_tensor
from nn_manual.functions.function_case import Change, FunctionCase, eps_of
from nn_manual.functions.handwritten import Handwritten
from nn_manual.functions.pairs import pairs, values_of_reference


def sensitivities(case: FunctionCase, *, of_operations: bool = False) -> tuple[dict[str, Array], dict[str, float]]:
    """The reference's values in float64, by name, with 0 where one isn't finite; and how far each tensor moves, in
    units. The inputs, the upstream gradients and the results of all operations are moved at random by half a unit to
    one and a half; `of_operations`, these results alone. After an exponential, they are moved by as many units as its
    exponent is large.
    """
    return _measured(case, takes_differences=not case.is_low, moves_inputs=not of_operations)


def own_sensitivities(case: FunctionCase) -> dict[str, float]:
    """How far the function's own tensors move in the same way, as far as its operations are torch's or NumPy's. Empty
    for a function that raises an error in float64.
    """
    try:
        if not isinstance(case.function, Handwritten):
            own = replace(case, reference=case.function)
            return _measured(own, takes_differences=False, moves_inputs=True)[1]
        truth = _own_values(case, 0, 0)
        effects = effects_of(lambda size, seed: _own_values(case, size, case.seed + seed), truth)
    except Exception as error:  # anyone's function may raise anything, or on arrays of another class
        raise_if_nobodys_fault(error)
        return {}
    return {name: float(effect.max(initial=0.0)) for name, effect in effects.items()}


def _own_values(case: FunctionCase, size: float, seed: int) -> dict[str, Array]:
    """What a handwritten function returns in float64, with all that it computes moved."""
    assert isinstance(case.function, Handwritten)
    backward, generator = case.function.backward, np.random.default_rng(seed)

    def moved(array: Any) -> Any:
        if isinstance(array, np.ndarray):
            return moved_array(array.astype(np.float64), size, generator)
        return _through(array)

    function, change = case.function, as_double
    if size:
        function = replace(function, backward=lambda saved, *grads: backward(saved, *map(moved, grads)))
        change = moved
    with Moved(size, seed, 0) if size else nullcontext():
        of_both = pairs(replace(case, function=function, change=change, watched=False))
        return {pair.quantity.name: np.asarray(pair.ours) for pair in of_both}


def _measured(
    case: FunctionCase, *, takes_differences: bool, moves_inputs: bool
) -> tuple[dict[str, Array], dict[str, float]]:
    truth = _values(replace(case, change=as_double))
    most = 1 / eps_of(case.dtype) if takes_differences else 0
    change = _through if moves_inputs else as_double
    effects = effects_of(lambda size, seed: _moved(case, change, Moved(size, case.seed + seed, most)), truth)
    largest = {name: float(effect.max(initial=0.0)) for name, effect in effects.items()}
    return {name: np.where(np.isfinite(values), values, 0.0) for name, values in truth.items()}, largest


def as_double(array: Any) -> Any:
    """The numpy array or the tensor in float64."""
    return array.astype(np.float64) if isinstance(array, np.ndarray) else array.double()


class _InDouble(Dispatch):
    """Where a definition makes float32 of its inputs, as that of a norm does, it makes float64 of them."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func.overloadpacket is aten._to_copy and kwargs.get("dtype") == torch.float32:
            kwargs |= {"dtype": torch.float64}
        return func(*args, **kwargs)


def _values(case: FunctionCase) -> dict[str, Array]:
    with _InDouble():
        return {name: value.numpy() for name, value in values_of_reference(case).items()}


def _through(array: Any) -> torch.Tensor:
    """The values as the result of an operation: so they are moved."""
    return torch.mul(as_tensor(array).double(), 1.0)


def _moved(case: FunctionCase, change: Change, moved: Moved) -> dict[str, Array]:
    with moved, sdpa_kernel(SDPBackend.MATH):  # so that each step of an attention is moved, not its result alone
        return _values(replace(case, change=change))
