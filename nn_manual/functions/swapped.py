"""Diagnoses of right values in the wrong place: two swapped tensors, and gradients that ignore one of the outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from nn_manual.check.compare.comparison import Pair, compare
from nn_manual.functions.callables import by_autograd
from nn_manual.functions.function_case import FunctionCase
from nn_manual.functions.pairs import values_of_reference


def describe_mixed_up(case: FunctionCase, first: Pair, compared: Sequence[Pair]) -> str:
    """A sentence if the first wrong tensor has the values of another tensor or ignores an output; else an empty one."""
    if equals(first, -first.reference):
        return ""  # a wrong sign is a simpler mistake than another tensor's values
    return _swapped(first, compared) or _without_an_output(case, first)


def equals(pair: Pair, other: torch.Tensor) -> bool:
    """Whether ours has these values, which aren't all zero."""
    return other.shape == pair.ours.shape and bool(other.any()) and compare(pair.quantity, pair.ours, other).passed


def _swapped(first: Pair, compared: Sequence[Pair]) -> str:
    name, _, upstream = first.quantity.name.partition(",")
    for other in compared:
        other_name, _, other_upstream = other.quantity.name.partition(",")
        if other_name != name and other_upstream == upstream and equals(first, other.reference):
            if equals(other, first.reference):
                return f"{name} and {other_name} are swapped"
            return f"it is {other_name}"
    return ""


def _without_an_output(case: FunctionCase, first: Pair) -> str:
    """A sentence if backward ignores the gradient of one of several outputs, or of all but one; else an empty one."""
    if "," not in first.quantity.name:
        return ""
    ran = by_autograd(case.reference, case.arguments, case.leaves(), case.wants())
    outputs = [name for name, output in ran.outputs.items() if output.requires_grad and name not in case.absent]
    if len(outputs) < 2:
        return ""
    for lost in [*([name] for name in outputs), *([name for name in outputs if name != used] for used in outputs)]:
        found = values_of_reference(replace(case, absent=case.absent.union(lost))).get(first.quantity.name)
        if found is not None and equals(first, found.to(first.reference.dtype)):
            return f"the gradient of {' and '.join(lost)} is left out"
    return ""
