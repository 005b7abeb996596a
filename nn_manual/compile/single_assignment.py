"""A trace in which each value has a storage of its own, and without dead operations.

A formula writes `centered /= std` to save memory, so one storage holds several values, one after the other. Here each
value gets its own storage. Later it turns out which of them need memory at all.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nn_manual.arrays import size_of
from nn_manual.trace.trace import FixedValue, Storage, Trace, TracedOperation, View, views


def with_single_assignment(trace: Trace) -> Trace:
    """The same step, but an operation that overwrites a whole storage of the step's own writes to a new storage."""
    storages, current = list(trace.storages), list(range(len(trace.storages)))
    operations: list[TracedOperation] = []
    for operation in trace.operations:
        arguments, keywords = _moved(operation.arguments, current), _moved(operation.keywords, current)
        output = operation.output
        is_fresh = not storages[output.storage].name and storages[output.storage].initial is None
        if is_fresh and not operation.is_in_place and _fills(output, storages[output.storage]):
            current[output.storage] = len(storages)
            storages.append(Storage("", storages[output.storage].num_bytes))
        moved = output._replace(storage=current[output.storage])
        operations.append(operation._replace(arguments=arguments, keywords=keywords, output=moved))
    results = {name: view._replace(storage=current[view.storage]) for name, view in trace.results.items()}
    return Trace(storages, operations, results)


def without_dead(trace: Trace) -> Trace:
    """The trace without operations whose values nobody reads."""
    alive = {view.storage for view in trace.results.values()}
    operations: list[TracedOperation] = []
    for operation in reversed(trace.operations):
        if operation.output.storage in alive or trace.storages[operation.output.storage].name:
            operations.append(operation)
            alive |= {view.storage for view in views((operation.arguments, operation.keywords))}
    return trace._replace(operations=operations[::-1])


def _fills(view: View, storage: Storage) -> bool:
    """Whether a view shows every byte of the storage, once."""
    return size_of(view.shape) * view.dtype.itemsize == storage.num_bytes and 0 not in np.array(view.strides)[
        np.array(view.shape, int) > 1
    ]


def _moved(argument: Any, current: list[int]) -> Any:
    if isinstance(argument, View):
        return argument._replace(storage=current[argument.storage])
    if isinstance(argument, FixedValue):
        return argument
    if isinstance(argument, tuple | list):
        return type(argument)(_moved(inner, current) for inner in argument)
    if isinstance(argument, dict):
        return {name: _moved(inner, current) for name, inner in argument.items()}
    return argument
