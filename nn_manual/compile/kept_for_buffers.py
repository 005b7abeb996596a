"""What the layers that have buffers saved in a compiled slice: by it the buffers move, once all slices are there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from nn_manual.arrays import Array
from nn_manual.model import Sequential
from nn_manual.trace.trace import CannotTrace

#: What a layer may save beside arrays, and tuples, lists and dicts of these.
SETTINGS = (type(None), bool, int, float, str, np.generic, np.dtype)

#: Puts something together, of arrays by names; whatever has a name goes into the second.
_Make: TypeAlias = Callable[[Mapping[str, Array], dict[str, Any]], Any]


class KeptForBuffers:
    """Takes what a model saves apart into arrays with names, while a slice is traced, and puts it together again.

        kept = KeptForBuffers(model)
        kept.arrays(saved)            # of the slice that is traced
        kept.of(plan.results(...))    # of one that the plan has made
    """

    def __init__(self, model: Sequential) -> None:
        #: Whether there is any such layer.
        self.is_needed = bool(vars(model.buffer))
        self._keep = model.kept_for_buffers
        self._makes = list[_Make]()
        self._found: dict[str, Array] = {}
        #: The names of the arrays, tuples, lists and dicts that were taken apart, by their identities.
        self.names: dict[int, str] = {}

    def arrays(self, saved: Sequence[Any]) -> dict[str, Array]:
        """Those in it, by names. Raises CannotTrace for what it can't take apart."""
        self.names, self._found = {}, {}
        self._makes = [self._make(f"kept.{i}", each) for i, each in enumerate(self._keep(list(saved)))]
        return self._found

    def of(self, arrays: Mapping[str, Array]) -> tuple[list[Any], dict[str, Any]]:
        """What `update_buffers` takes, of copies of these arrays; and each array, tuple, list and dict in it by its
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
