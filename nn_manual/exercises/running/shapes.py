"""The shapes of the arrays in the expression of a reader's file that has raised an error about shapes."""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any

import numpy as np

from nn_manual.messages.text import LONGEST_VALUE, one_line

#: What NumPy says of shapes that don't fit.
_OF_SHAPES = re.compile(r"gufunc signature|could not be broadcast|shapes? .*(?:not aligned|mismatch)|cannot reshape")


def misfit(error: BaseException, file: str) -> str:
    """An error about shapes in words: the expression, and the shape of each array in it; empty for any other error, and
    where no array is known.
    """
    if not isinstance(error, ValueError) or not _OF_SHAPES.search(str(error)):
        return ""
    entry = last_in(error.__traceback__, file)
    expression = "" if entry is None else _expression(entry, file)
    if entry is None or not expression:
        return ""
    shapes = dict(_shapes(ast.parse(expression, mode="eval"), known_in(entry)))
    if not shapes:
        return ""
    told = ", ".join(f"{name} is {shape}" for name, shape in shapes.items())
    return f"the shapes don't fit in {one_line(' '.join(expression.split()), LONGEST_VALUE)}: {told}"


def last_in(entry: TracebackType | None, file: str) -> TracebackType | None:
    """The last line of a file that ran."""
    last = None
    while entry is not None:
        last = entry if entry.tb_frame.f_code.co_filename == file else last
        entry = entry.tb_next
    return last


def known_in(entry: TracebackType) -> dict[str, Any]:
    """The names that the code of a line knows."""
    return {**entry.tb_frame.f_globals, **entry.tb_frame.f_locals}


def text_of(entry: TracebackType, file: str) -> str:
    """The text of what ran last; empty where it isn't known."""
    first, last, start, end = list(entry.tb_frame.f_code.co_positions())[entry.tb_lasti // 2]
    if first is None or last is None or start is None or end is None:
        return ""
    lines = [linecache.getline(file, number).encode() for number in range(first, last + 1)]
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start:]
    return b"".join(lines).decode(errors="replace")


def _expression(entry: TracebackType, file: str) -> str:
    """The same; empty where it is no expression."""
    text = text_of(entry, file)
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return ""
    return text


def _shapes(tree: ast.AST, known: Mapping[str, Any]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The arrays that are names, attributes of names, or transposes of these: what runs no code of the reader's."""
    value = value_of(tree, known)
    if isinstance(value, np.ndarray):
        yield ast.unparse(tree), value.shape
        return
    for node in ast.iter_child_nodes(tree):
        yield from _shapes(node, known)


def value_of(node: ast.AST, known: Mapping[str, Any]) -> Any:
    """The value of a name, of an attribute, or of a transpose; None where it is another one's."""
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if not isinstance(node, ast.Attribute):
        return None
    owner = value_of(node.value, known)
    if isinstance(owner, np.ndarray):
        return getattr(owner, node.attr) if node.attr in ("T", "mT") and owner.ndim > 1 else None
    own = vars(owner).get(node.attr) if hasattr(owner, "__dict__") else None
    return own if own is not None or not isinstance(owner, tuple) else getattr(owner, node.attr, None)
