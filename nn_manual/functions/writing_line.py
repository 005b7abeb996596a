"""The line that writes where it must not: the function runs once more, and what it may not write into is guarded."""

from __future__ import annotations

import traceback
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from nn_manual.check.conduct.unchanged import arrays_in
from nn_manual.check.twin.dispatch import Dispatch
from nn_manual.errors import raise_if_nobodys_fault
from nn_manual.functions.callables import Function, applied
from nn_manual.functions.exceptions import place_in, place_of
from nn_manual.functions.function_case import FunctionCase
from nn_manual.functions.handwritten import Checked, Handwritten, run_function

#: In numpy's message about a write into a guarded array.
READ_ONLY = "read-only"


def writer_of(case: FunctionCase, habit: str) -> str:
    """Where in the user's code a function has one of the HABITS, as " at file:line"; empty where that can't be seen, as
    in a kernel.
    """
    guard = _Guard()
    try:
        ran = run_function(_guarded(case.function, habit, guard), case.arguments, case.leaves(), case.wants())
        if guard.place:
            return guard.place
        _, grad_outputs = next(case.grad_outputs(case.differentiable(ran.outputs)))
        if habit == "saved":
            guard.watch(array for _, array in arrays_in(ran.saved))
        elif habit == "grad_output" and not isinstance(case.function, Handwritten):
            guard.watch(grad_outputs.values())
        with guard:
            ran.backward(grad_outputs)
    except Exception as error:  # numpy's, or one of the user's code
        raise_if_nobodys_fault(error)
        return guard.place or (place_of(error) if READ_ONLY in str(error) else "")
    return guard.place


def _guarded(function: Checked, habit: str, guard: _Guard) -> Checked:
    """The function, whose inputs, or the gradients of whose outputs, are guarded when they reach the user's code."""
    if isinstance(function, Handwritten):
        if habit == "inputs":
            return replace(function, forward=guard.guarding(function.forward))
        return replace(function, backward=guard.guarding(function.backward, 1)) if habit == "grad_output" else function
    is_module = isinstance(function, torch.nn.Module)  # its parameters are given in another way
    return guard.guarding(applied(function)) if habit == "inputs" and not is_module else function


class _Guard(Dispatch):
    """A context that notes torch's first write into a watched tensor. numpy refuses to write into watched arrays."""

    def __init__(self) -> None:
        super().__init__()
        self._addresses: set[int] = set()
        self.place = ""

    def watch(self, arrays: Iterable[Any]) -> None:
        """Guard these."""
        for array in arrays:
            if isinstance(array, np.ndarray):
                array.flags.writeable = False
            elif isinstance(array, torch.Tensor):
                self._addresses.add(array.untyped_storage().data_ptr())

    def guarding(self, function: Function, first: int = 0) -> Function:
        """The function, which runs guarded. So are its arguments, from the `first` on."""

        def guarded(*positional: Any, **keywords: Any) -> Any:
            self.watch(array for _, array in arrays_in([*positional[first:], *keywords.values()]))
            with self:
                return function(*positional, **keywords)

        return guarded

    def __torch_dispatch__(self, operation: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        for described, argument in zip(operation._schema.arguments, arguments, strict=False):
            self._note(described, argument)
        for described in operation._schema.arguments:
            self._note(described, (keywords or {}).get(described.name))
        return operation(*arguments, **(keywords or {}))

    def _note(self, described: Any, argument: Any) -> None:
        writes = described.alias_info is not None and described.alias_info.is_write
        if not writes or self.place or not isinstance(argument, torch.Tensor):
            return
        if argument.untyped_storage().data_ptr() in self._addresses:
            self.place = place_in(traceback.extract_stack())
