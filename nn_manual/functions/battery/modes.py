"""The rows of torch's modes: forward without gradients, under autocast, and of a module in evaluation."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch

from nn_manual.check.compare.comparison import CannotCompare
from nn_manual.check.compare.tolerances import LOW_PRECISION_FACTOR, MEANINGLESS
from nn_manual.errors import raise_if_nobodys_fault
from nn_manual.functions.arguments import as_tensor
from nn_manual.functions.battery.one_run import forward_of, values_of, values_of_its_reference
from nn_manual.functions.battery.runs import is_right, with_moved_buffers
from nn_manual.functions.battery.trial import Run, Skip, Trial, Wrong, agree
from nn_manual.functions.callables import applied, dtype_name, floats
from nn_manual.functions.exceptions import naming
from nn_manual.functions.function_case import FunctionCase
from nn_manual.functions.low_precision import TooCoarse

#: How far a tensor may be off under autocast, as a fraction of its largest value: 16 roundings to bfloat16. A function
#: may round where its reference doesn't, and its sums may be of larger terms.
UNDER_AUTOCAST = 2.0**-4
#: What torch.amp.custom_fwd writes on the context.
CUSTOM_FWD = "_fwd_used_autocast"


def no_grad(trial: Trial) -> Iterator[tuple[str, Run]]:
    """Forward alone: under torch.no_grad(), on inputs that require no gradient, and under torch.inference_mode(), where
    tensors have no version.
    """
    yield "", lambda: _no_grad(trial.case)
    yield "inference_mode", lambda: _inference(trial.case)


def _no_grad(case: FunctionCase) -> None:
    case = replace(case, wanted=frozenset())
    with torch.no_grad():
        agree(case)
    agree(case)


def _inference(case: FunctionCase) -> None:
    with torch.inference_mode():
        agree(replace(case, wanted=frozenset()))


def evaluation(trial: Trial) -> Iterator[tuple[str, Run]]:
    """A module that is in training, and its reference, in evaluation; also on buffers that a forward has left."""
    modules = [each for each in (trial.function, trial.reference) if isinstance(each, torch.nn.Module)]
    if isinstance(trial.function, torch.nn.Module) and any(each.training for m in modules for each in m.modules()):
        yield "", lambda: _in_each_evaluation(trial, modules)


def _in_each_evaluation(trial: Trial, modules: list[torch.nn.Module]) -> None:
    """Also in float64, if it computes there in training: beside a variance of 1, an eps in the wrong place is smaller
    than what float32 is allowed.
    """
    _in_evaluation(trial.case, modules)
    if trial.case.is_in_float32 and is_right(double := trial.like_case("float64")):
        try:
            _in_evaluation(double, modules)
        except Wrong as wrong:
            raise Wrong(f"in float64, {wrong}") from wrong


def _in_evaluation(case: FunctionCase, modules: list[torch.nn.Module]) -> None:
    own = {name for name, _ in modules[-1].named_buffers()} - case.arguments.buffers.keys()
    if own:
        raise Skip(f"the reference alone has buffers, which it may use: {', '.join(sorted(own))}")
    moved = with_moved_buffers(case) if case.arguments.buffers else case
    with _evaluating(modules):
        for each in (case, moved):
            agree(each)


@contextmanager
def _evaluating(modules: list[torch.nn.Module]) -> Iterator[None]:
    """A context in which all parts of the modules are in evaluation. Only the flag is set: a module's own eval() may
    change its parameters.
    """
    before = {part: part.training for module in modules for part in module.modules()}
    for part in before:
        part.training = False
    try:
        yield
    finally:
        for part, training in before.items():
            part.training = training


def autocast(trial: Trial) -> Iterator[tuple[str, Run]]:
    """Forward under torch.autocast to bfloat16, and backward behind it. It changes only what is float32, and only what
    torch computes: so there is no row for other dtypes, nor for a pair.
    """
    if trial.is_pair or trial.reference is None:
        return
    if trial.case.is_in_float32:
        yield "", lambda: _under_autocast(trial.case)
    elif "float32" in trial.dtypes:
        yield "", lambda: _under_autocast(trial.like_case("float32"))


def _under_autocast(case: FunctionCase) -> str | None:
    """The function must be about as near to the reference in float32 as the reference is under autocast. One that has
    no rule for autocast may compute in float32. Gradients that are all rounding in bfloat16 are left out.
    """
    exact = values_of_its_reference(case)
    theirs = values_of_its_reference(replace(case, reference=_casting(case.reference, case)))
    ours = _own_values(case)
    least = torch.finfo(torch.bfloat16).eps * max(map(_largest, exact.values()), default=0.0)
    num_judged = 0
    for name, expected in exact.items():
        if name in case.settled or _largest(expected) <= least:
            continue
        allowed = max(UNDER_AUTOCAST, LOW_PRECISION_FACTOR * _distance(theirs.get(name), expected))
        if allowed >= MEANINGLESS:
            continue
        num_judged += 1
        if not (off := _distance(ours.get(name), expected)) <= allowed:
            raise Wrong(f"{name} is off by {off:.2g} of its largest value; {allowed:.2g} is allowed")
    if not num_judged:
        raise TooCoarse("under autocast the reference itself is too far off")
    for name in ours.keys() & theirs.keys():
        own, other = dtype_name(ours[name]), dtype_name(theirs[name])
        if own not in ("float32", other):
            return f"{name} is {own}, the reference's {other}"
    return None


def _casting(function: Any, case: FunctionCase) -> Any:
    """The function, or a module with the same parameters, whose forward runs under autocast."""
    device = next(as_tensor(leaf).device.type for leaf in case.arguments.leaves if floats(leaf))
    casting = torch.autocast(device, dtype=torch.bfloat16)
    if not isinstance(function, torch.nn.Module):
        return casting(applied(function))
    module = copy.copy(function)
    module.forward = casting(function.forward)
    return module


def _own_values(case: FunctionCase) -> dict[str, torch.Tensor]:
    """What the function computes. Raises Skip for an error of a function that isn't made for autocast."""
    casting = replace(case, function=_casting(case.function, case))
    try:
        with naming(case.label, "a run under torch.autocast"):
            return values_of(casting)
    except CannotCompare as problem:
        if _is_made_for_it(casting):
            raise
        raise Skip(f"{problem}; torch.amp.custom_fwd and custom_bwd make a Function fit for autocast") from problem


def _is_made_for_it(case: FunctionCase) -> bool:
    """Whether torch.amp.custom_fwd has left its mark on the context of a forward."""
    try:
        saved = forward_of(case).saved
    except Exception as error:  # anyone's function may raise anything
        raise_if_nobodys_fault(error)
        return False
    return isinstance(saved, dict) and CUSTOM_FWD in saved


def _largest(tensor: torch.Tensor) -> float:
    return float(tensor.double().nan_to_num(0, 0, 0).abs().max()) if tensor.numel() else 0.0


def _distance(tensor: torch.Tensor | None, exact: torch.Tensor) -> float:
    """The largest difference, as a fraction of the largest value, where that has a number."""
    if tensor is None:
        tensor = torch.zeros_like(exact)
    if tensor.shape != exact.shape:
        return math.inf
    off = (tensor.double() - exact.double()).abs()[exact.isfinite()]
    return float(off.nan_to_num(math.inf).max()) / _largest(exact) if off.numel() else 0.0
