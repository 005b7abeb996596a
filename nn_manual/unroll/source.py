"""Looks up an operation in the source: the expression that it stands in, and the names there."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from types import CodeType
from typing import Any

from nn_manual.trace.observed import Frame, Site

#: Names of local variables that don't describe their values.
EMPTY_NAMES = frozenset({"saved", "array", "result", "own", "grad_rows", "rows", "by_row"})


#: Names of modules: behind `np.` stands a function, not a method.
MODULES = frozenset({"np", "numpy", "scipy", "math"})


class SyntaxTree:
    """The nodes of a file's syntax tree, by their positions, and the parent of each node."""

    def __init__(self, text: str) -> None:
        self.nodes: dict[tuple[int | None, ...], ast.AST] = {}
        self.parents: dict[ast.AST, ast.AST] = {}
        for node in ast.walk(ast.parse(text)):
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node
            if isinstance(node, ast.expr | ast.AugAssign):
                self.nodes[node.lineno, node.end_lineno, node.col_offset, node.end_col_offset] = node


@functools.cache
def source_of(file: str) -> SyntaxTree:
    """The syntax tree of a file; an empty one if the file can't be read."""
    try:
        with open(file, encoding="utf-8") as stream:
            return SyntaxTree(stream.read())
    except (OSError, SyntaxError, UnicodeDecodeError):
        return SyntaxTree("")


def node_of(frame: Frame) -> ast.AST | None:
    """The expression that a function is running, or the statement if that is `a += b`."""
    return source_of(frame.code.co_filename).nodes.get(frame.position)


def target_of(frame: Frame) -> str | None:
    """The name that the expression's value is assigned to, None if there is none."""
    node, parents = node_of(frame), source_of(frame.code.co_filename).parents
    if not isinstance(node, ast.expr):
        return None
    parent, place = parents[node], None
    while isinstance(parent, ast.IfExp) and node is not parent.test:
        node, parent = parent, parents[parent]
    if isinstance(parent, ast.Tuple):
        place, parent = parent.elts.index(node), parents[parent]
    if isinstance(parent, ast.Assign):
        targets: list[Any] = list(reversed(parent.targets))
    elif isinstance(parent, ast.AnnAssign | ast.NamedExpr):
        targets = [parent.target]
    else:
        return None
    for target in targets:
        if place is not None and isinstance(target, ast.Tuple) and place < len(target.elts):
            target = target.elts[place]
        if isinstance(target, ast.Name):
            return target.id
    return None


def is_returned(frame: Frame) -> bool:
    """Whether the function returns the expression's value."""
    node = node_of(frame)
    return isinstance(node, ast.expr) and isinstance(source_of(frame.code.co_filename).parents[node], ast.Return)


def is_augmented(site: Site) -> bool:
    """Whether the operation is an `a += b` in a method of the owner, not in a function that the method calls."""
    is_method = len(site.frames) == 1 or site.frames[0].is_owners
    return is_method and not site.part_of and isinstance(node_of(site.frames[0]), ast.AugAssign)


def operand_of(site: Site, place: int) -> ast.expr | None:
    """The source expression of the operation's argument number `place`, counted from 0."""
    if site.part_of == "full_like":
        place += 1  # the first argument gives the shape
    elif site.part_of:
        return None
    node = node_of(site.frames[0])
    operands: list[ast.expr] = []
    if isinstance(node, ast.BinOp):
        operands = [node.left, node.right]
    elif isinstance(node, ast.AugAssign):
        operands = [ast.Constant(None), node.value]
    elif isinstance(node, ast.Compare) and len(node.comparators) == 1:
        operands = [node.left, node.comparators[0]]
    elif isinstance(node, ast.UnaryOp):
        operands = [node.operand]
    elif isinstance(node, ast.Call):
        is_method = isinstance(node.func, ast.Attribute) and not _is_module(node.func.value)
        operands = [node.func.value, *node.args] if is_method else node.args  # type: ignore[attr-defined]  # a method's
    return operands[place] if place < len(operands) else None


def _is_module(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in MODULES


def assigned_in(frame: Frame, name: str) -> ast.expr | None:
    """The expression that the function assigns to a name; None unless there is exactly one such assignment."""
    found = [
        node.value
        for node in ast.walk(_function(frame.code))
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets)
    ]
    return found[0] if len(found) == 1 else None


@functools.cache
def _function(code: CodeType) -> ast.AST:
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(code)))
    except (OSError, SyntaxError):
        return ast.Module([], [])
