"""Which array a reader's file was to write into where it has raised NumPy's error about one that is read-only."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from nn_manual.exercises.kinds.untouched import read_only_arrays
from nn_manual.exercises.running.shapes import known_in, last_in, text_of, value_of
from nn_manual.layers import Layer


def of_read_only(error: BaseException, file: str) -> str:
    """The error in words; empty for any other one."""
    if not isinstance(error, ValueError) or "read-only" not in str(error):
        return ""
    entry = last_in(error.__traceback__, file)
    if entry is not None:
        known = known_in(entry)
        component = known.get(next(iter(entry.tb_frame.f_code.co_varnames), ""))
        for target in _targets(text_of(entry, file)):
            if found := _array_of(target, component, known):
                return f"it writes into {found}"
    return "it writes into its input, which other code still reads"


def _targets(text: str) -> Iterator[ast.expr]:
    """What a piece of code writes into."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.AugAssign):
            yield node.target
        elif isinstance(node, ast.keyword) and node.arg == "out":
            yield node.value
    for node in tree.body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Subscript):
            yield node.value
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            function = node.value.func
            yield from [function.value] if isinstance(function, ast.Attribute) else []


def _array_of(target: ast.expr, component: Any, known: Mapping[str, Any]) -> str:
    """The parameter or buffer of a layer that a target is, or a view of, as code, and why it is read-only; empty where
    it is none.
    """
    written = ast.unparse(target).replace("'", '"')
    value = value_of(target, known)
    for name, (array, reason) in (read_only_arrays(component) if isinstance(component, Layer) else {}).items():
        if written == name or (isinstance(value, np.ndarray) and np.may_share_memory(value, array)):
            return f"{name}: {reason}"
    return _array_of(target.value, component, known) if isinstance(target, ast.Subscript) else ""
