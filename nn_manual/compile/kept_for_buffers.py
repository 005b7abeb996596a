"""Keeps what layers with buffers save in a compiled slice, until all slices are done and the buffers move."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from nn_manual.arrays import Array
from nn_manual.model import Sequential
from nn_manual.trace.trace import CannotTrace

#: What a layer may save besides arrays, and tuples, lists and dicts of these.
SETTINGS = (type(None), bool, int, float, str, np.generic, np.dtype)

#: Puts a saved value together from arrays by names. Each part that has a name also goes into the second argument.
_Make: TypeAlias = Callable[[Mapping[str, Array], dict[str, Any]], Any]


class KeptForBuffers:
    """Splits what a model saves into named arrays while a slice is traced, and puts it together again for later slices.

        kept = KeptForBuffers(model)
        kept.arrays(saved)            # of the slice that is traced
        kept.of(plan.results(...))    # of a slice that the plan has run
    """

    def __init__(self, model: Sequential) -> None:
        #: Whether any layer has buffers.
        self.is_needed = bool(vars(model.buffer))
        self._keep = model.kept_for_buffers
        self._makes = list[_Make]()
        self._found: dict[str, Array] = {}
        #: The names of the arrays, tuples, lists and dicts in it, by their identities.
        self.names: dict[int, str] = {}

    def arrays(self, saved: Sequence[Any]) -> dict[str, Array]:
        """The arrays in `saved`, by names. Raises CannotTrace for something that it can't split."""
        self.names, self._found = {}, {}
        self._makes = [self._make(f"kept.{i}", each) for i, each in enumerate(self._keep(list(saved)))]
        return self._found

    def of(self, arrays: Mapping[str, Array]) -> tuple[list[Any], dict[str, Any]]:
        """What `update_buffers` takes, made of copies of these arrays; and each array, tuple, list and dict in it, by
        name.
        """
        parts: dict[str, Any] = {}
        return [make(arrays, parts) for make in self._makes], parts

    def _make(self, name: str, value: Any) -> _Make:
        if isinstance(value, SETTINGS):
            return lambda *_: value
        if id(value) in self.names:
            known = self.names[id(value)]
            return lambda _, parts: parts[known]
        self.names[id(value)] = name
        if isinstance(value, np.ndarray):
            self._found[name] = value
            return lambda arrays, parts: parts.setdefault(name, arrays[name].copy())
        if not isinstance(value, tuple | list | dict):
            what = f"a layer with buffers saves a {type(value).__name__}"
            raise CannotTrace(f"{what}: save arrays, numbers, tuples, lists and dicts")
        items = value.items() if isinstance(value, dict) else enumerate(value)
        makes = {key: self._make(f"{name}.{key}", inner) for key, inner in items}
        form = type(value)

        def made(arrays: Mapping[str, Array], parts: dict[str, Any]) -> Any:
            inner = {key: make(arrays, parts) for key, make in makes.items()}
            if issubclass(form, dict):
                parts[name] = form(inner)
            else:
                parts[name] = form(*inner.values()) if hasattr(form, "_fields") else form(inner.values())
            return parts[name]

        return made
