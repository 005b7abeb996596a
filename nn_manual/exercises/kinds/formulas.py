"""The formulas in a docstring as Python: lines of `name = expression`, which are evaluated one after the other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from nn_manual.docstrings import text_of


class Formula(NamedTuple):
    """A line of a docstring: `name = expression`, or `name = expression   where field = setting`."""

    name: str
    expression: str
    field: str | None
    setting: str | None

    def holds(self, instance: Any, conditions: Mapping[str, str]) -> bool:
        """Whether the line applies to an object with these settings. Of a condition that is none of its attributes,
        `conditions` say what holds: {"target": "indices"}.
        """
        return self.field is None or str({**vars(instance), **conditions}[self.field]) == self.setting


_FORMULA = re.compile(r"(\w+) *= (\S(?: ?\S)*)(?: +where (\w+) = (\w+))?")


def formulas(documented: Any) -> Iterator[Formula]:
    """The formulas of a class or an operation: the first indented block of its docstring. Raises ValueError for another
    line in it, and where there is none.
    """
    paragraphs = text_of(documented).split("\n\n")
    block = next((paragraph for paragraph in paragraphs if paragraph.startswith("    ")), "")
    if not block:
        raise ValueError(f"{documented.__name__} has no formulas")
    for line in block.splitlines():
        match = _FORMULA.fullmatch(line.strip())
        if match is None:
            raise ValueError(f"{documented.__name__}: no formula: {line}")
        yield Formula(*match.groups())


def evaluate(
    lines: Iterable[Formula], instance: Any, known: Mapping[str, Any], conditions: Mapping[str, str]
) -> dict[str, Any]:
    """What formulas make of `known`, the object's attributes, NumPy's functions and each other. A later line of a name
    takes the place of an earlier one.
    """
    results: dict[str, Any] = {}
    for line in lines:
        if line.holds(instance, conditions):
            results[line.name] = eval(line.expression, vars(np) | vars(instance) | dict(known) | results)
    return results
