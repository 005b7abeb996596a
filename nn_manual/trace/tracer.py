"""Tracer: hands out the arrays of a trace, and notes loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Reversible
from typing import Any

from nn_manual import arrays
from nn_manual.arrays import Array
from nn_manual.trace.conversions import conversions
from nn_manual.trace.operation_log import OperationLog
from nn_manual.trace.storages import untraced
from nn_manual.trace.trace import CannotTrace, Trace
from nn_manual.trace.traced import Traced, plain


class Tracer(OperationLog):
    """Records the operations on the arrays that it hands out:

        with Tracer(owners) as tracer:
            input = tracer.give("input", input)
            ...
        tracer.trace({"loss": value})
    """

    def __init__(self, owners: Mapping[int, str], *, keeps_sums: bool = False) -> None:
        super().__init__(owners, keeps_sums=keeps_sums)
        self._conversions = conversions()

    def __enter__(self) -> Tracer:
        assert arrays.recorder is None, "a trace within a trace"
        arrays.recorder = self
        self._conversions.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._conversions.__exit__(None, None, None)
        arrays.recorder = None

    def give(self, name: str, array: Array) -> Array:
        """An array that the step gets under this name, and may write to: this one where it owns its memory, or else a
        copy.
        """
        is_own = array.base is None and array.flags.c_contiguous and array.flags.writeable
        own = array if is_own else array.copy()
        self.memory.add(own, name)
        return own.view(Traced)

    def trace(self, results: Mapping[str, Array]) -> Trace:
        """The trace, with these arrays as its results. Raises CannotTrace for an array that no operation made."""
        for name, array in results.items():
            if self.memory.find(array) is None and array.size:
                raise CannotTrace(f"{name} is an array that lost its trace")
        views = {name: self.memory.view(array) for name, array in results.items()}
        return Trace(self.memory.storages, list(self.operations), views)

    def call(self, function: Callable[..., Array], arguments: tuple[Any, ...]) -> Array:
        """Call a function, and record it as one operation if an array of the trace is among its arguments."""
        if not any(isinstance(argument, Traced) for argument in arguments):
            return function(*arguments)
        result = untraced(function(*plain(arguments)))
        self.record(function.__name__, function, arguments, {}, result)
        return result.view(Traced)

    def iterations(self, steps: range) -> Reversible[int]:
        """The steps of a loop. The log notes where each iteration begins."""
        return _Iterations(self, steps)


class _Iterations:
    """The steps of a loop, in their order or reversed. A loop that was left early isn't noted."""

    def __init__(self, log: OperationLog, steps: range) -> None:
        self._log, self._steps = log, steps

    def __iter__(self) -> Iterator[int]:
        begins = []
        for step in self._steps:
            begins.append(len(self._log.operations))
            yield step
        self._log.loops.append([*begins, len(self._log.operations)])

    def __reversed__(self) -> Iterator[int]:
        return iter(_Iterations(self._log, self._steps[::-1]))
