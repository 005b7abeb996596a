"""The rows of a NaN or an infinity among the inputs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import torch

from nn_manual.check.compare.comparison import CannotCompare
from nn_manual.functions.arguments import as_tensor
from nn_manual.functions.battery.one_run import values_of, values_of_its_reference
from nn_manual.functions.battery.trial import Run, Skip, Trial, Wrong
from nn_manual.functions.callables import floats
from nn_manual.functions.exceptions import naming
from nn_manual.functions.function_case import FunctionCase

VALUES = {"NaN": math.nan, "inf": math.inf, "-inf": -math.inf}
#: How far a tensor may move and still count as the same, as a fraction of its largest value: far more than rounding in
#: another order, in 16 bits, too.
SAME = 0.02

#: The outputs and gradients of one run, by name.
Values: TypeAlias = dict[str, torch.Tensor]


def not_finite(trial: Trial) -> Iterator[tuple[str, Run]]:
    """A row of a batch is NaN, or infinite: the other rows keep their outputs and gradients where the reference's do.
    Without a reference, nobody knows where they do.
    """
    if trial.reference is not None:
        for name, value in VALUES.items():
            yield name, lambda name=name, value=value: _in_a_row(trial.case, name, value)  # type: ignore[misc] # defaults


class _Spoilt(NamedTuple):
    """What the function and its reference compute where one row of an input isn't finite, which `where` says."""

    where: str
    row: int
    ours: Values
    theirs: Values


def _in_a_row(case: FunctionCase, called: str, value: float) -> str | None:
    """The function is compared with itself, in those tensors in which the reference keeps the rows apart. In the row
    that isn't finite nothing is wrong: formulas that are equal for numbers differ there. But a finite output in the
    place of the reference's NaN is worth a note.
    """
    usual, their_usual = _both(case, "a run")
    kept_apart, note = False, None
    names = _of_a_batch(case)
    if not names:
        without = " without a domain" if any(case.domain(name) != "real" for name in case.floating) else ""
        raise Skip(f"no floating input{without} has several rows of a batch")
    for name in names:
        runs = [_spoilt(case, name, row, called, value) for row in (0, int(case.batch_size or 0) - 1)]
        for tensor, before in their_usual.items():
            if not _has_rows(before, case) or any(_changed(before, run.theirs.get(tensor), run.row) for run in runs):
                continue
            kept_apart = True
            for run in runs:
                others = _changed(usual.get(tensor), run.ours.get(tensor), run.row)
                if others and tensor not in case.settled:
                    raise Wrong(f"{run.where}, row {others[0]} of {tensor} changes, too; the reference's doesn't")
        if math.isnan(value):
            note = note or next(filter(None, map(_swallowed, runs)), None)
    if not kept_apart:
        raise Skip("the reference itself doesn't keep the rows of a batch apart")
    return note


def _spoilt(case: FunctionCase, name: str, row: int, called: str, value: float) -> _Spoilt:
    where = f"where row {row} of {name} is {called}"
    try:
        return _Spoilt(where, row, *_both(_with_row(case, name, row, value), f"a run {where}"))
    except CannotCompare as problem:
        raise Skip(f"{problem}; it may not be for such values") from problem


def _both(case: FunctionCase, doing: str) -> tuple[Values, Values]:
    """What the function computes, and what its reference does."""
    theirs = values_of_its_reference(case)
    with naming(case.label, doing):
        return values_of(case), theirs


def _of_a_batch(case: FunctionCase) -> list[str]:
    """The floating inputs that have several rows of a batch, and may have any value."""
    named = zip(case.arguments.names, case.arguments.leaves, strict=True)
    several = case.batch_size is not None and case.batch_size > 1
    return [
        name
        for name, leaf in named
        if several and floats(leaf) and leaf.ndim and leaf.shape[0] == case.batch_size and case.domain(name) == "real"
    ]


def _with_row(case: FunctionCase, name: str, row: int, value: float) -> FunctionCase:
    """The case with a value in the place of all of one row of an input."""

    def spoilt(called: str, leaf: Any) -> Any:
        if called != name:
            return leaf
        tensor = as_tensor(leaf).detach().clone()
        tensor[row] = value
        return tensor if isinstance(leaf, torch.Tensor) else tensor.numpy()

    leaves = tuple(map(spoilt, case.arguments.names, case.arguments.leaves))
    return replace(case, arguments=replace(case.arguments, leaves=leaves))


def _has_rows(tensor: torch.Tensor, case: FunctionCase) -> bool:
    return bool(tensor.ndim) and len(tensor) == case.batch_size


def _changed(before: torch.Tensor | None, after: torch.Tensor | None, row: int) -> list[int]:
    """The rows that are others afterwards, without `row` itself."""
    if before is None and after is None:
        return []
    if before is None or after is None or before.shape != after.shape or not before.ndim:
        return [1 if row == 0 else 0]
    scale = float(before.double().nan_to_num(0, 0, 0).abs().max()) if before.numel() else 0.0
    same = torch.isclose(before.double(), after.double(), rtol=0, atol=SAME * scale, equal_nan=True)
    changed = ~same.reshape(len(same), -1).all(1)
    changed[row] = False
    return [int(i) for i in changed.nonzero()]


def _swallowed(run: _Spoilt) -> str | None:
    """A sentence about a finite output in the place of a NaN of the reference; None if there is none."""
    for name, theirs in run.theirs.items():
        ours = run.ours.get(name)
        if name.startswith("grad_") or ours is None or ours.shape != theirs.shape:
            continue
        places = (theirs.isnan() & ours.isfinite()).nonzero()
        if len(places):
            index = tuple(map(int, places[0]))
            place = f"{name}[{', '.join(map(str, index))}]" if index else name
            return f"{run.where}, {place} is {float(ours[index]):.6g}, and NaN in the reference"
    return None
