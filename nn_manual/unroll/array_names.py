"""The names of arrays in the formulas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nn_manual.trace.observed import Observed
from nn_manual.trace.trace import View
from nn_manual.unroll.source import EMPTY_NAMES, is_returned, target_of
from nn_manual.unroll.syntax import Name
from nn_manual.unroll.versions import Version, layer_of
from nn_manual.unroll.views import is_same, span

#: The names of what a layer's method returns.
RETURNED = frozenset({"output", "grad_input"})

#: Names for arrays that are needed several times and have no name in the formulas, by the operation.
MADE_UP = {"matmul": "product", "multiply": "product", "add": "total", "divide": "quotient", "exp": "exponential"}


class ArrayNames:
    """Finds names of arrays: from what methods return, from assignments, and from local variables."""

    def __init__(self, observed: Observed) -> None:
        self._observed = observed
        self._shown = _shown_by(observed)

    def assigned(self, version: Version) -> Name | None:
        """The name in the formula that makes the array, None if it has no name there."""
        returned = self.returned(version)
        if returned is not None:
            return returned
        target = self._target(version.made_by, version.form)
        if target in RETURNED and not version.returned:  # a method that another method calls made it
            target = self._shown_whole(version) or target
        return self._name(target, version) if target else None

    def returned(self, version: Version) -> Name | None:
        """The name of the array if the layer that makes it returns it as it is."""
        for number, name, view in version.returned:
            call = self._observed.calls[number]
            if is_same(view, version.form) and call.start <= version.made_by < call.stop:
                return name
        return None

    def shown(self, version: Version) -> Name | None:
        """The name of a local variable, of any function, that shows the array while it is needed."""
        last = max([*version.readers, *version.writers, version.made_by])
        for index, local in self._shown.get(_key(version.form), ()):
            if version.made_by <= index <= last:
                return self._name(local, version)
        return None

    def made_up(self, version: Version) -> Name:
        """A new name, for an array that is needed several times and has no name in the formulas."""
        operation = self._observed.operations[version.made_by]
        target = target_of(self._observed.sites[version.made_by].frames[0])
        local = target if target and target not in EMPTY_NAMES else MADE_UP.get(operation.name, operation.name)
        return self._name(local.replace(".", "_"), version)

    def _name(self, local: str, version: Version) -> Name:
        return Name(local, layer_of(self._observed.operations[version.made_by].place.owner))

    def _target(self, index: int, form: View) -> str | None:
        """The variable of a method that the operation's value is assigned to."""
        sites = self._observed.sites
        frames = sites[index].frames
        after = {(f.number, f.position) for f in sites[index + 1].frames} if index + 1 < len(sites) else set()
        for depth, frame in enumerate(frames):
            if not (frame.is_owners or depth == len(frames) - 1):
                continue
            is_last = (depth == 0 and not sites[index].part_of) or (frame.number, frame.position) not in after
            if is_last and is_returned(frame) and depth + 1 < len(frames):
                continue
            target = target_of(frame) if is_last else None
            if depth and target not in {name for _, name in self._shown.get(_key(form), ())}:
                return None  # the function returns something else
            return target if target not in EMPTY_NAMES else None
        return None

    def _shown_whole(self, version: Version) -> str | None:
        """The name of the array in another method, in any form."""
        last = max([*version.readers, *version.writers, version.made_by])
        for site in self._observed.sites[version.made_by + 1 : last + 1]:
            for frame in reversed([each for each in site.frames if each.is_owners]):
                for name, view in frame.views.items():
                    is_whole = view.storage == version.form.storage and span(view) == span(version.form)
                    if is_whole and name not in EMPTY_NAMES | RETURNED:
                        return str(name)
        return None


def _key(view: View) -> tuple[Any, ...]:
    return view.storage, view.offset, view.shape, view.strides, view.dtype


def _shown_by(observed: Observed) -> Mapping[tuple[Any, ...], list[tuple[int, str]]]:
    """By view: the operations at which a local variable of a method shows it, and the variable's name, in their order.
    """
    found: dict[tuple[Any, ...], list[tuple[int, str]]] = {}
    for index, site in enumerate(observed.sites):
        for depth, frame in enumerate(site.frames):
            is_method = frame.instance is not None or depth == len(site.frames) - 1
            for name, view in frame.views.items() if is_method else ():
                if name not in EMPTY_NAMES:
                    found.setdefault(_key(view), []).append((index, name))
    return found
