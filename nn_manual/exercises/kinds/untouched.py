"""What the reader's code must leave as it was: the settings of a component, a layer's parameters and its buffers."""

from __future__ import annotations

import dis
import inspect
from dataclasses import fields, is_dataclass
from types import CodeType, SimpleNamespace
from typing import Any

import numpy as np

from nn_manual.arrays import Array
from nn_manual.defaults import is_of_package
from nn_manual.exercises.kinds.exercise import NotASolution
from nn_manual.exercises.kinds.frozen import freeze
from nn_manual.exercises.kinds.words import written_buffer, written_parameter
from nn_manual.layers import Layer
from nn_manual.layers.composite import descendants


def read_only_arrays(layer: Any) -> dict[str, tuple[Array, str]]:
    """A layer's parameters and buffers, as code, each with the reason why the reader's code doesn't write into it."""
    kinds = (
        ("param", written_parameter, "the optimizer alone moves parameters"),
        ("buffer", written_buffer, "update_buffers alone moves buffers"),
    )
    return {
        written(name): (array, reason)
        for kind, written, reason in kinds
        for name, array in vars(getattr(layer, kind, SimpleNamespace())).items()
    }


class Untouched:
    """Remembers a component's settings, and those of the layers in it. A layer's parameters and buffers become
    read-only: to write into one raises ValueError in the line that does it.
    """

    def __init__(self, component: Any) -> None:
        self._component = component
        inside = dict(descendants(component)) if isinstance(component, Layer) else {}
        self._parts = {"": component, **inside}
        self._settings = self._now()
        self._arrays = read_only_arrays(component) if isinstance(component, Layer) else {}
        self._values = {name: freeze(array).copy() for name, (array, _) in self._arrays.items()}

    def _now(self) -> dict[tuple[str, str], Any]:
        """The settings as they are, with lists of their own, by the layer inside and the field."""
        return {
            (name, field.name): list(value) if isinstance(value, list) else value
            for name, part in self._parts.items()
            if is_dataclass(part)
            for field in fields(part)
            for value in [getattr(part, field.name)]
        }

    def refuse_changes(self) -> None:
        """Raise NotASolution for a setting that isn't what it was, and for a parameter or a buffer that is another
        array, or has other numbers.
        """
        now = self._now()
        for (part, field), value in self._settings.items():
            if now[part, field] is not value and now[part, field] != value:
                which = f"{field} of the layer {part}" if part else f"self.{field}"
                words = f"it changes {which}, which is a setting: another value needs another name"
                raise NotASolution(words, self._line_that_sets(field))
        arrays = read_only_arrays(self._component) if self._arrays else {}
        for name, (array, reason) in self._arrays.items():
            is_it = name in arrays and arrays[name][0] is array
            if not is_it or not np.array_equal(array, self._values[name]):
                raise NotASolution(f"it changes {name}: {reason}", self._line_that_sets(name.rpartition(".")[2]))

    def _line_that_sets(self, name: str) -> int:
        """The line of the reader's class that assigns an attribute of this name; 0 where none does."""
        own = [base for base in type(self._component).__mro__ if not is_of_package(base)]
        for found in (value for base in own for value in vars(base).values()):
            code = getattr(inspect.unwrap(getattr(found, "__func__", found)), "__code__", None)
            for step in dis.get_instructions(code) if isinstance(code, CodeType) else ():
                if step.opname == "STORE_ATTR" and step.argval == name and step.positions:
                    return step.positions.lineno or 0
        return 0
