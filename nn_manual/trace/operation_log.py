"""What is noted of a step while it runs: its operations, in their order, and where in the formulas each stands."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from traceback import walk_stack, walk_tb
from types import FrameType
from typing import Any

import numpy as np

from nn_manual import arrays
from nn_manual.arrays import Array
from nn_manual.errors import words_of
from nn_manual.trace.storages import Memory, untraced
from nn_manual.trace.trace import CannotTrace, FixedValue, SourcePlace, TracedOperation, sum_of

PACKAGE = Path(__file__).parent.parent
#: Files whose lines aren't a formula's.
NOT_FORMULAS = (str(Path(np.__file__).parent), str(Path(__file__).parent))


class OperationLog:
    """The operations so far. `owners` are the labels of layers, loss and optimizer, by their identities."""

    def __init__(self, owners: Mapping[int, str], *, keeps_sums: bool = False) -> None:
        self._owners = owners
        #: A sum over the bytes that each operation wrote, where they are kept.
        self.sums: list[int] = []
        self._keeps_sums = keeps_sums
        self._refusal: CannotTrace | None = None
        #: Plain arrays that a method returned, by their identities, and which method that was.
        self._returned: dict[int, tuple[Array, SourcePlace]] = {}
        #: Of operations that take such an array, by their index, that method.
        self.origins: dict[int, SourcePlace] = {}
        self.memory = Memory()
        self.operations: list[TracedOperation] = []
        #: Of each loop, inner ones first: where its iterations begin among the operations, and where the last one ends.
        self.loops: list[list[int]] = []

    @staticmethod
    def current() -> OperationLog:
        """The one that runs. Raises CannotTrace for an array that outlived its trace."""
        if not isinstance(arrays.recorder, OperationLog):
            raise CannotTrace("an array of a trace is used after its end")
        return arrays.recorder

    def record(
        self,
        name: str,
        function: Callable[..., Any],
        arguments: Iterable[Any],
        keywords: Mapping[str, Any],
        output: Array,
        *,
        is_in_place: bool = False,
    ) -> None:
        """Note an operation that wrote to `output`."""
        noted = tuple(map(self._argument, arguments))
        named = {key: self._argument(value) for key, value in keywords.items()}
        view = self.memory.view(output)
        if not is_in_place:
            self.memory.write(view)
        place = self._place(walk_stack(sys._getframe(1)))
        self.operations.append(TracedOperation(name, function, noted, named, view, place, is_in_place))
        if self._keeps_sums:
            self.sums.append(sum_of(untraced(output)))

    def watched(self, owner: Any, name: str) -> Callable[..., Any]:
        """A method of an owner; an array without a trace that it returns is known as its own."""
        method, code = getattr(owner, name), getattr(type(owner), name).__code__
        place = SourcePlace(self._owners[id(owner)], name, _short(code.co_filename), code.co_firstlineno)

        @functools.wraps(method)
        def call(*arguments: Any) -> Any:
            result = method(*arguments)
            for array in result[:1] if isinstance(result, tuple) else [result]:
                if type(array) is np.ndarray and self.memory.find(array) is None:
                    self._returned[id(array)] = array, place
            return result

        return call

    def refuse(self, what: str) -> CannotTrace:
        """An error that says where a formula does this."""
        self._refusal = self._refusal or CannotTrace(f"{self._place(walk_stack(sys._getframe(1)))}: {what}")
        return self._refusal

    def check(self) -> None:
        """Raise what was refused, whoever caught it."""
        if self._refusal:
            raise self._refusal

    def blamed(self, error: BaseException) -> CannotTrace:
        """An error that says where a formula came to another one, which arrays that are traced alone bring about."""
        if self._refusal or isinstance(error, CannotTrace):
            return self._refusal or CannotTrace(str(error))
        place = self._place(reversed(list(walk_tb(error.__traceback__))))
        return CannotTrace(f"{place}: {words_of(error)}")

    def _place(self, frames: Iterable[tuple[FrameType, int]]) -> SourcePlace:
        """The innermost running method of a layer, loss or optimizer; outside of all, the innermost function."""
        outside = None
        for frame, line in frames:
            code = frame.f_code
            # The locals are made into a dict when they are asked for: only methods are.
            owner = self._owners.get(id(frame.f_locals["self"]), "") if code.co_varnames[:1] == ("self",) else ""
            if owner:
                return SourcePlace(owner, code.co_name, _short(code.co_filename), line)
            if outside is None and not code.co_filename.startswith(NOT_FORMULAS):
                outside = SourcePlace("", code.co_name, _short(code.co_filename), line)
        assert outside is not None  # somebody called
        return outside

    def _argument(self, value: Any) -> Any:
        """An operation's argument as it is recorded."""
        if isinstance(value, np.ndarray):
            if self.memory.find(value) is None:
                if id(value) in self._returned:
                    self.origins[len(self.operations)] = self._returned[id(value)][1]
                return FixedValue(untraced(value).copy())
            view = self.memory.view(value)
            self.memory.read(view)
            return view
        if type(value) in (tuple, list):
            return type(value)(map(self._argument, value))
        if isinstance(value, slice) or value is None or value is Ellipsis:
            return value
        if callable(value) and not isinstance(value, type):
            raise self.refuse("a function of Python's is called with values: write it as an operation on arrays")
        return FixedValue(value)


@functools.cache
def _short(file: str) -> str:
    """A file's path from the package on, or its name."""
    path = Path(file)
    return str(path.relative_to(PACKAGE.parent)) if path.is_relative_to(PACKAGE) else path.name
