"""Turns operations into statements: decides which become lines, and which become parts of other lines.

The file is long because each of these decisions depends on the same state of the step.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from nn_manual.trace.observed import MethodCall, Observed
from nn_manual.trace.trace import CannotTrace, TracedOperation, View
from nn_manual.unroll.array_names import RETURNED, ArrayNames
from nn_manual.unroll.constants import NamedSettings
from nn_manual.unroll.expressions import in_place, written_to
from nn_manual.unroll.forms import suffix
from nn_manual.unroll.formula_words import Saying
from nn_manual.unroll.source import EMPTY_NAMES
from nn_manual.unroll.statement import Statement, in_loops
from nn_manual.unroll.syntax import OPERATORS, Expression, Name, Parts, assignable, call, of
from nn_manual.unroll.variables import Showing
from nn_manual.unroll.versions import Version, Versions, layer_of, name_returned
from nn_manual.unroll.views import is_same, is_within, num_steps
from nn_manual.unroll.without_out import needs_no_out

#: Operations that give the same bits for arrays of any form: each result is the exact one, rounded.
EXACT = frozenset({"add", "subtract", "multiply", "divide", "negative", "sqrt", "maximum", "minimum", "copyto"})


class Statements:
    """The statements of a step, in `lines`. `names` are the expressions of arrays that the step is given."""

    def __init__(
        self,
        observed: Observed,
        versions: Versions,
        settings: NamedSettings,
        names: Iterable[tuple[Expression, Version, View]],
    ) -> None:
        self._observed, self._versions, self._carried = observed, versions, versions.carried
        self.lines: list[Statement] = []
        self.pending: dict[Version, Expression] = {}
        self.showing, self._names = Showing(), ArrayNames(observed)
        self.saying = Saying(observed, versions, settings, self)
        #: Memory that has no name in the formulas, while its parts have names.
        self._unnamed: set[Version] = set()
        #: The line where the current loop over time begins, and the variables that change in this loop.
        self._loop_line, self._changing = 0, set[Name]()
        self._calls = _innermost(observed)
        for each in names:
            self.showing.give(*each)
        self._index = 0
        self._end_calls(0)
        for self._index, operation in enumerate(observed.operations):
            self._do(operation)
        self.lines = list(in_loops(self.lines, self._carried.inside))

    def _do(self, operation: TracedOperation) -> None:
        index = self._index
        if index in self._carried.begins:
            self._begin_loop(index, self._carried.begins[index])
        for local, view in self._carried.updates.get(index, ()):
            self._carry(local, view)
        if index in self._versions.joins:
            self._join(self._versions.joins[index])
        if index not in self._versions.dead:
            self._add(operation)
        for local, view in self._carried.last.get(index, ()):
            self._carry(local, view)
        if index in self._carried.last:
            for name in self._changing:  # the loop has ended
                self.showing.forget(name)
        self._end_calls(index + 1)

    def text(self, version: Version, view: View, wanted: str = "") -> Expression:
        """The expression that shows a view of an array now; if possible, of the variable `wanted`."""
        if version.is_allocated and not version.handles:
            self._allocate(version)
        if version in self.pending:
            behind = suffix(version.form, view)
            if behind is not None:
                return self.pending[version].followed_by(behind)
            self._flush(version)
        call_now = self._calls.get(self._index)
        way = self.showing.way(version, view, call_now, wanted)
        if (way is None or not self._is_plain(version, way[1])) and self._name_part(version, view):
            way = self.showing.way(version, view, call_now, wanted)
        if way is None:
            place = self._observed.operations[self._index].place
            raise CannotTrace(f"{place}: a view that no index, reshape or transpose shows")
        return way[0].followed_by(way[1])

    def say(self, parts: Parts, defines: Name | None = None) -> None:
        """Write a line."""
        place, instance = self._place(self._index), self._observed.sites[self._index].frames[0].instance
        members = [id(member) for member in self._observed.members]
        member = members.index(id(instance)) if id(instance) in members else 0
        own = self._calls.get(self._index)
        self.lines.append(Statement(self._index, own, *place, parts, defines, member=member))

    def _add(self, operation: TracedOperation) -> None:
        version = self._versions.made.get(self._index)
        if version is None:
            self._store(operation, self._versions.written[self._index])
            return
        text = self.saying.of(operation, self._index)
        name = version.name or self._names.assigned(version)
        if name is None and not version.writers and self._is_used_once(version):
            self.pending[version] = text
        else:
            self._define(version, name or self._name_elsewhere(version), text)

    def _define(self, version: Version, name: Name, text: Expression) -> None:
        name = self.showing.free(name, version, self._index)
        self._alias(name, version, version.form, text)

    def _alias(self, name: Name, version: Version, view: View, text: Expression) -> None:
        """Write a line after which a variable shows a view of an array."""
        self._flush_readers(name)
        self.say((name, " = ", *text.parts), name)
        self.showing.show(name, version, view)

    def _store(self, operation: TracedOperation, version: Version) -> None:
        self.saying.at(self._index)
        says, target = self.saying.argument, self.text(version, operation.output)
        for name in {part for text, _ in version.handles for part in text.names}:
            self._flush_readers(name, set(self._versions.read[self._index].values()))
        first = operation.arguments[0] if operation.arguments else None
        is_own = isinstance(first, View) and is_same(first, operation.output) and len(operation.arguments) == 2
        if operation.is_in_place:
            parts = in_place(operation, target, says).parts
        elif is_own and operation.name in OPERATORS and not operation.keywords:
            sign = OPERATORS[operation.name][0].strip()
            parts = (*assignable(target, whole=False), f" {sign}= ", *says(operation.arguments[1], 1).parts)
        elif operation.function is np.copyto:  # an assignment copies by itself
            parts = (*assignable(target, whole=True), " = ", *says(first, 0).parts)
        elif operation.name in EXACT or needs_no_out(operation):
            parts = (*assignable(target, whole=True), " = ", *self.saying.of(operation, self._index).parts)
        else:
            parts = written_to(operation, target, says).parts
        self.say(parts)

    def _allocate(self, version: Version) -> None:
        """Write the line that makes an array, before other lines write to it."""
        shape, dtype, initial = version.form.shape, version.form.dtype, version.initial
        if initial is not None and initial.any():
            raise CannotTrace(f"{self._observed.operations[version.made_by].place}: an array that no operation made")
        name = version.name or self._names.returned(version) or self._names.shown(version)
        if name is not None and name.local in RETURNED and not self._names.returned(version):
            name = Name(f"inner_{name.local}", name.layer)  # the layer returns another form
        if name is None:
            self._unnamed.add(version)
            name = Name("memory", layer_of(self._observed.operations[version.made_by].place.owner))
        sizes = str(shape[0]) if len(shape) == 1 else str(shape)
        self._define(version, name, of(f"np.{'empty' if initial is None else 'zeros'}({sizes}, np.{dtype})"))
        self._move_up(set())

    def _join(self, version: Version) -> None:
        """Write the line that makes one vector of all gradients. From then on the parameters are one vector, too."""
        texts = [self.text(own, own.form) for own in version.joined]
        if len(texts) == 1:
            text = texts[0].followed_by("" if len(version.joined[0].form.shape) == 1 else ".ravel()")
        else:
            text = of("np.concatenate([grad.ravel() for grad in ", *call((), [own.parts for own in texts]).parts, "])")
        for given in self._versions.given:
            given.handles = given.handles[:1]
        self._define(version, Name("grad"), text)

    def _end_calls(self, stop: int) -> None:
        """When a layer's call has ended: write a line that gives the result its name, if it doesn't have it yet."""
        for number, ended in enumerate(self._observed.calls):
            version = self._versions.after.get(number)
            if ended.stop != stop or version is None or ended.output is None:
                continue
            name = name_returned(ended.owner, ended.method)
            is_read = version.readers or version.writers
            if is_read and not self.showing.has(version, name, ended.output):
                text = self.text(version, ended.output)
                self.pending.pop(version, None)
                self._alias(name, version, ended.output, text)
                self.lines[-1] = self.lines[-1]._replace(call=ended, owner=ended.owner, method=ended.method)

    # Loops over time, and names for views

    def _begin_loop(self, start: int, stop: int) -> None:
        """Before a loop over time begins, name the views that its formulas take parts of."""
        self._loop_line, self._changing = len(self.lines), set()
        for self._index in range(start, stop):
            for view, version in self._versions.read[self._index].items():
                if version.handles and version.made_by < start:
                    self.text(version, view)
        self._index = start

    def _carry(self, local: str, view: View) -> None:
        """A local variable shows another view in a loop over time: write a line for this."""
        version = self._versions.read[self._index].get(view)
        name = Name(local, layer_of(self._observed.operations[self._index].place.owner))
        if version is not None and version.handles and not self.showing.has(version, name, view):
            self._alias(name, version, view, self.text(version, view))
            self._changing.add(name)

    def _is_plain(self, version: Version, behind: str) -> bool:
        """Whether the text behind a name is short enough for a formula."""
        if self._index in self._carried.inside and re.match(r"\[\d+:", behind):
            return False  # in another form the time is the first dimension
        return num_steps(behind) < 2 and not (behind and version in self._unnamed)

    def _name_part(self, version: Version, view: View) -> bool:
        """Name a larger view that contains this one, if the formula has a name for it. Returns whether there is one."""
        is_in_loop, call_now = self._index in self._carried.inside, self._calls.get(self._index)
        layer = layer_of(self._observed.operations[self._index].place.owner)
        for frame in (each for each in self._observed.sites[self._index].frames if each.is_owners):
            for local, whole in frame.views.items():
                behind = suffix(whole, view) if local not in EMPTY_NAMES else None
                is_part = behind is not None and num_steps(behind) < 2 and is_within(whole, version.form)
                if not is_part or (frame.number, local) in self._carried.varying:
                    continue
                way = self.showing.way(version, whole, call_now)
                if way is None or not way[1]:
                    continue
                name = Name(f"inner_{local}" if local in RETURNED else local, layer)  # the layer returns another form
                own = next(iter(way[0].names)) if is_in_loop else name
                is_own = is_in_loop and own.local.rstrip("0123456789") == local  # the formula gives it this form
                if is_own:
                    name = own
                elif is_in_loop or version in self._unnamed:
                    name = self.showing.free(name, version, self._index)
                if self.showing.is_free(name, self._index) or is_own:
                    self._alias(name, version, whole, way[0].followed_by(way[1]))
                    self._move_up(way[0].names)
                    return True
        return False

    def _move_up(self, used: set[Name]) -> None:
        """Move the last line up to where what it uses is made, or to the beginning of the layer or loop. So loops can
        form behind it.
        """
        line = self.lines.pop()._replace(may_wait=True)
        if self._index in self._carried.inside:
            self.lines.insert(self._loop_line, line._replace(may_wait=False))
            self._loop_line += 1
            return
        place = len(self.lines)
        while place and self.lines[place - 1].call is line.call and self.lines[place - 1].owner == line.owner:
            if self.lines[place - 1].defines in used or line.defines in self.lines[place - 1].parts:
                break
            place -= 1
        self.lines.insert(place, line)

    # Expressions that become parts of other lines

    def _is_used_once(self, version: Version) -> bool:
        """Whether an array is read only once, in the method that makes it, or this method returns it in another form.
        """
        own = self._calls.get(version.made_by)
        if version.returned:
            ended = self._observed.calls[version.returned[0][0]]
            return ended is own and min(version.readers, default=ended.stop) >= ended.stop
        if len(version.readers) != 1 or version.readers[0] >= len(self._observed.sites):
            return False
        (reader,) = version.readers
        return own is self._calls.get(reader) and self._place(version.made_by)[0] == self._place(reader)[0]

    def _flush_readers(self, name: Name, but: set[Version] = frozenset()) -> None:  # type: ignore[assignment]
        """Write the pending expressions that use this variable now: later it shows something else."""
        for version in [own for own, text in self.pending.items() if name in text.names and own not in but]:
            if max(version.readers) > self._index:
                self._flush(version)

    def _flush(self, version: Version) -> None:
        self._define(version, self._name_elsewhere(version), self.pending.pop(version))

    def _name_elsewhere(self, version: Version) -> Name:
        return self._names.shown(version) or self._names.made_up(version)

    def _place(self, index: int) -> tuple[str, str]:
        place = self._observed.operations[index].place
        return place.owner, place.method


def _innermost(observed: Observed) -> dict[int, MethodCall]:
    """The innermost call around each operation."""
    found: dict[int, MethodCall] = {}
    for each in sorted(observed.calls, key=lambda own: own.start - own.stop):
        found.update(dict.fromkeys(range(each.start, each.stop), each))
    return found
