"""Pieces of the page: names, and expressions with the strength of their outermost operator."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

#: Python's operators, from weak to strong; what is called, indexed or named is stronger than all.
COMPARED, OR, AND, SUM, PRODUCT, SIGN, POWER, ATOM = range(8)

OPERATORS = {
    "greater": (" > ", COMPARED),
    "less": (" < ", COMPARED),
    "greater_equal": (" >= ", COMPARED),
    "less_equal": (" <= ", COMPARED),
    "equal": (" == ", COMPARED),
    "not_equal": (" != ", COMPARED),
    "bitwise_or": (" | ", OR),
    "bitwise_and": (" & ", AND),
    "add": (" + ", SUM),
    "subtract": (" - ", SUM),
    "multiply": (" * ", PRODUCT),
    "divide": (" / ", PRODUCT),
    "floor_divide": (" // ", PRODUCT),
    "remainder": (" % ", PRODUCT),
    "matmul": (" @ ", PRODUCT),
    "power": ("**", POWER),
}
#: A number in a piece of text; not a part of a name.
NUMBER = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?(?:e[-+]?\d+)?)(?!\w)")

SIGNS = {"negative": "-", "invert": "~"}


class Name(NamedTuple):
    """A variable: what a formula calls it, and the layer whose it is, "" for one of the whole step."""

    local: str
    layer: str = ""

    def __str__(self) -> str:
        return f"{self.local}_{self.layer.replace('.', '_')}" if self.layer else self.local


Parts: TypeAlias = tuple[str | Name, ...]


class Expression(NamedTuple):
    """An expression."""

    parts: Parts
    level: int = ATOM

    def __str__(self) -> str:
        return "".join(map(str, self.parts))

    def within(self, level: int) -> Parts:
        """As an operand of an operator that needs this strength of it."""
        return self.parts if self.level >= level else ("(", *self.parts, ")")

    def followed_by(self, suffix: str) -> Expression:
        """With an index, an attribute or a call behind it."""
        return Expression((*self.within(ATOM), suffix)) if suffix else self

    @property
    def names(self) -> set[Name]:
        """The variables in it."""
        return {part for part in self.parts if isinstance(part, Name)}


def of(*parts: str | Name, level: int = ATOM) -> Expression:
    """An expression of these parts."""
    return Expression(parts, level)


def binary(name: str, left: Expression, right: Expression) -> Expression:
    """Two operands with an operator between them, by the name of the ufunc."""
    sign, level = OPERATORS[name]
    first, second = (level + 1, level) if name == "power" else (level, level + 1)
    if level == COMPARED:
        first = level + 1
    return Expression((*left.within(first), sign, *right.within(second)), level)


def call(function: Parts, arguments: Iterable[Parts]) -> Expression:
    """A call."""
    parts: list[str | Name] = [*function, "("]
    for number, argument in enumerate(arguments):
        parts += [", "] * bool(number) + [*argument]
    return Expression((*parts, ")"))


def assignable(target: Expression, *, whole: bool) -> Parts:
    """What can stand before a `=` and changes the array itself; with `whole` a plain `=`, else one as `+=`."""
    last = target.parts[-1]
    if isinstance(last, str) and last.endswith("]"):
        return target.parts
    return target.parts if isinstance(last, Name) and not whole else (*target.parts, "[...]")


def targets(parts: Parts) -> tuple[Name, ...]:
    """The variables that a statement makes: those before its `=`."""
    for place, part in enumerate(parts):
        if isinstance(part, str) and part != ", ":
            return tuple(own for own in parts[:place] if isinstance(own, Name)) if part.startswith(" = ") else ()
    return ()


def followed_alone(text: str, start: int, stop: int) -> bool:
    """Whether a piece of a text stands by itself, as an index, an argument or an element."""
    before, after = text[:start].rstrip()[-1:], text[stop:].lstrip()[:1]
    return before in ("", "(", "[", ",", ":", "=") and after in ("", ")", "]", ",", ":")


def render(parts: Parts) -> str:
    """The parts as one text."""
    return "".join(map(str, parts))
