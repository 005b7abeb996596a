"""The docstring of a component: its text with the formulas indented, and the classes that it may be taken from."""

from __future__ import annotations

import inspect
import re
import textwrap
from typing import Any

from nn_manual.layers import Layer
from nn_manual.losses import Loss
from nn_manual.optim import Optimizer, Scheduler

#: The classes whose docstrings state what every component keeps, and no component's formula.
CONTRACTS: tuple[type, ...] = (Layer, Loss, Optimizer, Scheduler)

#: The beginning of a formula.
FORMULA = re.compile(r"[\w.]+(?:, \w+)*(?:\[[^]=]*\])? += ")
#: What follows the formulas, and may have formulas of its own.
BEHIND = re.compile(r"^(?:Derivation|Source|Why)\b", re.MULTILINE)


def text_of(documented: Any) -> str:
    """The docstring of a class or an operation itself, without the indentation that all its lines share. Paragraphs of
    formulas are indented even so. They are at the margin where no other line stands there: cleandoc, and Python from
    3.13 on, take away what all lines below the first have in common. A formula in the first line stays at the margin.
    """
    text = inspect.cleandoc(vars(documented).get("__doc__") or "")
    before = before_derivation(text)
    first, *others = before.split("\n\n")
    if not FORMULA.match(first) and re.search(r"^    .*=", before, re.MULTILINE):
        return text
    return "\n\n".join([first, *map(indented_formulas, others)]) + text[len(before) :]


def indented_formulas(paragraph: str) -> str:
    """A paragraph, indented if it begins with a formula."""
    return textwrap.indent(paragraph, "    ") if FORMULA.match(paragraph) else paragraph


def before_derivation(text: str) -> str:
    """A docstring up to what follows its formulas."""
    found = BEHIND.search(text)
    return text if found is None else text[: found.start()]


def texts_of_family(owner: type) -> list[str]:
    """The docstring of a class, and those of its bases, but the contracts."""
    return [text_of(own) for own in owner.__mro__ if own not in CONTRACTS]
