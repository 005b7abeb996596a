"""How far rounding takes the reference's values: all that it computes is moved, and what follows is measured."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

from nn_manual.arrays import Array
from nn_manual.check.functions.arguments import as_tensor
from nn_manual.check.functions.case import Case, eps_of
from nn_manual.check.functions.pairs import values_of_reference
from nn_manual.check.verdict.rounding import NUM_PERTURBATIONS
from nn_manual.errors import raise_if_out_of_memory

#: By which fraction everything is moved, once and again: far above float64's eps, so that its own rounding is nothing
#: beside it, and small enough for the effects to be in proportion to it.
MOVES = 2.0**-40, 2.0**-36

#: An effect that is in proportion grows by 16 from one move to the other. At a kink it jumps, and stays as it is: that
#: is no rounding. It may grow by less than 16, as each is rounded, but not by less than this.
PROPORTIONAL = 8.0


def sensitivities(case: Case) -> tuple[dict[str, Array], dict[str, float]]:
    """The reference's values in float64, by name, 0 where there is no number; and how far each tensor goes, for a unit
    by which its inputs, the upstream gradients and the results of all operations are moved: each by half to one and a
    half of it, at random; and by so many of them as an exponent was large, once one was taken.
    """
    return _measured(case, takes_differences=not case.is_low)


def own_sensitivities(case: Case) -> dict[str, float]:
    """How far the function's own tensors go in the same way, as far as its operations are torch's; nothing of a pair,
    or of what doesn't compute in float64.
    """
    if isinstance(case.function, tuple):
        return {}
    try:
        return _measured(replace(case, reference=case.function), takes_differences=False)[1]
    except Exception as error:  # anyone's function may raise anything
        raise_if_out_of_memory(error)
        return {}


def _measured(case: Case, *, takes_differences: bool) -> tuple[dict[str, Array], dict[str, float]]:
    truth = _values(replace(case, change=as_double))
    largest = dict.fromkeys(truth, 0.0)
    most = 1 / eps_of(case.dtype) if takes_differences else 0
    for draw in range(NUM_PERTURBATIONS):
        effects = [_effects(case, truth, _Moved(move, case.seed + draw, most)) for move in MOVES]
        for name in truth:
            one, other = (effect[name] for effect in effects)
            proportional = np.where(other >= PROPORTIONAL * one, one, 0.0)  # of NaN neither
            largest[name] = max(largest[name], float(proportional.max(initial=0.0)) / MOVES[0])
    return {name: np.where(np.isfinite(values), values, 0.0) for name, values in truth.items()}, largest


def as_double(array: Any) -> Any:
    """The numpy array or the tensor in float64."""
    return array.astype(np.float64) if isinstance(array, np.ndarray) else array.double()


def _values(case: Case) -> dict[str, Array]:
    return {name: value.numpy() for name, value in values_of_reference(case).items()}


def _effects(case: Case, truth: dict[str, Array], moved: _Moved) -> dict[str, Array]:
    def changed(array: Any) -> torch.Tensor:
        return torch.mul(as_tensor(array).double(), 1.0)  # an operation, whose result is moved

    with moved, sdpa_kernel(SDPBackend.MATH):  # which moves the steps of an attention, not its result alone
        values = _values(replace(case, change=changed))
    with np.errstate(invalid="ignore"):
        return {name: np.abs(values[name] - true) for name, true in truth.items()}


_ATEN: Any = torch.ops.aten
#: These round nothing. What amax returns is equal to one of its inputs, and its backward finds that one so.
EXACT = {_ATEN.clone, _ATEN._to_copy, _ATEN.amax, _ATEN.amin, _ATEN.max, _ATEN.min, _ATEN.maximum, _ATEN.minimum}


#: These take exponentials of differences: exp(x - max), or in a kernel that saves one number a row exp(x - logsumexp).
#: Rounded, that is off by a fraction of x itself, wherever the difference is near 0. So a probability of 1 among logits
#: of 1000 is good to 1000 roundings, and so is all that is made of it: a row of them doesn't add up to 1 any more. From
#: 1 / eps on, one rounding would be all of the probability, and excuse any: so large is the -1e9 of a mask, whose
#: probability is exactly 0, and such exponents don't count.
EXPONENTIALS = {_ATEN.exp, _ATEN._softmax, _ATEN._safe_softmax, _ATEN._log_softmax}


class _Moved(TorchDispatchMode):  # type: ignore[no-untyped-call] # torch has no types here
    """Moves what every operation returns, but for views, and for what an operation writes into. Exponents below
    `most_exponent` count, none where it is 0.
    """

    def __init__(self, size: float, seed: int, most_exponent: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # as above
        self.size, self.generator = size, torch.Generator().manual_seed(seed)
        self.most_exponent, self.exponent = most_exponent, 1.0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        operation = func.overloadpacket
        if operation in EXACT or any(returned.alias_info is not None for returned in func._schema.returns):
            return result
        of_difference = operation in EXPONENTIALS and self.most_exponent > 0
        if of_difference:
            exponents = args[0].abs()
            exponents = exponents[exponents < self.most_exponent]
            if exponents.numel():
                self.exponent = max(self.exponent, float(exponents.max()))
        if isinstance(result, tuple | list):
            return type(result)(map(self._move, result))
        return self._move(result, self.exponent if of_difference and operation is _ATEN._log_softmax else 0)

    def _move(self, tensor: Any, magnitude: float = 0) -> Any:
        """At random, by a fraction of itself, or of a magnitude of which it is a difference."""
        if not (isinstance(tensor, torch.Tensor) and tensor.is_floating_point() and tensor.layout == torch.strided):
            return tensor
        signed = torch.rand(tensor.shape, generator=self.generator, dtype=torch.float64).mul_(2).sub_(1)
        signed = signed.add_(signed.sign(), alpha=0.5).mul_(self.size).to(tensor)
        return tensor + magnitude * signed if magnitude else tensor.addcmul(signed, tensor, value=self.exponent)
