"""Pieces of the page: names, expressions, calls. An expression knows how strongly its outermost operator binds."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

#: The levels of Python's operators, from weak to strong. Names, calls and indices are stronger than all operators.
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
#: A number in a text that isn't a part of a name.
NUMBER = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?(?:e[-+]?\d+)?)(?!\w)")

SIGNS = {"negative": "-", "invert": "~"}


class Name(NamedTuple):
    """A variable: its name in the formula, and its layer, "" for a variable of the whole step."""

    local: str
    layer: str = ""

    def __str__(self) -> str:
        return f"{self.local}_{self.layer.replace('.', '_')}" if self.layer else self.local


Parts: TypeAlias = tuple[str | Name, ...]


class Expression(NamedTuple):
    """An expression: its parts, and the level of its outermost operator."""

    parts: Parts
    level: int = ATOM

    def __str__(self) -> str:
        return "".join(map(str, self.parts))

    def within(self, level: int) -> Parts:
        """The parts as an operand that needs at least this level: in brackets if the expression is weaker."""
        return self.parts if self.level >= level else ("(", *self.parts, ")")

    def followed_by(self, suffix: str) -> Expression:
        """The expression with an index, an attribute or a call behind it."""
        return Expression((*self.within(ATOM), suffix)) if suffix else self

    @property
    def names(self) -> set[Name]:
        """The variables in it."""
        return {part for part in self.parts if isinstance(part, Name)}


def of(*parts: str | Name, level: int = ATOM) -> Expression:
    """An expression of these parts."""
    return Expression(parts, level)


def binary(name: str, left: Expression, right: Expression) -> Expression:
    """Two operands with the operator of a ufunc between them."""
    sign, level = OPERATORS[name]
    first, second = (level + 1, level) if name == "power" else (level, level + 1)
    if level == COMPARED:
        first = level + 1
    return Expression((*left.within(first), sign, *right.within(second)), level)


def call(function: Parts, arguments: Iterable[Parts]) -> Expression:
    """The call of a function."""
    parts: list[str | Name] = [*function, "("]
    for number, argument in enumerate(arguments):
        parts += [", "] * bool(number) + [*argument]
    return Expression((*parts, ")"))


def assignable(target: Expression, *, whole: bool) -> Parts:
    """The target of an assignment that changes the array itself: of a plain `=` with `whole`, otherwise of one as `+=`.
    """
    last = target.parts[-1]
    if isinstance(last, str) and last.endswith("]"):
        return target.parts
    return target.parts if isinstance(last, Name) and not whole else (*target.parts, "[...]")


def targets(parts: Parts) -> tuple[Name, ...]:
    """The variables that a statement assigns to."""
    for place, part in enumerate(parts):
        if isinstance(part, str) and part != ", ":
            return tuple(own for own in parts[:place] if isinstance(own, Name)) if part.startswith(" = ") else ()
    return ()


def followed_alone(text: str, start: int, stop: int) -> bool:
    """Whether a piece of a text needs no brackets, because it is a whole index, argument or element."""
    before, after = text[:start].rstrip()[-1:], text[stop:].lstrip()[:1]
    return before in ("", "(", "[", ",", ":", "=") and after in ("", ")", "]", ",", ":")


def render(parts: Parts) -> str:
    """The parts as one text."""
    return "".join(map(str, parts))
