"""From operations to statements: expressions as the formulas have them, under the names that the formulas use."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.trace.observed import Call, Observed, Site
from nn_manual.trace.operation import CannotTrace, Constant, Operation, View
from nn_manual.unroll.constants import Resolver, Settings, number
from nn_manual.unroll.expressions import expression, in_place, literal, mean, written_to
from nn_manual.unroll.loops import Line, in_list, rolled
from nn_manual.unroll.source import EMPTY_NAMES, is_returned, operand_of, target_of
from nn_manual.unroll.text import OPERATORS, Name, Parts, Text, binary, call, of
from nn_manual.unroll.versions import Version, Versions, is_natural, layer_of, name_returned
from nn_manual.unroll.views import array_at, is_same, num_steps, span, suffix

#: What a layer's method calls that which it returns.
RETURNED = frozenset({"output", "grad_input"})

#: Functions of NumPy's that fill a new array with a number.
FILLING = frozenset({"full_like", "zeros_like", "ones_like"})

#: Operations that give the same bits whatever form their arrays have: each result is the exact one, rounded.
EXACT = frozenset({"add", "subtract", "multiply", "divide", "negative", "sqrt", "maximum", "minimum", "copyto"})


class Statement(NamedTuple):
    """A line of the script: the place of its operation, the call of a layer or the loss that it is in, None outside of
    these; whose it is; and what it says. `defines` is the variable that it makes, `depth` how deep in loops it is,
    `member` the number of the group that an optimizer moves there. What `may_wait` can stand anywhere before its use; what
    `is_called` calls a function of the page.
    """

    index: int
    call: Call | None
    owner: str
    method: str
    parts: Parts
    defines: Name | None = None
    depth: int = 0
    member: int = 0
    may_wait: bool = False
    is_called: bool = False


class Statements:
    """The statements of a step, in `lines`."""

    def __init__(
        self,
        observed: Observed,
        versions: Versions,
        settings: Settings,
        names: Iterable[tuple[Text, Version, View]],
    ) -> None:
        self.observed, self.versions, self.settings = observed, versions, settings
        self.lines: list[Statement] = []
        #: Arrays that depend on nothing, by their texts.
        self.fixed: dict[Text, Name] = {}
        self._made_here: dict[Name, Text] = {}
        #: What was added up to a number.
        self._terms: dict[Version, list[Text]] = {}
        #: Memory for which the formulas have no name, but names for its parts.
        self._unnamed: set[Version] = set()
        self._pending: dict[Version, Text] = {}
        self._bound: dict[Name, Version] = {}
        #: The forms of all arrays that have names.
        self.shapes: dict[Name, Shape] = {}
        for text, version, view in names:
            self._show(text, version, view)
        self._calls = _innermost(observed)
        self._shown = _shown_by(observed)
        self._index = 0
        #: Where the loop over time that runs begins among the lines.
        self._loop_line, self._carrying = 0, set[Name]()
        self._wanted = ""
        operations = observed.operations
        dead = self._dead()
        self._end_calls(0)
        for index, operation in enumerate(operations):
            self._index = index
            if index in versions.carried.begins:
                self._begin_loop(index, versions.carried.begins[index])
            for local, view in versions.carried.updates.get(index, ()):
                self._carry(local, view)
            if index in versions.joins:
                self._join(versions.joins[index])
            if index not in dead:
                self._add(operation)
            for local, view in versions.carried.last.get(index, ()):
                self._carry(local, view)
            if index in versions.carried.last:
                self._end_loop()
            self._end_calls(index + 1)
        self._index = len(operations)
        self.lines = list(_in_loops(self.lines, versions.carried.inside))

    def text(self, view: View) -> Text:
        """What shows a view now."""
        version = self.versions.read.get((self._index, view)) or self.versions.at(view, self._index)
        return self._text(version, view)

    def _text(self, version: Version, view: View) -> Text:
        if version.is_allocated and not version.handles:
            self._allocate(version)
        if version in self._pending:
            behind = suffix(version.form, view)
            if behind is not None:
                return self._pending[version].followed_by(behind)
            self._flush(version)
        found = self._found(version, view)
        is_plain = found and num_steps(found[1]) < 2 and not (found[1] and version in self._unnamed)
        if found and self._index in self.versions.carried.inside and re.match(r"\[\d+:", found[1]):
            is_plain = False  # a formula has a form whose first dimension is the time
        if not is_plain and self._name_part(version, view):
            found = self._found(version, view)
        if not found:
            place = self.observed.operations[min(self._index, len(self.observed.sites) - 1)].place
            raise CannotTrace(f"{place}: a view that no index, reshape or transpose shows")
        return found[0].followed_by(found[1])

    def _found(self, version: Version, view: View) -> tuple[Text, str] | None:
        """The shortest way to a view, from what the layer gets or has if possible, and of equal ones the newest."""
        call = self._call_at(self._index)
        if call is not None and call.input is not None:
            given = [handle for handle in version.handles if is_same(handle[1], call.input)]
            own = [h for h in version.handles if {n.layer for n in h[0].names} == {layer_of(call.owner)}]
            found = self._shortest([*own, *given], view) if given else None
            if found:
                return found
        return self._shortest(version.handles, view)

    def _shortest(self, handles: list[tuple[Text, View]], view: View) -> tuple[Text, str] | None:
        found = []
        for age, (text, shown) in enumerate(reversed(handles)):
            behind = suffix(shown, view)
            if behind is not None:
                is_other = self._wanted not in {name.local for name in text.names}
                found.append((num_steps(behind), len(behind), is_other, age, text, behind))
        return min(found)[4:] if found else None

    def _carry(self, local: str, view: View) -> None:
        """A local variable shows something else in a loop over time."""
        version = self.versions.read.get((self._index, view))
        name = Name(local, layer_of(self._place(self._index).owner))
        if version is None or not version.handles or self._has(version, name, view):
            return
        text = self._text(version, view)
        self._flush_readers(name)
        self._say((name, " = ", *text.parts), name)
        self._show(of(name), version, view)
        self._carrying.add(name)

    def _begin_loop(self, start: int, stop: int) -> None:
        """Name, before a loop over time begins, the views that its formulas take parts of."""
        self._loop_line, self._carrying = len(self.lines), set()
        for self._index in range(start, stop):
            for (_, view), version in self._reads_at(self._index):
                if version.handles and version.made_by < start:
                    self._text(version, view)
        self._index = start

    def _end_loop(self) -> None:
        """What local variables showed in its iterations counts no more."""
        for name in self._carrying:
            holder = self._bound[name]
            others = [handle for handle in holder.handles if name not in handle[0].names]
            holder.handles = others or holder.handles

    def _name_part(self, version: Version, view: View) -> bool:
        """Name the view from which a formula takes this one, where it has a name for that."""
        for frame in (each for each in self.observed.sites[self._index].frames if each.is_owners):
            for local, whole in frame.views.items():
                behind = suffix(whole, view) if local not in EMPTY_NAMES else None
                if behind is None or num_steps(behind) > 1 or not _lies_in(whole, version):
                    continue
                if (frame.number, local) in self.versions.carried.varying:
                    continue
                found = self._found(version, whole)
                if found is None or not found[1]:
                    continue
                if local in RETURNED:  # of which the layer returns another form
                    local = f"inner_{local}"
                name = Name(local, layer_of(self._place(self._index).owner))
                is_in_loop = self._index in self.versions.carried.inside
                is_own = is_in_loop and found[0].names == {name}  # the formula gives it this form
                if name in self._bound and self._is_needed(self._bound[name]) and not is_own:
                    continue
                self._flush_readers(name)
                self._say((name, " = ", *found[0].followed_by(found[1]).parts), name)
                self._move_up(found[0].names)
                self._show(of(name), version, whole)
                return True
        return False

    def _move_up(self, used: set[Name]) -> None:
        """Say the last line where what it uses is made, or where the layer begins: a loop may come in between."""
        if self._index in self.versions.carried.inside:
            self.lines.insert(self._loop_line, self.lines.pop())
            self._loop_line += 1
            return
        line = self.lines.pop()._replace(may_wait=True)
        place = len(self.lines)
        while place and self.lines[place - 1].call is line.call and self.lines[place - 1].owner == line.owner:
            if self.lines[place - 1].defines in used:
                break
            place -= 1
        self.lines.insert(place, line)

    def _show(self, text: Text, version: Version, view: View) -> None:
        """From now on the text shows a view of an array."""
        for name in text.names:
            holder = self._bound.get(name)
            if holder is not None and text.parts == (name,):
                holder.handles = [handle for handle in holder.handles if name not in handle[0].names]
            self._bound[name] = version
        version.handles.append((text, view))
        self.shapes.update(dict.fromkeys(text.names, view.shape))

    # What operations become

    def _add(self, operation: Operation) -> None:
        version = self.versions.made.get(self._index)
        if version is None:
            self._store(operation, self.versions.written[self._index])
            return
        text = self._expression(operation)
        name = version.name or self._name(version)
        if name is None and not version.writers and self._is_used_once(version):
            self._pending[version] = text
        else:
            self._define(version, name or self._name_elsewhere(version, operation), text)

    def _define(self, version: Version, name: Name, text: Text) -> None:
        name = self._free(name, version)
        self._flush_readers(name)
        self._show(of(name), version, version.form)
        self._say((name, " = ", *text.parts), name)

    def _store(self, operation: Operation, version: Version) -> None:
        target = self._text(version, operation.output)
        for name in {part for text, _ in version.handles for part in text.names}:
            self._flush_readers(name, self._used_by(operation))
        if operation.is_in_place:
            self._say(in_place(operation, target, self._says).parts)
            return
        first = operation.arguments[0] if operation.arguments else None
        is_own = isinstance(first, View) and is_same(first, operation.output)
        if is_own and operation.name in OPERATORS and not operation.keywords and len(operation.arguments) == 2:
            sign = OPERATORS[operation.name][0].strip()
            parts = (*_assignable(target, whole=False), f" {sign}= ", *self._says(operation.arguments[1], 1).parts)
        elif operation.name in EXACT or is_natural(operation):
            parts = (*_assignable(target, whole=True), " = ", *self._stored(operation).parts)
        else:
            parts = written_to(operation, target, self._says).parts
        self._say(parts)

    def _stored(self, operation: Operation) -> Text:
        if operation.function is np.copyto:  # an assignment copies by itself
            return self._says(operation.arguments[0], 0)
        return self._expression(operation)

    def _allocate(self, version: Version) -> None:
        shape, dtype = version.form.shape, version.form.dtype
        sizes = str(shape[0]) if len(shape) == 1 else str(shape)
        make = "empty" if version.initial is None else "zeros"
        if version.initial is not None and version.initial.any():
            raise CannotTrace("an array with values that no operation made")
        name = version.name or self._returned_as(version)
        if name is None:
            operation = self.observed.operations[version.made_by]
            shown = self._shown_later(version)
            if not shown:
                self._unnamed.add(version)
            name = Name(shown or "memory", layer_of(operation.place.owner))
        self._define(version, name, of(f"np.{make}({sizes}, np.{dtype})"))
        self._move_up(set())

    def _join(self, version: Version) -> None:
        name = Name("grad")
        texts = [self._text(own, own.form) for own in version.joined]
        if len(texts) == 1:
            text = texts[0].followed_by("" if len(version.joined[0].form.shape) == 1 else ".ravel()")
        else:
            listed = call((), [own.parts for own in texts]).parts
            text = of("np.concatenate([grad.ravel() for grad in ", *listed, "])")
        for own in {id(own): own for _, own in self.versions.read.items() if own.is_given}.values():
            own.handles = own.handles[:1]  # the update is of whole vectors
        self._define(version, name, text)

    def _end_calls(self, stop: int) -> None:
        """Give what a layer has returned its name, where that is another view or has another name."""
        for number, ended in enumerate(self.observed.calls):
            version = self.versions.after.get(number)
            if ended.stop != stop or version is None or ended.output is None:
                continue
            name = name_returned(ended.owner, ended.method)
            if self._bound.get(name) is version and self._has(version, name, ended.output):
                continue
            if not version.readers and not version.writers:
                continue
            text = self._text(version, ended.output)
            self._pending.pop(version, None)
            self._flush_readers(name)
            version.handles = [handle for handle in version.handles if name not in handle[0].names]
            self._show(of(name), version, ended.output)
            self.lines.append(Statement(stop - 1, ended, ended.owner, ended.method, (name, " = ", *text.parts), name))

    @staticmethod
    def _has(version: Version, name: Name, view: View) -> bool:
        return any(text.parts == (name,) and is_same(shown, view) for text, shown in version.handles)

    # Expressions

    def _expression(self, operation: Operation) -> Text:
        site = self.observed.sites[self._index]
        if site.part_of == "_mean" and operation.name == "divide":
            (total, _), before = operation.arguments, self._index - 1
            version = self.versions.read[self._index, total]
            if version in self._pending and version.made_by == before:
                return self._pending.pop(version)
        if site.part_of == "_mean" and operation.name == "add.reduce":
            return mean(operation, self._says(operation.arguments[0], 0), self._says)
        if self.versions.is_masked(operation, self._index):
            own, mask = operation.arguments
            dtype = self.versions.read[self._index, own].form.dtype
            as_floats = self._text(self.versions.read[self._index, own], own._replace(dtype=dtype))
            return call(("np.where",), [self.text(mask).parts, as_floats.parts, ("0",)])
        if operation.function is np.copyto and isinstance(operation.arguments[0], View):
            (source,) = operation.arguments
            version = self.versions.read[self._index, source]
            if version in self._pending and is_same(source, version.form) and source.dtype == operation.output.dtype:
                return self._pending[version]  # a new array as it is
        if operation.name == "add" and not operation.output.shape:
            return self._added(operation)
        if site.part_of == "stack" and operation.name == "concatenate":
            return self._stacked(operation)
        return expression(operation, self._says)

    def _added(self, operation: Operation) -> Text:
        """A sum of numbers, which may be one of many."""
        left, right = operation.arguments
        version = self.versions.read.get((self._index, left)) if isinstance(left, View) else None
        said = [self._says(argument, place) for place, argument in enumerate(operation.arguments)]
        terms = [*self._terms.get(version, [said[0]]), said[1]]  # type: ignore[arg-type]  # None is no key
        self._terms[self.versions.made[self._index]] = terms
        listed = in_list([term.parts for term in terms[1:]])
        is_from_zero = str(terms[0]) == "np.float64(0.0)"
        return call(("sum",), [listed]) if listed and is_from_zero else binary(operation.name, *said)

    def _stacked(self, operation: Operation) -> Text:
        """A concatenation of arrays that np.stack gave another dimension."""
        views, axis = operation.arguments[0], operation.keywords.get("axis", Constant(0)).value
        texts = []
        for view in views:
            shape, strides = ([*own[:axis], *own[axis + 1 :]] for own in (view.shape, view.strides))
            flat = view._replace(shape=tuple(shape), strides=tuple(strides))
            texts.append(self._text(self.versions.read[self._index, view], flat).parts)
        listed = in_list(texts) or call((), texts).parts[1:-1]
        return call(("np.stack",), [("[", *listed, "]"), (f"axis={axis}",)])

    def _says(self, argument: Any, place: int | None) -> Text:
        if isinstance(argument, View):
            node = operand_of(self.observed.sites[self._index], place) if place is not None else None
            self._wanted = node.id if isinstance(node, ast.Name) else ""
            text = self.text(argument)
            self._wanted = ""
            return text
        if isinstance(argument, Constant):
            return self._constant(argument.value, place)
        if isinstance(argument, tuple | list):
            inner = [self._says(each, None).parts for each in argument]
            repeated = in_list(inner) if isinstance(argument, list) else None
            if repeated is not None:
                return Text(("[", *repeated, "]"))
            opening, closing = "()" if isinstance(argument, tuple) else "[]"
            listed = call((), inner).parts[1:-1]
            comma = (",",) if isinstance(argument, tuple) and len(inner) == 1 else ()
            return Text((opening, *listed, *comma, closing))
        if isinstance(argument, slice):
            ends = [argument.start, argument.stop, argument.step]
            shown = ["" if end is None else str(end) for end in ends]
            return of(":".join(shown[: 3 if argument.step is not None else 2]))
        return of("..." if argument is Ellipsis else repr(argument))

    def _constant(self, value: Any, place: int | None) -> Text:
        site = self.observed.sites[self._index]
        node = operand_of(site, place) if place is not None else None
        if isinstance(value, np.ndarray) and value.size > 1:
            return self._fixed_array(literal(value), node)
        if isinstance(value, np.ndarray) and value.size == 1 and self._part_of() in FILLING:
            value = value.item()
        return number(value, node, self._resolver(site)) if node is not None else literal(value)

    def _part_of(self) -> str:
        return self.observed.sites[self._index].part_of

    def _fixed_array(self, text: Text, node: ast.expr | None) -> Text:
        """An array that depends on nothing: under the name that the formula has for it, or made once for all."""
        if isinstance(node, ast.Name) and node.id not in EMPTY_NAMES:
            name = Name(node.id, layer_of(self._place(self._index).owner))
            if self._made_here.get(name) != text:
                self._made_here[name] = text
                self._say((name, " = ", *text.parts), name)
            return of(name)
        made = "ones" if str(text).startswith("np.ones(") else "fixed"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            made = node.func.id.strip("_")
        names = [name for name in self.fixed.values() if name.local.startswith(made)]
        return of(self.fixed.setdefault(text, Name(f"{made}_{len(names) + 1}" if names else made)))

    def _resolver(self, site: Site) -> Resolver:
        frame = site.frames[0]
        arrays: dict[str, tuple[Text, Array]] = {}
        for name, version in self.versions.locals[self._index].items():
            if version.handles and version not in self._pending:
                try:
                    arrays[name] = self._text(version, frame.views[name]), array_at(frame.views[name])
                except CannotTrace:
                    continue
        return Resolver(self.settings, frame.instance, frame, arrays)

    # Names

    def _name(self, version: Version) -> Name | None:
        """What the formulas call an array, None where they have no name for it."""
        returned = self._returned_as(version)
        if returned is not None:
            return returned
        target = self._target(version.made_by, version.form)
        if target in RETURNED and not version.returned:  # of a method that another one calls
            target = self._shown_whole(version) or target
        return Name(target, layer_of(self._place(version.made_by).owner)) if target else None

    def _shown_whole(self, version: Version) -> str | None:
        """What another method calls an array, in whatever form."""
        last = max([*version.readers, *version.writers, version.made_by])
        for index in range(version.made_by + 1, min(last + 1, len(self.observed.sites))):
            for frame in reversed([each for each in self.observed.sites[index].frames if each.is_owners]):
                for local, view in frame.views.items():
                    is_same_memory = view.storage == version.form.storage and span(view) == span(version.form)
                    if is_same_memory and local not in EMPTY_NAMES | RETURNED:
                        return local
        return None

    def _returned_as(self, version: Version) -> Name | None:
        for number, name, view in version.returned:
            call = self.observed.calls[number]
            if is_same(view, version.form) and call.start <= version.made_by < call.stop:
                return name
        return None

    def _name_elsewhere(self, version: Version, operation: Operation) -> Name:
        """What another function calls it, or a name for what the formulas need several times and have no name for."""
        target = self._shown_later(version)
        return Name(target, layer_of(operation.place.owner)) if target else self._made_up(operation)

    def _place(self, index: int) -> Any:
        return self.observed.operations[index].place

    def _target(self, index: int, form: View) -> str | None:
        """The variable that a method gives the operation's value to."""
        sites = self.observed.sites
        frames = sites[index].frames
        after = {(f.number, f.position) for f in sites[index + 1].frames} if index + 1 < len(sites) else set()
        for depth, frame in enumerate(frames):
            is_method = frame.is_owners or depth == len(frames) - 1
            is_last = (depth == 0 and not sites[index].part_of) or (frame.number, frame.position) not in after
            if is_method:
                if is_last and is_returned(frame) and depth + 1 < len(frames):
                    continue
                target = target_of(frame) if is_last else None
                if depth and target not in {name for _, name in self._shown.get(_key(form), ())}:
                    return None  # what the function returns is something else
                return target if target not in EMPTY_NAMES else None
        return None

    def _shown_later(self, version: Version) -> str | None:
        last = max([*version.readers, *version.writers, version.made_by])
        for index, local in self._shown.get(_key(version.form), ()):
            if version.made_by <= index <= last:
                return local
        return None

    def _made_up(self, operation: Operation) -> Name:
        names = {"matmul": "product", "multiply": "product", "add": "total", "divide": "quotient", "exp": "exponential"}
        target = target_of(self.observed.sites[self._index].frames[0])
        local = target if target and target not in EMPTY_NAMES else names.get(operation.name, operation.name)
        return Name(local.replace(".", "_"), layer_of(operation.place.owner))

    def _free(self, name: Name, version: Version) -> Name:
        """The name, or another one where an array that is still needed has it."""
        number, wanted = 2, name
        while (holder := self._bound.get(wanted)) not in (None, version) and self._needs_name(holder, wanted):
            wanted, number = Name(f"{name.local}{number}", name.layer), number + 1
        return wanted

    def _needs_name(self, holder: Version, name: Name) -> bool:
        """Whether an array that is still needed has no other name."""
        others = (view for text, view in holder.handles if name not in text.names)
        return self._is_needed(holder) and not any(is_same(view, holder.form) for view in others)

    def _is_needed(self, version: Version) -> bool:
        return version.is_given or max([*version.readers, *version.writers, -1]) > self._index

    # Order

    def _is_used_once(self, version: Version) -> bool:
        """Whether an array is read once, in the method that makes it, or returned by that in another form."""
        own = self._call_at(version.made_by)
        if version.returned:
            number, _, view = version.returned[0]
            ended = self.observed.calls[number]
            return ended is own and min(version.readers, default=ended.stop) >= ended.stop
        if len(version.readers) != 1:
            return False
        (reader,) = version.readers
        if reader >= len(self.observed.sites):
            return False
        return own is self._call_at(reader) and self._place(version.made_by).owner == self._place(reader).owner

    def _call_at(self, index: int) -> Call | None:
        return self._calls.get(index)

    def _used_by(self, operation: Operation) -> set[Version]:  # noqa: ARG002 - all that the operation reads
        return {version for (index, _), version in self._reads_at(self._index)}

    def _reads_at(self, index: int) -> list[tuple[tuple[int, View], Version]]:
        return [(key, version) for key, version in self.versions.read.items() if key[0] == index]

    def _flush_readers(self, name: Name, but: set[Version] = frozenset()) -> None:  # type: ignore[assignment]
        """Compute now what would read this variable later, when it shows something else."""
        for version in [own for own, text in self._pending.items() if name in text.names and own not in but]:
            if max(version.readers) > self._index:
                self._flush(version)

    def _flush(self, version: Version) -> None:
        text = self._pending.pop(version)
        self._define(version, self._name_elsewhere(version, self.observed.operations[version.made_by]), text)

    def _say(self, parts: Parts, defines: Name | None = None) -> None:
        index = min(self._index, len(self.observed.sites) - 1)
        place = self._place(index)
        ids = [id(member) for member in self.observed.members]
        instance = id(self.observed.sites[index].frames[0].instance)
        member = ids.index(instance) if instance in ids else 0
        own = self._call_at(index)
        self.lines.append(Statement(index, own, place.owner, place.method, parts, defines, member=member))

    def _dead(self) -> set[int]:
        """Operations whose results nobody reads."""
        operations = self.observed.operations
        dead = {index for index, operation in enumerate(operations) if 0 in operation.output.shape}
        for index in reversed(range(len(self.observed.operations))):
            version = self.versions.made.get(index)
            is_idle = version is not None and not version.readers and not version.writers
            if is_idle and index not in self.versions.carried.inside:  # each iteration does the same
                dead.add(index)
                for _, read in self._reads_at(index):
                    while index in read.readers:
                        read.readers.remove(index)
        return dead


def _in_loops(lines: list[Statement], over_time: set[int]) -> Iterator[Statement]:
    """The statements of each layer, those that repeat in loops."""
    for _, own in itertools.groupby(lines, key=lambda line: (id(line.call), line.owner, line.member)):
        yield from _late(list(_rolled(list(own), over_time)))


def _late(lines: list[Statement]) -> list[Statement]:
    """Those that may wait as late as they can be."""
    for place in reversed(range(len(lines))):
        line = lines[place]
        if not line.may_wait or line.depth:
            continue
        after = place + 1
        while after < len(lines):
            end = after + 1
            while end < len(lines) and lines[end].depth:
                end += 1
            if any(line.defines in other.parts for other in lines[after:end]):
                break
            after = end
        lines[place:after] = [*lines[place + 1 : after], line]
    return lines


def _rolled(statements: list[Statement], over_time: set[int]) -> Iterator[Statement]:
    by_parts = {statement.parts: statement for statement in reversed(statements)}
    counters = "t" if any(statement.index in over_time for statement in statements) else "itk"
    for item in rolled([(Line(0, statement.parts),) for statement in statements], counters):
        for line in item:
            like = by_parts.get(line.parts, statements[0]._replace(may_wait=False, defines=None))
            yield like._replace(parts=line.parts, depth=line.depth)


def _lies_in(view: View, version: Version) -> bool:
    (low, high), (start, stop) = span(version.form), span(view)
    return view.storage == version.form.storage and low <= start and stop <= high


def _assignable(target: Text, *, whole: bool) -> Parts:
    """What can stand before a `=`, and changes the array itself."""
    last = target.parts[-1]
    if isinstance(last, str) and last.endswith("]"):
        return target.parts
    if isinstance(last, Name) and not whole:
        return target.parts
    return (*target.parts, "[...]")


def _innermost(observed: Observed) -> dict[int, Call]:
    """Of each operation the call that it is in, the innermost one."""
    found: dict[int, Call] = {}
    for each in sorted(observed.calls, key=lambda call: call.start - call.stop):
        for index in range(each.start, each.stop):
            found[index] = each
    return found


def _key(view: View) -> tuple[Any, ...]:
    return view.storage, view.offset, view.shape, view.strides, view.dtype


def _shown_by(observed: Observed) -> Mapping[tuple[Any, ...], list[tuple[int, str]]]:
    """The operations at which a local variable of a method shows a view, and its name, in their order."""
    found: dict[tuple[Any, ...], list[tuple[int, str]]] = {}
    for index, site in enumerate(observed.sites):
        for depth, frame in enumerate(site.frames):
            is_method = frame.instance is not None or depth == len(site.frames) - 1
            for name, view in frame.views.items() if is_method else ():
                if name not in EMPTY_NAMES:
                    found.setdefault(_key(view), []).append((index, name))
    return found


