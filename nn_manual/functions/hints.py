"""What a wrong gradient is instead, measured: the reference runs again, with what the mistake would leave out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch

from nn_manual.arrays import Array
from nn_manual.check.compare.comparison import Pair
from nn_manual.functions.arguments import as_tensor
from nn_manual.functions.callables import dtype_name, is_array
from nn_manual.functions.constant_reductions import describe_constant
from nn_manual.functions.function_case import UPSTREAMS, Change, FunctionCase
from nn_manual.functions.pairs import values_of_reference
from nn_manual.functions.swapped import equals

#: An axis with more entries isn't tried: the reference runs once for each.
LONGEST_AXIS = 64


def describe_cause(case: FunctionCase, first: Pair, compared: Sequence[Pair]) -> str:
    """A sentence if the first wrong gradient is that of one of these mistakes; else an empty one. In the rows, on drawn
    inputs, nobody waits for it.
    """
    if case.drawn or not case.watched or not first.quantity.name.startswith("grad_"):
        return ""
    return next(filter(None, _causes(case, first, compared)), "")


def _causes(case: FunctionCase, first: Pair, compared: Sequence[Pair]) -> Iterator[str]:
    yield _adds_up(first, compared)
    yield _ignores_upstream(case, first)
    yield _counts_once(case, first)
    yield _of_own_outputs(case, first)
    yield _in_another_order(first)
    yield _divided(case, first)
    yield describe_constant(case, first)


def _adds_up(first: Pair, compared: Sequence[Pair]) -> str:
    """Under the second upstream gradient, the sum of both."""
    name, _, kind = first.quantity.name.partition(", ")
    before = next((pair for pair in compared if pair.quantity.name == f"{name}, {UPSTREAMS[0]} upstream"), None)
    if before is None or kind.startswith(UPSTREAMS[0]) or not equals(first, first.reference + before.reference):
        return ""
    return "the sum of this gradient and of that of the backward before: gradients add up from call to call"


def _ignores_upstream(case: FunctionCase, first: Pair) -> str:
    if not equals(first, _under(case, first, torch.ones_like)):
        return ""
    return "the gradient of the output is ignored: this is the gradient under ones"


def _counts_once(case: FunctionCase, first: Pair) -> str:
    """Of integers that repeat, the last one has overwritten the others, or only the first one was looked at."""
    for leaf in case.arguments.leaves:
        if not (is_array(leaf) and "int" in dtype_name(leaf)):
            continue
        indices = as_tensor(leaf).cpu().numpy()
        flat = indices.reshape(-1)
        firsts, lasts = (np.unique(each, return_index=True)[1] for each in (flat, flat[::-1]))
        if len(firsts) == len(flat):
            continue
        for kept in (firsts, len(flat) - 1 - lasts):
            once = np.zeros(len(flat))
            once[kept] = 1
            if equals(first, _under(case, first, _masked(once.reshape(indices.shape)))):
                return "an index that repeats counts once: the gradients of all its places must add up"
    return ""


def _of_own_outputs(case: FunctionCase, first: Pair) -> str:
    """Along an axis, the Jacobian's diagonal alone: each entry has the gradient of the output in its own place."""
    shape = first.ours.shape
    for axis, length in enumerate(shape):
        if not 1 < length <= LONGEST_AXIS:
            continue
        parts = []
        for i in range(length):
            found = _under(case, first, _alone(axis - len(shape), i, length))
            if found.shape != shape:
                break
            parts.append(found.select(axis, i))
        if len(parts) == length and equals(first, torch.stack(parts, axis)):
            words = "its own output's gradient alone; what it does to the others is left out"
            return f"along axis {axis} each entry has {words}"
    return ""


def _in_another_order(first: Pair) -> str:
    """The right numbers, reversed along an axis or in another order along it. Two opposite numbers that are swapped
    have the wrong sign.
    """
    axes = [axis for axis, length in enumerate(first.ours.shape) if length > 2]
    for axis in axes:
        if equals(first, first.reference.flip(axis)):
            return f"the right numbers, reversed along axis {axis}"
    for axis in axes:
        if equals(first._replace(ours=np.sort(first.ours, axis)), first.reference.sort(axis).values):
            return f"the right numbers in another order along axis {axis}"
    return ""


def _divided(case: FunctionCase, first: Pair) -> str:
    """A single number that is a mean over an input's entries, where the right one is their sum."""
    if first.ours.size > 1:
        return ""
    for name, leaf in zip(case.arguments.names, case.arguments.leaves, strict=True):
        size = as_tensor(leaf).numel() if is_array(leaf) else 0
        if size > 1 and equals(first, first.reference / size):
            return f"1/{size} of the reference: divided by the number of entries of {name}"
    return ""


def _under(case: FunctionCase, pair: Pair, change: Change) -> torch.Tensor:
    """The reference's gradient of this name where the gradients of the outputs are changed; empty if there is none."""
    upstream = case.upstream
    found = values_of_reference(replace(case, upstream=lambda tensor: change(upstream(tensor)))).get(pair.quantity.name)
    return torch.empty(0) if found is None else found.to(pair.reference.dtype)


def _masked(mask: Array) -> Change:
    """Only those places of the leading axes are left that the mask says."""

    def masked(tensor: torch.Tensor) -> torch.Tensor:
        if tuple(tensor.shape[: mask.ndim]) != mask.shape:
            return tensor
        return tensor * torch.from_numpy(mask).to(tensor).reshape(mask.shape + (1,) * (tensor.ndim - mask.ndim))

    return masked


def _alone(axis: int, i: int, length: int) -> Change:
    """Only the i-th entry along an axis, counted from the last one, is left."""

    def alone(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.ndim < -axis or tensor.shape[axis] != length:
            return tensor
        kept = torch.zeros_like(tensor)
        kept.select(axis, i).copy_(tensor.select(axis, i))
        return kept

    return alone
