"""Inputs that change where they are, as an optimizer changes a weight."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch

from nn_manual.check.comparison import CannotCompare
from nn_manual.check.functions.arguments import Arguments, Number, as_tensor
from nn_manual.check.functions.battery.runs import is_right, on_other_values
from nn_manual.check.functions.battery.trial import Run, Skip, Trial, Wrong, agree
from nn_manual.check.functions.callables import applied, dtype_name, gradients_of, is_array, label_of_function
from nn_manual.check.functions.case import Case
from nn_manual.check.functions.outputs import named_outputs

#: What torch says of a function that works in place on a parameter.
IN_PLACE_ON_A_LEAF = "a leaf Variable that requires grad"


def in_place(trial: Trial) -> Iterator[tuple[str, Run]]:
    """The same tensors with other values: what was kept of the run before, by a tensor's address, shows."""
    yield "", lambda: _in_place(trial.case)


def _in_place(case: Case) -> None:
    other = on_other_values(case)
    if not is_right(other):
        raise Skip("it doesn't take other values, or is wrong there")
    on_same_tensors = _on_same_tensors(case)
    try:
        agree(on_same_tensors(case))
        agree(on_same_tensors(other))
    except (Wrong, CannotCompare) as problem:
        if IN_PLACE_ON_A_LEAF in str(problem):
            raise Skip("it works in place, which torch refuses on parameters") from problem
        words = "differs once its inputs have changed in place, as a weight does: something is kept of the run before"
        raise Wrong(f"{words}; {problem}") from problem


def _on_same_tensors(case: Case) -> Callable[[Case], Case]:
    """What makes of a case one whose function is a pair that runs on the same tensors each time: the inputs are written
    into them.
    """
    function, arguments, label = case.function, case.arguments, label_of_function(case.function)
    user_forward, user_backward = function if isinstance(function, tuple) else (None, None)
    tensors: dict[tuple[Any, ...], list[Any]] = {}  # by their dtypes

    def forward(*leaves: Any) -> tuple[Any, Any]:
        dtypes = tuple(dtype_name(leaf) for leaf in leaves if is_array(leaf))
        if dtypes not in tensors:
            tensors[dtypes] = [_copied(leaf, is_parameter=want) for leaf, want in zip(leaves, wanted, strict=True)]
        own = tensors[dtypes]
        for tensor, leaf in zip(own, leaves, strict=True):
            if is_array(leaf):
                as_tensor(tensor).detach().copy_(as_tensor(leaf))
        if user_forward is not None:
            returned: tuple[Any, Any] = arguments.call(user_forward, own)
            return returned
        output = arguments.call(applied(function), own)
        return output, (output, own)

    def backward(saved: Any, *grad_outputs: Any) -> Any:
        if user_backward is not None:
            return user_backward(saved, *grad_outputs)
        output, own = saved
        carrying = [tensor for tensor in named_outputs(output).tensors.values() if tensor.requires_grad]
        parameters = [tensor for tensor, want in zip(own, wanted, strict=True) if want]
        return gradients_of(carrying, parameters, [as_tensor(grad) for grad in grad_outputs])

    def reference(*leaves: Any) -> Any:
        return arguments.call(case.reference, leaves)

    wanted = [user_forward is None and want for want in case.wants()]
    forward.__name__ = backward.__name__ = label
    flat = tuple(Number(i) for i in range(len(arguments.leaves)))

    def made(case: Case) -> Case:
        positional = Arguments(arguments.names, case.arguments.leaves, flat)
        return replace(case, function=(forward, backward), reference=reference, arguments=positional, watched=False)

    return made


def _copied(leaf: Any, *, is_parameter: bool) -> Any:
    if is_parameter:
        return as_tensor(leaf).detach().clone().requires_grad_()
    return leaf.detach().clone() if isinstance(leaf, torch.Tensor) else copy.copy(leaf)
