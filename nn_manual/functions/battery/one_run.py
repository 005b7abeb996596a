"""One run of a case's function, beside nothing: its forward, its backward, and what both return."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from nn_manual.check.conduct.unchanged import Unchanged, arrays_in, same_values
from nn_manual.errors import raise_if_nobodys_fault
from nn_manual.functions.callables import Forward, floats
from nn_manual.functions.exceptions import raised_by_the_reference
from nn_manual.functions.function_case import FunctionCase
from nn_manual.functions.handwritten import run_function

TAKES_NO_OTHERS = "it takes no other inputs"


def forward_of(case: FunctionCase) -> Forward:
    """The function's forward on the case's inputs."""
    return run_function(case.function, case.arguments, case.leaves(), case.wants())


def back_of(case: FunctionCase, ran: Forward) -> list[Any]:
    """The gradients that a forward's backward returns, under the case's first upstream gradient."""
    _, grad_outputs = next(case.grad_outputs(case.differentiable(ran.outputs)))
    return _restored(case, ran, grad_outputs)


def _restored(case: FunctionCase, ran: Forward, grad_outputs: dict[str, torch.Tensor]) -> list[Any]:
    """The gradients; what a habit of the function has overwritten for them is as before."""
    kept = Unchanged(case.label, dict(arrays_in((ran.saved, ran.given)) if case.habits else ()))
    found = ran.backward(grad_outputs)
    if kept.changed():
        found = [grad.detach().clone() if isinstance(grad, torch.Tensor) else grad for grad in found]
        kept.restore()
    return found


def values_of(case: FunctionCase) -> dict[str, torch.Tensor]:
    """The floating outputs and the gradients of one run, by name, without those gradients that are absent."""
    ran = forward_of(case)
    found = {name: output.detach().clone() for name, output in ran.outputs.items() if floats(output)}
    names = [name for name, want in zip(case.arguments.names, case.wants(), strict=True) if want]
    grads = zip(names, back_of(case, ran), strict=True)
    return found | {f"grad_{name}": grad.to_dense().detach() for name, grad in grads if grad is not None}


def values_of_its_reference(case: FunctionCase) -> dict[str, torch.Tensor]:
    """The same of the reference."""
    with raised_by_the_reference():
        return values_of(replace(case, function=case.reference))


def same_bits(one: Any, other: Any) -> bool:
    """Whether two tensors are the same to the last bit; an absent one is the same as another absent one."""
    if one is None or other is None:
        return one is other
    return one.shape == other.shape and same_values(one.to_dense(), other.to_dense())


def first_taken(cases: Iterator[FunctionCase]) -> list[FunctionCase]:
    """The first case that the reference and the function take, or none of them."""
    for case in cases:
        try:
            with silently():
                forward_of(replace(case, function=case.reference))
                forward_of(case)
        except Exception as error:  # anyone's function may raise anything
            raise_if_nobodys_fault(error)
            continue
        return [case]
    return []


@contextmanager
def silently() -> Iterator[None]:
    """A context without warnings, of Python's and of NumPy's."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield
