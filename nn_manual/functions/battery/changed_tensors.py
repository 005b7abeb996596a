"""The rows of tensors that change in place between forward and backward."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.autograd.function import BackwardCFunction

from nn_manual.errors import raise_if_nobodys_fault
from nn_manual.functions.arguments import as_tensor
from nn_manual.functions.battery.lists_and_dicts import check_lists_and_dicts
from nn_manual.functions.battery.other_inputs import moved_and_smaller, on_other_values, other_integers
from nn_manual.functions.battery.trial import Run, Skip, Trial, Wrong
from nn_manual.functions.callables import Forward, floats
from nn_manual.functions.exceptions import naming
from nn_manual.functions.function_case import FunctionCase
from nn_manual.functions.function_report import NOT_BY_AUTOGRAD
from nn_manual.functions.handwritten import run_function
from nn_manual.functions.outputs import BUFFER

#: The node of the copies that a function gets as its inputs.
OF_COPIES = "_CopiedBackward"

#: How far two runs may differ, as a fraction of the largest value: far more than rounding in another order, in 16 bits,
#: too.
ALLOWED = 0.02

ADVICE = "keep what backward needs of inputs and outputs by save_for_backward: then torch notices a change"


def changed(trial: Trial) -> Iterator[tuple[str, Run]]:
    """An input, or an output, changes in place between forward and backward. Then torch must raise an error, or the
    gradient must stay what it was: a gradient of the changed values would be wrong, and nobody would know. Lists and
    dicts must stay as they are, too.
    """
    yield "inputs", lambda: _changed(trial, of_outputs=False)
    yield "outputs", lambda: _changed(trial, of_outputs=True)


def _changed(trial: Trial, *, of_outputs: bool) -> None:
    check_lists_and_dicts(trial.case, of_outputs=of_outputs)
    if trial.is_pair:
        raise Skip(NOT_BY_AUTOGRAD)
    case = trial.case
    with naming(case.label, "a run"):
        ran = _run(case)
        if not _has_own_backward(ran):
            return  # torch's own operations notice a change
        before = [grad if grad is None else grad.to_dense().clone() for grad in _back(case, ran)]
    for name in _of(case, ran, of_outputs=of_outputs):
        ran = _run(case)
        tensor = _of(case, ran, of_outputs=of_outputs)[name]
        before_it = tensor.detach().clone()
        with torch.no_grad():
            tensor.copy_(_other(case, name, tensor, of_outputs=of_outputs))
        try:
            after = _back(case, ran)
        except Exception as error:  # torch's error, or one of the function's own
            raise_if_nobodys_fault(error)
            continue
        finally:
            tensor.data.copy_(before_it)  # it may be a table that the function keeps
        for wanted, grad, other in zip(case.floating, before, after, strict=True):
            if not _agree(grad, other):
                words = f"grad_{wanted} changes when {name} changes in place between forward and backward"
                raise Wrong(f"{words}, without an error; {ADVICE}")


def _run(case: FunctionCase) -> Forward:
    return run_function(case.function, case.arguments, case.leaves(), case.wants())


def _back(case: FunctionCase, ran: Forward) -> list[Any]:
    carrying = {name: output.detach().clone() for name, output in ran.outputs.items() if output.requires_grad}
    return ran.backward(next(case.grad_outputs(carrying))[1])


def _of(case: FunctionCase, ran: Forward, *, of_outputs: bool) -> dict[str, torch.Tensor]:
    """The inputs or outputs that can have other values, by name. Nobody can write into an expanded or sparse tensor."""
    inputs = dict(zip(case.arguments.names, ran.given, strict=True))
    found = {k: v for k, v in ran.outputs.items() if not k.startswith(BUFFER)} if of_outputs else inputs
    return {
        name: tensor
        for name, tensor in found.items()
        if isinstance(tensor, torch.Tensor) and tensor.layout == torch.strided and 0 not in tensor.stride()
        if floats(tensor) or other_integers(tensor) is not None
    }


def _other(case: FunctionCase, name: str, tensor: torch.Tensor, *, of_outputs: bool) -> torch.Tensor:
    """Other values for the tensor; for an input, values that most functions take."""
    if (others := None if floats(tensor) else other_integers(tensor)) is not None:
        return others
    if of_outputs:
        return moved_and_smaller(tensor)
    other = on_other_values(case).arguments
    return as_tensor(dict(zip(other.names, other.leaves, strict=True))[name])


def _has_own_backward(ran: Forward) -> bool:
    """Whether an autograd.Function leads to the outputs."""
    nodes: list[Any] = [output.grad_fn for output in ran.outputs.values()]
    seen = set[Any]()
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if isinstance(node, BackwardCFunction) and type(node).__name__ != OF_COPIES:
            return True
        nodes += [following for following, _ in node.next_functions]
    return False


def _agree(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    allowed = ALLOWED * float(one.nan_to_num().abs().max()) if one.numel() else 0.0
    return torch.allclose(one, other.to_dense(), rtol=0, atol=allowed, equal_nan=True)
