"""The arrays of the script: each begins with the operation that makes it, and lives on while operations write into it.

An operation that overwrites a whole array makes a new one in the script, if that gives the same bits. So
`np.exp(x, out=x)` can be a part of an expression, and a gradient is an assignment, not a part of a vector.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nn_manual.trace.observed import Observed
from nn_manual.trace.trace import TracedOperation, View, views
from nn_manual.unroll.loop_variables import Carried
from nn_manual.unroll.source import is_augmented
from nn_manual.unroll.syntax import Expression, Name
from nn_manual.unroll.views import is_same, is_whole, span
from nn_manual.unroll.without_out import needs_no_out


@dataclass(eq=False)
class Version:
    """An array: its form; the operation that makes it, -1 if the step is given it; the operations that read it, and
    those that write into it. `handles` are expressions of its views.
    """

    form: View
    made_by: int
    readers: list[int] = field(default_factory=list)
    writers: list[int] = field(default_factory=list)
    handles: list[tuple[Expression, View]] = field(default_factory=list)
    #: The name that it must have: it is a gradient.
    name: Name | None = None
    #: The calls that return this array: number of the call, name of the result, and the view that is returned.
    returned: list[tuple[int, Name, View]] = field(default_factory=list)
    #: Whether the script must make the array before an operation writes a part of it, and what it holds then.
    is_allocated: bool = False
    initial: Any = None
    #: The gradients that it consists of.
    joined: list[Version] = field(default_factory=list)

    @property
    def is_given(self) -> bool:
        """Whether the step is given it."""
        return self.made_by < 0


class Versions:
    """For each operation: the array that it makes or writes into, and the arrays that it reads."""

    def __init__(self, observed: Observed, given: dict[int, list[Version]], parts: dict[int, list[tuple[Name, View]]]):
        """`given` are the arrays that the step is given, by their storages. `parts` are the gradients in a storage;
        each is an array of its own until clipping or update begins.
        """
        self.observed, self._current, self._parts = observed, given, parts
        self.carried = Carried(observed)
        self.made: dict[int, Version] = {}
        self.written: dict[int, Version] = {}
        self.read: list[dict[View, Version]] = [{} for _ in observed.operations]
        self.given = [version for versions in given.values() for version in versions]
        self.joins: dict[int, Version] = {}
        #: The arrays that calls return, by the number of the call.
        self.after: dict[int, Version] = {}
        #: For each operation: the arrays that local variables of the innermost function show.
        self.locals: list[dict[str, Version]] = []
        ends: dict[int, list[int]] = {}
        for number, call in enumerate(observed.calls):
            ends.setdefault(call.stop, []).append(number)
        operations = observed.operations
        for index, operation in enumerate(operations):
            self._end_calls(index, ends)
            self._look_at(self.carried.updates.get(index, []), index)
            if 0 in operation.output.shape:  # it computes nothing
                self.locals.append({})
            else:
                self._add(index, operation)
            self._look_at(self.carried.last.get(index, []), index)
        self._end_calls(len(operations), ends)
        for view in observed.trace.results.values():
            found = self._find(view)
            if found is not None:
                found.readers.append(len(operations))
        #: The operations whose results nobody reads.
        self.dead = self._dead()

    def _look_at(self, shown: list[tuple[str, View]], index: int) -> None:
        """Note the arrays that local variables show. This isn't a read."""
        for _, view in shown:
            found = self._find(view)
            if found is not None:
                self.read[index][view] = found

    def at(self, view: View, index: int) -> Version:
        """The array that a view shows at this operation."""
        found = self._find(view)
        if found is None:
            found = self._allocate(index, view)
        self.read[index][view] = found
        return found

    def _find(self, view: View) -> Version | None:
        start, stop = span(view)
        for version in reversed(self._current.get(view.storage, [])):
            low, high = span(version.form)
            if low <= start and stop <= high:
                return version
        return None

    def _join(self, index: int) -> None:
        """From the first operation of clipping or update on, all gradients are one vector."""
        for storage in [own for own in self._parts if self.observed.trace.storages[own].name == "grad"]:
            made = {version.name: version for version in self._current[storage]}
            joined = [made[name] for name, _ in self._parts.pop(storage)]
            version = Version(self.observed.forms[storage], index, name=Name("grad"), joined=joined)
            for own in joined:
                own.readers.append(index)
            self._current[storage] = [version]
            self.joins[index] = version

    def _add(self, index: int, operation: TracedOperation) -> None:
        reads = list(views((operation.arguments, operation.keywords)))
        if operation.is_in_place and reads and is_same(reads[0], operation.output):
            reads = reads[1:]
        if operation.place.owner in ("", "optimizer"):
            self._join(index)
        for view in reads:
            self.at(view, index).readers.append(index)
        found = self._find(operation.output)
        self.locals.append({name: own for name, view in self._locals(index).items() if (own := self._find(view))})
        if self._is_new(index, operation, found):
            is_masked = self.is_masked(operation, index)
            dtype = self.read[index][operation.arguments[0]].form.dtype if is_masked else operation.output.dtype
            self._make(index, operation.output._replace(dtype=dtype), found)
            return
        if found is None:
            found = self._allocate(index, operation.output)
        self.read[index][operation.output] = found
        found.writers.append(index)
        self.written[index] = found

    def is_masked(self, operation: TracedOperation, index: int) -> bool:
        """Whether the operation multiplies the bits of floats by 0 or 1: this is where(mask, array, 0)."""
        if operation.name != "multiply" or not all(isinstance(argument, View) for argument in operation.arguments):
            return False
        own, mask = operation.arguments
        return mask.dtype == np.bool_ and own.dtype.kind == "i" and self.read[index][own].form.dtype.kind == "f"

    def _locals(self, index: int) -> Mapping[str, View]:
        return self.observed.sites[index].frames[0].views

    def _is_new(self, index: int, operation: TracedOperation, found: Version | None) -> bool:
        """Whether the operation makes a new array in the script: it overwrites a whole array, and no other name must
        see it.
        """
        view = operation.output
        if operation.is_in_place or not is_whole(view):
            return False
        if found is None:
            whole = self._part_at(view) or (self.observed.forms[view.storage] if self._is_made(view.storage) else None)
            if whole is None or span(whole) != span(view):
                return False
        elif found.is_given or span(found.form) != span(view) or is_augmented(self.observed.sites[index]):
            return False
        return self.observed.sites[index].part_of == "_mean" or needs_no_out(operation)

    def _is_made(self, storage: int) -> bool:
        return not self.observed.trace.storages[storage].name

    def _part_at(self, view: View) -> View | None:
        start, stop = span(view)
        for _, part in self._parts.get(view.storage, []):
            if span(part)[0] <= start and stop <= span(part)[1]:
                return part
        return None

    def _name_at(self, view: View) -> Name | None:
        part = self._part_at(view)
        return next((name for name, own in self._parts.get(view.storage, []) if own == part), None)

    def _make(self, index: int, view: View, found: Version | None) -> None:
        version = Version(view, index, name=self._name_at(view))
        self.made[index] = version
        current = self._current.setdefault(view.storage, [])
        if found is not None:
            current.remove(found)
        current.append(version)

    def _allocate(self, index: int, view: View) -> Version:
        form = self._part_at(view) or self.observed.forms[view.storage]
        initial = self.observed.trace.storages[view.storage].initial
        version = Version(form, index, name=self._name_at(view), is_allocated=True, initial=initial)
        self._current.setdefault(view.storage, []).append(version)
        return version

    def _dead(self) -> set[int]:
        operations = self.observed.operations
        dead = {index for index, operation in enumerate(operations) if 0 in operation.output.shape}
        for index in reversed(range(len(operations))):
            version = self.made.get(index)
            is_idle = version is not None and not version.readers and not version.writers
            if is_idle and index not in self.carried.inside:  # each iteration of a loop does the same
                dead.add(index)
                for read in self.read[index].values():
                    read.readers = [reader for reader in read.readers if reader != index]
        return dead

    def _end_calls(self, index: int, ends: dict[int, list[int]]) -> None:
        for number in ends.get(index, []):
            call = self.observed.calls[number]
            if call.output is None or call.method == "update_buffers":
                continue
            found = self._find(call.output)
            if found is not None:
                found.returned.append((number, name_returned(call.owner, call.method), call.output))
                self.after[number] = found


def name_returned(owner: str, method: str) -> Name:
    """The name of what a layer's or the loss's method returns."""
    if owner == "loss":
        return Name("loss" if method == "forward" else "grad_prediction")
    return Name("output" if method == "forward" else "grad_input", layer_of(owner))


def layer_of(owner: str) -> str:
    """The name of a layer from its label: "1.0" of "1.0 (Linear)"; "" if it isn't a layer's."""
    return owner.partition(" ")[0] if "(" in owner else ""
