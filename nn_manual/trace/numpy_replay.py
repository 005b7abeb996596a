"""The operations of a trace, run again by NumPy. All that is derived from a trace is compared with this."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from nn_manual.arrays import Array
from nn_manual.messages.text import counted
from nn_manual.trace.trace import FixedValue, Storage, Trace, TracedOperation, View, array_of, views


def replay(trace: Trace, given: Mapping[str, Array], *, in_place: bool = False) -> dict[str, Array]:
    """Run the step on other values. Returns, by their names, the step's results, and the arrays that it was given as
    they are after the step. The arrays in `given` stay as they are, unless the step is to write to them `in_place`.
    Raises KeyError for a missing array, and ValueError for an array of another size.
    """
    memory = StepMemory(trace, given, in_place=in_place)
    for index, operation in enumerate(trace.operations):
        run_operation(operation, memory.array_at)
        memory.free(index)
    return memory.given | {name: memory.array_at(view) for name, view in trace.results.items()}


class StepMemory:
    """The storages of a trace as bytes, each from its first use on. `given` are copies of the given arrays, by their
    names, or these arrays where the step works `in_place`.
    """

    def __init__(self, trace: Trace, given: Mapping[str, Array], *, in_place: bool = False) -> None:
        self._storages, self.given = trace.storages, dict[str, Array]()
        self._memory: dict[int, Array] = {}
        last = {view.storage: index for index, operation in enumerate(trace.operations) for view in _views(operation)}
        kept = {view.storage for view in trace.results.values()}
        kept |= {number for number, storage in enumerate(trace.storages) if storage.name}
        #: The storages that no operation uses after the one of this index.
        self._last_used: dict[int, list[int]] = {}
        for storage, index in last.items():
            if storage not in kept:
                self._last_used.setdefault(index, []).append(storage)
        for number, each in enumerate(trace.storages):
            if each.name:
                self._take(number, each, given[each.name], in_place=in_place)

    def _take(self, number: int, storage: Storage, given: Array, *, in_place: bool) -> None:
        array = np.ascontiguousarray(given)
        if array.nbytes != storage.num_bytes:
            raise ValueError(f"{storage.name} takes {counted(storage.num_bytes, 'byte')}, not {array.nbytes}")
        if in_place:
            self._memory[number], self.given[storage.name] = array.reshape(-1).view(np.uint8), given
            return
        piece = self._memory[number] = self._filled(storage)
        self.given[storage.name] = piece.view(array.dtype)[:].reshape(np.shape(given))
        self.given[storage.name][...] = given

    def _filled(self, storage: Storage) -> Array:
        """New memory that holds what the storage holds at first."""
        piece = np.empty(storage.num_bytes, np.uint8)
        if storage.initial is not None:
            piece[...] = storage.initial
        return piece

    def array_at(self, view: View) -> Array:
        """The array at a view."""
        if view.storage not in self._memory:
            self._memory[view.storage] = self._filled(self._storages[view.storage])
        return array_of(view, self._memory)

    def free(self, index: int) -> None:
        """Give up the storages that no operation uses after the one of this index."""
        for storage in self._last_used.get(index, ()):
            del self._memory[storage]


def _views(operation: TracedOperation) -> Iterator[View]:
    yield from views((operation.arguments, operation.keywords, operation.output))


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
