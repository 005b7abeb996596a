"""OperationLog: notes the operations of a step while it runs, and the place of each in the formulas."""

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
#: The files here contain no formulas: NumPy's, those of the trace, and the stages of a step.
NOT_FORMULAS = (str(Path(np.__file__).parent), str(Path(__file__).parent), str(PACKAGE / "step" / "train_step.py"))


class OperationLog:
    """The operations so far. `owners` has the labels of layers, loss and optimizer, by their identities."""

    def __init__(self, owners: Mapping[int, str], *, keeps_sums: bool = False) -> None:
        self._owners = owners
        #: The checksum of each operation's output, if `keeps_sums`.
        self.sums: list[int] = []
        self._keeps_sums = keeps_sums
        self._refusal: CannotTrace | None = None
        #: Plain arrays that a method returned, by their identities, each with the method.
        self._returned: dict[int, tuple[Array, SourcePlace]] = {}
        #: By the index of an operation that takes such an array: the method.
        self.origins: dict[int, SourcePlace] = {}
        self.memory = Memory()
        self.operations: list[TracedOperation] = []
        #: For each loop, inner loops first: the operations where its iterations begin, and the one where the last one
        #: ends.
        self.loops: list[list[int]] = []

    @staticmethod
    def current() -> OperationLog:
        """The log of the trace that runs. Raises CannotTrace for an array that outlived its trace."""
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
        """A method of an owner. If it returns a plain array, the log remembers that it came from this method."""
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
        """A CannotTrace that says what a formula does, and where."""
        self._refusal = self._refusal or CannotTrace(f"{self._place(walk_stack(sys._getframe(1)))}: {what}")
        return self._refusal

    def check(self) -> None:
        """Raise the first refusal again, if there was one: a formula may have caught it."""
        if self._refusal:
            raise self._refusal

    def blamed(self, error: BaseException) -> CannotTrace:
        """A CannotTrace for another error that a formula raised: it says where. The formula fails with traced arrays
        alone.
        """
        if self._refusal or isinstance(error, CannotTrace):
            return self._refusal or CannotTrace(str(error))
        place = self._place(reversed(list(walk_tb(error.__traceback__))))
        return CannotTrace(f"{place}: {words_of(error)}")

    def _place(self, frames: Iterable[tuple[FrameType, int]]) -> SourcePlace:
        """The innermost running method of a layer, loss or optimizer; if there is none, the innermost function."""
        outside = None
        for frame, line in frames:
            code = frame.f_code
            # f_locals builds a dict, which takes time: so only methods are asked.
            owner = self._owners.get(id(frame.f_locals["self"]), "") if code.co_varnames[:1] == ("self",) else ""
            if owner:
                return SourcePlace(owner, code.co_name, _short(code.co_filename), line)
            if outside is None and not code.co_filename.startswith(NOT_FORMULAS):
                outside = SourcePlace("", code.co_name, _short(code.co_filename), line)
        assert outside is not None  # some function called
        return outside

    def _argument(self, value: Any) -> Any:
        """An argument as the operation keeps it."""
        if isinstance(value, np.ndarray):
            if self.memory.find(value) is None:
                for whole in (value, value.base):  # the next layer may look at its rows
                    if id(whole) in self._returned:
                        self.origins[len(self.operations)] = self._returned[id(whole)][1]
                return FixedValue(untraced(value).copy(order="K"))  # a BLAS may round another layout otherwise
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
    """A file's path from the package on; for a file outside of the package, its name."""
    path = Path(file)
    return str(path.relative_to(PACKAGE.parent)) if path.is_relative_to(PACKAGE) else path.name
