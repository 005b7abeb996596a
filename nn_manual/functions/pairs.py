"""A function beside its reference: everything that both compute, in pairs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from nn_manual.arrays import Array
from nn_manual.check.compare.comparison import CannotCompare, Pair, Quantity
from nn_manual.check.compare.tolerances import CENTRAL_DIFFERENCES, sum_of_products
from nn_manual.check.conduct.unchanged import same_values
from nn_manual.check.judge.diagnosis import describe_difference
from nn_manual.functions.arguments import as_tensor
from nn_manual.functions.callables import Forward, by_autograd, dtype_name, floats, is_array
from nn_manual.functions.exceptions import naming, raised_by_the_reference
from nn_manual.functions.function_case import LOW_PRECISION, SUPPORTED, FunctionCase, eps_of, longest_sum
from nn_manual.functions.low_precision import TooCoarse, allowed_in_low_precision, check_choices
from nn_manual.functions.outputs import BUFFER, check_structure
from nn_manual.functions.own_forward import ByDifferences, OwnForward
from nn_manual.functions.watched_runs import Between, WatchedRuns

#: The tolerance of integers and truth values: an integer of 64 bits that is off by 1 is beyond it.
EXACT = 2.0**-64


@dataclass
class Noticed:
    """What is noticed while pairs are made: a sentence for each of the HABITS of the function; and one for each tensor
    that can't be judged, since the reference is too far from the truth, or differences don't tell its gradient; and one
    for each gradient of which differences give a sum alone.
    """

    habits: dict[str, str] = field(default_factory=dict)
    not_judged: dict[str, str] = field(default_factory=dict)
    sums: dict[str, str] = field(default_factory=dict)


def pairs(
    case: FunctionCase, between: Between | None = None, noticed: Noticed | None = None
) -> Iterator[Pair]:
    """Every pair of tensors to compare: outputs, then gradients under each upstream gradient.

    The function runs once for each upstream gradient. `between`, where it is given, runs between its forward and its
    backward. `noticed`, where it is given, gets what is noticed.

    Raises CannotCompare if the function raises an error, or returns what can't be compared. Raises TypeError or
    ValueError if the reference is to blame.
    """
    theirs = _run_reference(case, case.leaves())
    truth = _run_reference(case, _doubled(case)) if case.is_low else None
    noticed = noticed or Noticed()
    paired, ours = _Paired(case, theirs, noticed.not_judged), WatchedRuns(case, noticed.habits)
    outputs = ours.run_forward()
    check_structure(case.label, ours.returned, theirs.returned)
    for name, output in outputs.items():
        if name.startswith(BUFFER) and _stays(case, name, (output, theirs.outputs[name])):
            continue
        yield from paired.pair(name, output, theirs.outputs[name], truth and truth.outputs[name])

    floating = [name for name, want in zip(case.arguments.names, case.wants(), strict=True) if want]
    leaves = dict(zip(case.arguments.names, case.leaves(), strict=True))
    differentiable = {name: output for name, output in theirs.outputs.items() if output.requires_grad}
    for kind, grad_outputs in _upstreams(case, differentiable):
        if not grad_outputs:
            return
        grads = ours.run_backward(grad_outputs, between)
        with beside(case.reference, grads) as found:
            their_grads = _back_through_reference(case, theirs, grad_outputs)
        doubled = {name: grad.double() for name, grad in grad_outputs.items()}
        true_grads = _back_through_reference(case, truth, doubled) if truth else None
        for i, (name, grad, their_grad) in enumerate(zip(floating, grads, their_grads, strict=True)):
            if their_grad is None and (grad is None or not grad.to_dense().any()):
                continue  # both say that nothing depends on this input
            zero = torch.zeros_like(as_tensor(leaves[name]))
            true_grad = true_grads[i] if true_grads else None
            if i in found.errors:
                noticed.not_judged.setdefault(f"grad_{name}", _by_differences(case.label, name, found.errors[i]))
            if i in found.sums:
                noticed.sums[f"grad_{name}, {kind} upstream"] = found.sums[i]
            yield from paired.pair(
                f"grad_{name}, {kind} upstream",
                zero if grad is None else grad,
                zero if their_grad is None else their_grad,
                zero if true_grad is None else true_grad,
            )
            if grad is not None:
                ours.keep({f"the grad_{name} that it returned before": grad.to_dense()})  # a copy, if it is sparse


def values_of_reference(case: FunctionCase, upstream: str = "") -> dict[str, torch.Tensor]:
    """The reference's half of these pairs: its floating outputs and its gradients, under one kind of upstream gradient
    alone if one is named. Raises what `pairs` raises of it.
    """
    ran = _run_reference(case, case.leaves())
    found = {name: output.detach() for name, output in ran.outputs.items() if floats(output)}
    names = [name for name, want in zip(case.arguments.names, case.wants(), strict=True) if want]
    differentiable = {name: output for name, output in ran.outputs.items() if output.requires_grad}
    for kind, grad_outputs in _upstreams(case, differentiable):
        grads = ran.backward(grad_outputs) if grad_outputs and upstream in ("", kind) else []
        found |= {f"grad_{name}, {kind} upstream": grad for name, grad in zip(names, grads, strict=False)}
    return {name: value.to_dense().cpu() for name, value in found.items() if value is not None}


def _by_differences(label: str, name: str, error: float) -> str:
    words = f"{label}: differences can't judge grad_{name} everywhere, their error is {error:.1g} times its size; does "
    return words + "forward jump there? a reference could judge it"


def _upstreams(
    case: FunctionCase, outputs: dict[str, torch.Tensor]
) -> Iterator[tuple[str, dict[str, torch.Tensor]]]:
    for kind, grads in case.grad_outputs(outputs):
        yield kind, case.reference.upstream(grads, outputs) if isinstance(case.reference, OwnForward) else grads


def _stays(case: FunctionCase, name: str, after: tuple[Any, Any]) -> bool:
    """Whether neither the function nor its reference changed a buffer."""
    before = case.arguments.buffers[name.removeprefix(BUFFER)]
    return all(each.shape == before.shape and same_values(each, before.to(each)) for each in after)


def _doubled(case: FunctionCase) -> list[Any]:
    return [as_tensor(leaf).double() if floats(leaf) else leaf for leaf in case.leaves()]


def _run_reference(case: FunctionCase, leaves: list[Any]) -> Forward:
    """Run the reference. Raises TypeError for an output that can't be compared, and ValueError if no output can be
    differentiated, or there is none. An error of the reference itself gets a note that the reference raised it.
    """
    is_own = isinstance(case.reference, OwnForward)
    # torch's fast attention is off by 1e-10 in float64.
    with raised_by_the_reference(is_own=is_own), sdpa_kernel(SDPBackend.MATH):
        ran = by_autograd(case.reference, case.arguments, leaves, case.wants())
    whose = case.label if is_own else "the reference"
    for name, output in ran.outputs.items():
        if output.is_complex() or (floats(output) and dtype_name(output) not in SUPPORTED):
            raise TypeError(
                f"{name} of {whose} is {dtype_name(output)}: outputs must be {', '.join(SUPPORTED)} or integer"
            )
    if all(name.startswith(BUFFER) for name in ran.outputs):
        others = dict.fromkeys("None" if each is None else type(each).__name__ for each in ran.returned.others.values())
        words = " and ".join(others) or "nothing"
        raise ValueError(f"{whose} returned {words}: it must return a tensor, or several")
    if case.wanted is None and not any(output.requires_grad for output in ran.outputs.values()):
        raise ValueError(f"no output of {whose} depends on a floating input in a way that autograd can follow")
    return ran


def _back_through_reference(case: FunctionCase, ran: Forward, grad_outputs: dict[str, torch.Tensor]) -> list[Any]:
    with raised_by_the_reference(is_own=isinstance(case.reference, OwnForward)):
        return ran.backward(grad_outputs)


def beside(reference: Any, grads: list[Any]) -> AbstractContextManager[ByDifferences]:
    """A context in which a reference that is the function's own forward looks at its gradients, and says what it can't
    judge.
    """
    return reference.beside(grads) if isinstance(reference, OwnForward) else nullcontext(ByDifferences({}, {}))


class _Paired:
    """Makes pairs of a function's tensors and its reference's."""

    def __init__(self, case: FunctionCase, theirs: Forward, not_judged: dict[str, str]) -> None:
        self.case, self.not_judged = case, not_judged
        arrays = [array for array in (*case.leaves(), *theirs.outputs.values()) if is_array(array)]
        self.tolerance = case.tolerance or sum_of_products(case.dtype, longest_sum(arrays))

    def pair(self, name: str, ours: Any, reference: torch.Tensor, truth: torch.Tensor | None) -> Iterator[Pair]:
        """The pair, or none if there is nothing to compare."""
        if name.partition(",")[0] in self.case.settled:
            return
        label, tolerance = self.case.label, self.tolerance
        with naming(label, f"reading {name}"):
            array, tensor = _same_kind(f"{label}: {name}", ours, reference)
        if truth is not None and self.case.drawn and not reference.is_floating_point():
            check_choices(name, array, tensor, truth)
        if truth is not None and self.case.is_low and reference.is_floating_point():
            rounded, tensor = tensor.double(), truth.detach().to_dense().cpu().double()
            array = array.astype(np.float64)
            array, tensor = self._judged(array, tensor, rounded)
            if self.case.tolerance is None:
                try:
                    tolerance = allowed_in_low_precision(name, array, tensor, rounded, eps_of(reference.dtype))
                except TooCoarse as problem:
                    if not self.case.drawn:
                        raise
                    self.not_judged[name] = str(problem)
                    return
        else:
            array, tensor = self._judged(array, tensor, tensor)
        if array.size == 0:
            return
        if isinstance(self.case.reference, OwnForward) and name.startswith("grad_"):
            quantity = Quantity(name, label, self.case.tolerance or CENTRAL_DIFFERENCES, "differences give")
        else:
            quantity = Quantity(name, label, tolerance if reference.is_floating_point() else EXACT)
        yield Pair(quantity, array, tensor)

    def _judged(self, ours: Array, reference: torch.Tensor, rounded: torch.Tensor) -> tuple[Array, torch.Tensor]:
        """Both, with zeros in the places that aren't compared: those where both have the same NaN or infinity; on drawn
        inputs, all those where the reference isn't finite. `rounded` is the reference in the function's dtype.
        """
        has_number = reference.isfinite() & rounded.isfinite()
        if bool(has_number.all()):
            return ours, reference
        left_out = ~has_number
        if not self.case.drawn:
            left_out &= torch.isclose(torch.from_numpy(ours), rounded, rtol=0, atol=0, equal_nan=True)
        return np.where(left_out.numpy(), 0, ours), torch.where(left_out, 0, reference)


def _same_kind(name: str, ours: Any, reference: torch.Tensor) -> tuple[Array, torch.Tensor]:
    """Both as floating numbers in main memory, and ours as a copy: the function may write into what it returned. Raises
    CannotCompare if their shapes or dtypes differ.
    """
    if not isinstance(ours, torch.Tensor):
        raise CannotCompare(f"{name} is {type(ours).__name__}, not an array or tensor")
    if ours.dtype != reference.dtype:
        raise CannotCompare(f"{name} is {dtype_name(ours)}, the reference's {dtype_name(reference)}")
    reference = reference.detach().to_dense().cpu()
    ours = ours.detach().to_dense().to("cpu", copy=True)
    if not ours.is_floating_point():
        _check_long_integers(name, ours, reference)
        ours, reference = ours.double(), reference.double()
    elif dtype_name(ours) in LOW_PRECISION:
        ours, reference = ours.float(), reference.float()  # numpy has no bfloat16
    if ours.shape != reference.shape:
        raise CannotCompare(f"{name}: {describe_difference(ours.numpy(), reference.numpy())}")
    return ours.numpy(), reference


def _check_long_integers(name: str, ours: torch.Tensor, reference: torch.Tensor) -> None:
    """Raise CannotCompare for integers from 2**53 on that differ, and are the same floating number."""
    if ours.shape != reference.shape:
        return
    for index in (ours != reference).logical_and(ours.double() == reference.double()).nonzero().tolist():
        place = f"{name}[{', '.join(map(str, index))}]" if index else name
        raise CannotCompare(f"{place} is {ours[tuple(index)].item()}, the reference's {reference[tuple(index)].item()}")
