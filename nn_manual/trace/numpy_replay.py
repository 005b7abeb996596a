"""The operations of a trace, run again by NumPy. All that is derived from a trace is compared with this."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from nn_manual.arrays import Array
from nn_manual.messages.text import counted
from nn_manual.trace.trace import FixedValue, Trace, TracedOperation, View, array_of


def replay(trace: Trace, given: Mapping[str, Array]) -> dict[str, Array]:
    """Run the step on other values. Returns, by their names, the step's results, and the arrays that it was given as
    they are after the step. The arrays in `given` stay as they are. Raises KeyError for a missing array, and ValueError
    for an array of another size.
    """
    memory, after = prepared(trace, given)
    for operation in trace.operations:
        run_operation(operation, lambda view: array_of(view, memory))
    return after | {name: array_of(view, memory) for name, view in trace.results.items()}


def prepared(trace: Trace, given: Mapping[str, Array]) -> tuple[list[Array], dict[str, Array]]:
    """The storages as bytes, filled with what they hold at first; and the given arrays in them, by their names."""
    memory = [np.empty(storage.num_bytes, np.uint8) for storage in trace.storages]
    arrays = {}
    for storage, piece in zip(trace.storages, memory, strict=True):
        if storage.initial is not None:
            piece[...] = storage.initial
        if storage.name:
            array = np.ascontiguousarray(given[storage.name])
            if array.nbytes != storage.num_bytes:
                raise ValueError(f"{storage.name} takes {counted(storage.num_bytes, 'byte')}, not {array.nbytes}")
            arrays[storage.name] = piece.view(array.dtype)[:].reshape(np.shape(given[storage.name]))
            arrays[storage.name][...] = given[storage.name]
    return memory, arrays


def run_operation(operation: TracedOperation, array_at: Callable[[View], Array]) -> None:
    """Run one operation on the arrays at its views."""
    arguments = [_value(argument, array_at) for argument in operation.arguments]
    keywords = {name: _value(argument, array_at) for name, argument in operation.keywords.items()}
    output = array_at(operation.output)
    if operation.is_in_place:
        operation.function(*arguments, **keywords)
    elif operation.function is np.copyto:
        np.copyto(output, *arguments, **keywords)
    elif isinstance(getattr(operation.function, "__self__", operation.function), np.ufunc):
        operation.function(*arguments, **keywords, out=output)
    else:
        output[...] = operation.function(*arguments, **keywords)


def _value(argument: Any, array_at: Callable[[View], Array]) -> Any:
    if isinstance(argument, View):
        return array_at(argument)
    if isinstance(argument, FixedValue):
        return argument.value
    if type(argument) in (tuple, list):
        return type(argument)(_value(inner, array_at) for inner in argument)
    return argument
