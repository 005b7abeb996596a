"""The rows of other gradients of the output: other layouts and magnitudes, zero in part or everywhere, and absent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from nn_manual import streams
from nn_manual.check.compare.comparison import CannotCompare
from nn_manual.functions.battery.absent_gradients import absent
from nn_manual.functions.battery.trial import Run, Skip, Trial, Wrong, agree, on_all_sizes
from nn_manual.functions.callables import by_autograd, dtype_name, floats, is_array
from nn_manual.functions.function_case import FunctionCase
from nn_manual.streams import Stream


def transposed(tensor: torch.Tensor) -> torch.Tensor:
    """The same values, the last axis first in memory."""
    order = [tensor.ndim - 1, *range(tensor.ndim - 1)]
    back = [*range(1, tensor.ndim), 0]
    return tensor.permute(order).contiguous().permute(back) if tensor.ndim > 1 else tensor


def permuted(tensor: torch.Tensor) -> torch.Tensor:
    """The same values, the two axes before the last exchanged in memory, as a transpose of heads and time, or of time
    and batch, leaves them.
    """
    return tensor.transpose(-3, -2).contiguous().transpose(-3, -2) if tensor.ndim > 2 else tensor


def expanded(tensor: torch.Tensor) -> torch.Tensor:
    """The first value everywhere, without memory of its own, as the backward of a sum gives it."""
    return tensor[(slice(0, 1),) * tensor.ndim].clone().expand(tensor.shape) if tensor.numel() else tensor


def strided(tensor: torch.Tensor) -> torch.Tensor:
    """The same values, with a gap behind each."""
    if tensor.ndim == 0:
        return tensor
    wide = tensor.new_full((*tensor.shape, 2), -7 if tensor.dtype != torch.bool else 0)
    wide[..., 0] = tensor
    return wide[..., 0]


def rows_apart(tensor: torch.Tensor) -> torch.Tensor:
    """The same values, with a gap behind each row: a part of wider rows has it, as `chunk` gives it, and what the
    backward of `torch.cat` gives.
    """
    if tensor.ndim < 2:
        return tensor
    *rows, length = tensor.shape
    wide = tensor.new_full((*rows, length + 3), -7 if tensor.dtype != torch.bool else 0)
    wide[..., :length] = tensor
    return wide[..., :length]


def with_offset(tensor: torch.Tensor) -> torch.Tensor:
    """The same values, behind three others in the same storage."""
    memory = tensor.new_full((tensor.numel() + 3,), -7 if tensor.dtype != torch.bool else 0)
    memory[3:] = tensor.reshape(-1)
    return memory[3:].view(tensor.shape)


def channels_last(tensor: torch.Tensor) -> torch.Tensor:
    """The same values of a batch of images or volumes, axis 1 last in memory, as convolutions often return them."""
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    return tensor.contiguous(memory_format=formats[tensor.ndim]) if tensor.ndim in formats else tensor


LAYOUTS = {
    "transposed": transposed,
    "permuted": permuted,
    "expanded": expanded,
    "strided": strided,
    "rows apart": rows_apart,
    "with an offset": with_offset,
    "channels_last": channels_last,
}


#: A loss that is scaled up for float16 has large gradients, and a mean over many rows has small ones. The factors are
#: powers of two: a backward is linear in the gradient of the output, so they change no rounding.
FACTORS = {"large": 2.0**16, "small": 2.0**-20}


#: For which numbers of axes a layout is, if it isn't for all.
AXES: dict[Callable[[torch.Tensor], torch.Tensor], Callable[[int], bool]] = {
    permuted: lambda axes: axes > 2,
    rows_apart: lambda axes: axes > 1,
    channels_last: lambda axes: axes in (4, 5),
}


def layouts_of(tensors: Iterable[Any]) -> dict[str, Callable[[torch.Tensor], torch.Tensor]]:
    """The layouts that at least one of the tensors or arrays can have: only images and volumes have channels."""
    found = {tensor.ndim for tensor in tensors if is_array(tensor)}
    return {name: layout for name, layout in LAYOUTS.items() if layout not in AXES or any(map(AXES[layout], found))}


#: In torch's message about pairs of numbers that are viewed as complex ones, where they begin at an odd place.
ODD_OFFSET = "storage_offset divisible by 2"


def in_layout(trial: Trial, named: Mapping[str, Any], run: Callable[[FunctionCase], object]) -> None:
    """Run with the layout that `run` gives to all of these tensors or arrays, on all sizes; then on the usual one with
    some alone in it: this shows a kernel that takes one's strides for another's.
    """
    try:
        on_all_sizes(trial, run)
    except (Wrong, CannotCompare) as problem:
        if ODD_OFFSET in str(problem):
            raise Skip("torch.view_as_complex refuses an odd offset in memory") from problem
        raise
    matrices = [name for name, array in named.items() if is_array(array) and array.ndim > 1]
    for alone in _parts(matrices):
        try:
            run(replace(trial.case, alone=frozenset(alone), upstreams=trial.case.upstreams[:1]))
        except (Wrong, CannotCompare) as problem:
            raise Wrong(f"where {' and '.join(alone)} alone {_has(alone)} this layout: {problem}") from problem


def _has(names: Sequence[str]) -> str:
    return "has" if len(names) == 1 else "have"


def _parts(names: Sequence[str]) -> Iterator[list[str]]:
    """Parts of several names, as few as there can be so that of each two one part has the first alone, and another the
    second: those whose number has a binary digit, and those that lack it.
    """
    for digit in range((len(names) - 1).bit_length() if names else 0):
        for value in (1, 0):
            yield [name for i, name in enumerate(names) if i >> digit & 1 == value]


def grad_output(trial: Trial) -> Iterator[tuple[str, Run]]:
    """Gradients of the outputs as autograd passes them: seldom contiguous, large or small, sometimes zero or absent,
    everywhere or in part.
    """
    case = trial.case
    outputs = by_autograd(case.reference, case.arguments, case.leaves(), case.wants()).outputs
    differentiable = {name: output for name, output in outputs.items() if output.requires_grad}
    for name, layout in layouts_of(outputs.values()).items():
        yield name, lambda layout=layout: in_layout(trial, differentiable, lambda case: _lain_out(case, layout))  # type: ignore[misc] # a default
    for name, factor in FACTORS.items():
        yield name, lambda factor=factor: _multiplied(trial, factor)  # type: ignore[misc] # a default
    yield "in part", lambda: _in_part(trial.case, max((output.ndim for output in outputs.values()), default=0))
    yield "zero", lambda: agree(replace(trial.case, upstream=torch.zeros_like))
    yield "absent", lambda: absent(trial)


def _lain_out(case: FunctionCase, layout: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """An expanded gradient is one number everywhere. Under it the gradient of a norm is all rounding, which is excused
    as on drawn inputs.
    """
    if layout is expanded and "grad_output" in case.habits:
        raise Skip("it writes into the gradient of its output, which has one place in memory here")
    agree(replace(case, upstream=layout, drawn=case.drawn or layout is expanded))


def _multiplied(trial: Trial, factor: float) -> None:
    """Gradients far from 1 show a kernel that clips large ones, or loses small ones."""
    if any(floats(leaf) and dtype_name(leaf) == "float16" for leaf in trial.case.leaves()):
        raise Skip("float16 has no room for such gradients")
    agree(replace(trial.case, upstream=lambda tensor: tensor * factor))


def _in_part(case: FunctionCase, most_axes: int) -> None:
    """Along each axis the first and the last entry alone have a gradient that isn't zero, as `y[:, 0].sum()` gives it;
    then a random half of all numbers, as a masked loss gives it. Where such a gradient reaches little, an input's
    gradient may be all rounding: this is excused as on drawn inputs.
    """
    changes = {
        f"at [{index}] along axis {axis}": partial(_entry_alone, axis=axis, index=index)
        for axis in range(-1, -most_axes - 1, -1)
        for index in (0, -1)
    }
    for where, change in {**changes, "in a random half": partial(_half, seed=case.seed)}.items():
        try:
            agree(replace(case, upstream=change, drawn=True))
        except (Wrong, CannotCompare) as problem:
            raise Wrong(f"where it is zero except {where}: {problem}") from problem


def _entry_alone(tensor: torch.Tensor, axis: int, index: int) -> torch.Tensor:
    """Zero except for one entry along an axis, if there is such an axis."""
    if tensor.ndim < -axis or not tensor.shape[axis]:
        return tensor
    found = torch.zeros_like(tensor)
    found.select(axis, index).copy_(tensor.select(axis, index))
    return found


def _half(tensor: torch.Tensor, seed: int) -> torch.Tensor:
    """Zero except for a random half of the numbers, the same half each time."""
    drawn = torch.as_tensor(streams.generator(seed, Stream.HALF).random(tuple(tensor.shape)))
    return torch.where(drawn.to(tensor.device) < 0.5, tensor, 0)
