"""What the reader's code must leave as it was: the settings of a component, and a layer's parameters."""

from __future__ import annotations

import dis
import inspect
from dataclasses import fields, is_dataclass
from types import CodeType
from typing import Any

import numpy as np

from nn_manual.exercises.kinds.exercise import NotASolution
from nn_manual.exercises.kinds.frozen import freeze
from nn_manual.exercises.kinds.words import written_parameter
from nn_manual.layers import Layer
from nn_manual.layers.composite import descendants

#: What is said of a parameter.
ONLY_READ = "the optimizer alone moves parameters"


class Untouched:
    """Remembers a component's settings, and those of the layers in it. A layer's parameters become read-only: to write
    into one raises ValueError in the line that does it.
    """

    def __init__(self, component: Any) -> None:
        self._component = component
        inside = dict(descendants(component)) if isinstance(component, Layer) else {}
        self._parts = {"": component, **inside}
        self._settings = self._now()
        self._parameters = dict(vars(component.param)) if isinstance(component, Layer) else {}
        self._values = {name: parameter.copy() for name, parameter in freeze(self._parameters).items()}

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
        """Raise NotASolution for a setting that isn't what it was, and for a parameter that is another array, or has
        other numbers.
        """
        now = self._now()
        for (part, field), value in self._settings.items():
            if now[part, field] is not value and now[part, field] != value:
                which = f"{field} of the layer {part}" if part else f"self.{field}"
                words = f"it changes {which}, which is a setting: another value needs another name"
                raise NotASolution(words, self._line_that_sets(field))
        for name, parameter in self._parameters.items():
            is_it = vars(self._component.param).get(name) is parameter
            if not is_it or not np.array_equal(parameter, self._values[name]):
                words = f"it changes {written_parameter(name)}: {ONLY_READ}"
                raise NotASolution(words, self._line_that_sets(name))

    def _line_that_sets(self, name: str) -> int:
        """The line of the reader's class that assigns an attribute of this name; 0 where none does."""
        own = [base for base in type(self._component).__mro__ if not base.__module__.startswith("nn_manual.")]
        for found in (value for base in own for value in vars(base).values()):
            code = getattr(inspect.unwrap(getattr(found, "__func__", found)), "__code__", None)
            for step in dis.get_instructions(code) if isinstance(code, CodeType) else ():
                if step.opname == "STORE_ATTR" and step.argval == name and step.positions:
                    return step.positions.lineno or 0
        return 0
