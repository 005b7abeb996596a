"""Showing: which variable shows which array, from operation to operation."""

from __future__ import annotations

from nn_manual.arrays import Shape
from nn_manual.trace.observed import MethodCall
from nn_manual.trace.trace import View
from nn_manual.unroll.forms import suffix
from nn_manual.unroll.syntax import Expression, Name
from nn_manual.unroll.versions import Version, layer_of
from nn_manual.unroll.views import is_same, num_steps


class Showing:
    """The variables now, and the array that each shows. `shapes` keeps the last shape of each."""

    def __init__(self) -> None:
        self._holders: dict[Name, Version] = {}
        self.shapes: dict[Name, Shape] = {}

    def give(self, text: Expression, version: Version, view: View) -> None:
        """Let an expression stand for a view of an array."""
        version.handles.append((text, view))
        self._holders.update(dict.fromkeys(text.names, version))
        self.shapes.update(dict.fromkeys(text.names, view.shape))

    def show(self, name: Name, version: Version, view: View) -> None:
        """From now on the variable shows this view of an array, and nothing else."""
        self.forget(name)
        self.give(Expression((name,)), version, view)

    def forget(self, name: Name) -> None:
        """The variable no longer shows its array."""
        holder = self._holders.get(name)
        if holder is not None:
            holder.handles = [handle for handle in holder.handles if name not in handle[0].names]

    def has(self, version: Version, name: Name, view: View) -> bool:
        """Whether the variable shows this view of the array."""
        return any(text.parts == (name,) and is_same(shown, view) for text, shown in version.handles)

    def is_free(self, name: Name, now: int) -> bool:
        """Whether a variable shows no array that is needed after the operation `now`."""
        return name not in self._holders or not _is_needed(self._holders[name], now)

    def free(self, name: Name, version: Version, now: int) -> Name:
        """The name; another one if an array that is still needed has no other name."""
        number, wanted = 2, name
        while (holder := self._holders.get(wanted)) not in (None, version) and _needs(holder, wanted, now):
            wanted, number = Name(f"{name.local}{number}", name.layer), number + 1
        return wanted

    def way(
        self, version: Version, view: View, call: MethodCall | None, wanted: str = ""
    ) -> tuple[Expression, str] | None:
        """An expression, and the text behind it, that show the view. The layer's input and own variables come first,
        then the shortest text, then the variable `wanted`, then the newest variable.
        """
        if call is not None and call.input is not None:
            given = [handle for handle in version.handles if is_same(handle[1], call.input)]
            own = [each for each in version.handles if {n.layer for n in each[0].names} == {layer_of(call.owner)}]
            found = _shortest([*own, *given], view, wanted) if given else None
            if found:
                return found
        return _shortest(version.handles, view, wanted)


def _shortest(handles: list[tuple[Expression, View]], view: View, wanted: str) -> tuple[Expression, str] | None:
    found = []
    for age, (text, shown) in enumerate(reversed(handles)):
        behind = suffix(shown, view)
        if behind is not None:
            is_other = wanted not in {name.local for name in text.names}
            found.append((num_steps(behind), len(behind), is_other, age, text, behind))
    return min(found)[4:] if found else None


def _is_needed(version: Version, now: int) -> bool:
    return version.is_given or max([*version.readers, *version.writers, -1]) > now


def _needs(holder: Version | None, name: Name, now: int) -> bool:
    """Whether an array that is still needed has no other name."""
    assert holder is not None
    others = (view for text, view in holder.handles if name not in text.names)
    return _is_needed(holder, now) and not any(is_same(view, holder.form) for view in others)
