"""What a method consists of: its statements, the expressions in them, and the values of these when the method ran."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from typing import Any

#: Methods and functions that only refuse bad input: without them, right input gives the same results.
GUARDS = ("check_gradient", "check_mask", "check_indices", "_check", "output_shape")

#: What belongs to an array's shape or kind, and not to its values.
OF_SHAPE = ("shape", "size", "ndim", "dtype")


def statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """Every statement of the formulas, in order: no docstring, and nothing that only refuses bad input."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            yield from statements(node)
        elif isinstance(node, ast.If | ast.For):
            if not all(isinstance(inner, ast.Raise) for inner in node.body):
                yield node
                yield from statements(node)
        elif isinstance(node, ast.stmt) and not _is_guard(node):
            yield node


def are_zeros(node: ast.expr) -> bool:
    """Whether an expression is zeros, as which they are made."""
    match node:
        case ast.Constant(value):
            return value == 0
        case ast.Call(ast.Attribute(attr="zeros_like" | "zeros")):
            return True
    return False


def follow_from_shape(node: ast.expr) -> bool:
    """Whether an expression's values follow from its shape: an array that was there before, of this shape, is equal."""
    match node:
        case ast.Call(ast.Attribute(attr="ones_like")) | ast.Call(ast.Attribute(attr="arange"), [_]):
            return True
        case ast.Subscript(value, ast.Tuple(elements)):
            whole = all(ast.unparse(element) in (":", "np.newaxis") for element in elements)
            return whole and follow_from_shape(value)
    return are_zeros(node)


def _is_guard(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(ast.Constant()):
            return True
        case ast.Expr(ast.Call(ast.Attribute(attr=name) | ast.Name(id=name))):
            return name in GUARDS
    return False


def head(statement: ast.stmt) -> ast.AST:
    """The part of a statement that is evaluated, without the statements inside it."""
    match statement:
        case ast.If(test=part) | ast.For(iter=part):
            return part
    return statement


def expressions(tree: ast.AST) -> list[ast.expr]:
    """The expressions that are evaluated for their values, in a fixed order."""
    remaining = [part for statement in statements(tree) for part in _read(statement)]
    found: list[ast.expr] = []
    while remaining:
        node = remaining.pop(0)
        match node:
            case ast.Constant(str() | None) | ast.Name("np" | "self") | ast.Slice():
                continue
            case ast.Tuple(elements) if any(isinstance(element, ast.Slice) for element in elements):  # [:, np.newaxis]
                continue
            case ast.Starred(value):  # no value itself
                remaining.insert(0, value)
                continue
            case ast.Call(ast.Attribute(attr="empty_like" | "empty")):  # values that will be overwritten
                continue
            case ast.Call(ast.Name("len")) | ast.Compare(ops=[ast.Is() | ast.IsNot()]):  # whatever the values are
                parts: list[ast.expr] = []
            case ast.Attribute(attr=name) if name in OF_SHAPE:
                parts = []
            case ast.Call(ast.Attribute(attr="zeros_like" | "ones_like")):  # as an array, whatever its values are
                parts = []
            case ast.Call(ast.Attribute(attr="full_like"), [_, *others]):  # the same
                parts = others
            case ast.Call(ast.Attribute(attr="put"), arguments):  # its array is written to, as in an assignment
                parts = [*arguments]
            case ast.Call(function, arguments):
                parts = [*(_read(function) if isinstance(function, ast.Attribute) else []), *arguments]
            case _:
                parts = _read(node)
        found.append(node)
        remaining = parts + remaining
    return found


def _read(node: ast.AST) -> list[ast.expr]:
    """The expressions directly in a node whose values it takes."""
    children = (child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr))
    return [child for child in children if not isinstance(getattr(child, "ctx", None), ast.Store)]


def observe(tree: ast.Module, install: Callable[[ast.Module, dict[str, Any]], object]) -> dict[ast.expr, Any]:
    """The value of each of the `expressions` of a method in its last run. `install(tree, names)` makes a method from
    the changed tree, which can use `names`, and runs it.
    """
    copied = copy.deepcopy(tree)
    nodes = expressions(tree)
    values: dict[ast.expr, Any] = {}

    def observed(index: int, value: Any) -> Any:
        values[nodes[index]] = value
        return value

    install(_Watched(expressions(copied)).visit(copied), {"observed": observed})
    return values


class _Watched(ast.NodeTransformer):
    """Passes each of `nodes` through `observed(its index, its value)`."""

    def __init__(self, nodes: list[ast.expr]) -> None:
        self._indices = {id(node): index for index, node in enumerate(nodes)}

    def visit(self, node: ast.AST) -> Any:
        """The node, with its children watched."""
        self.generic_visit(node)
        if not isinstance(node, ast.expr) or id(node) not in self._indices:
            return node
        return ast.Call(ast.Name("observed", ast.Load()), [ast.Constant(self._indices[id(node)]), node], [])
