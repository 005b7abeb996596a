"""Mutation operators: the mistakes that people make in derivations, made in the syntax tree of a method.

Every operator is applied at every place of a method where it fits, one place at a time. A run of the method shows which
places these are: a sign goes before numbers, a transpose behind matrices.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks.mutation.observing import are_zeros, follow_from_shape, head

#: Added to a value, as an eps would be: lost in float32 next to values of 1, but not in float64.
EPS = 1e-8

COMPARISONS: dict[type[ast.cmpop], list[type[ast.cmpop]]] = {
    ast.Gt: [ast.GtE, ast.Lt],
    ast.GtE: [ast.Gt, ast.Lt],
    ast.Lt: [ast.LtE, ast.Gt],
    ast.LtE: [ast.Lt, ast.Gt],
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.Is: [ast.IsNot],
    ast.IsNot: [ast.Is],
}
OPERATIONS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
}
#: Operations whose operands can be swapped without a change.
COMMUTATIVE = (ast.Add, ast.Mult)
#: Functions and methods that people mistake for each other.
NAMES = {"sum": "mean", "mean": "sum", "argmax": "argmin", "expm1": "exp", "exp": "expm1", "maximum": "minimum"}


class Mistake(NamedTuple):
    """`wrong` in the place of `node`."""

    node: ast.AST
    wrong: ast.AST
    operator: str


def mistakes(statement: ast.stmt, values: dict[ast.expr, Any]) -> Iterator[Mistake]:
    """All mistakes in one statement. `values` has the values of its expressions, and of all names that can be read
    there, from a run of the method.
    """
    yield from _dropped(statement)
    nodes = list(ast.walk(head(statement)))
    in_formula = _in_formula(nodes)
    for node in nodes:
        if isinstance(node, ast.expr) and node in values and not _is_discarded(node, statement):
            if _is_float(values[node]) or (node in in_formula and _is_int(values[node])):
                yield from _of_number(node)
            yield from _of_array(node, values[node])
        yield from _of_structure(node, values)
        if isinstance(node, ast.Name) and isinstance(values.get(node), np.ndarray):
            for name in _other_arrays(node, values):
                yield Mistake(node, ast.Name(name, ast.Load()), "another value")


def _dropped(statement: ast.stmt) -> Iterator[Mistake]:
    """A line left out, a condition that always or never holds."""
    if isinstance(statement, ast.If):
        for always in (True, False):
            yield Mistake(statement.test, ast.Constant(always), "condition")
    elif isinstance(statement, ast.Expr | ast.AugAssign):
        yield Mistake(statement, ast.Pass(), "dropped line")


def _of_number(node: ast.expr) -> Iterator[Mistake]:
    """Mistakes that any real number, or array of them, can have."""
    if not are_zeros(node):  # -0, 2 * 0: the same
        yield Mistake(node, ast.UnaryOp(ast.USub(), node), "sign")
        for factor in (1.001, 2):
            yield Mistake(node, ast.BinOp(node, ast.Mult(), ast.Constant(factor)), f"factor {factor}")
    yield Mistake(node, ast.BinOp(node, ast.Add(), ast.Constant(EPS)), "eps")


def _of_array(node: ast.expr, value: Any) -> Iterator[Mistake]:
    """Mistakes that any array can have."""
    if not isinstance(value, np.ndarray):
        return
    if value.ndim > 1 and not (isinstance(node, ast.Attribute) and node.attr == "T"):
        yield Mistake(node, ast.Attribute(node, "T", ast.Load()), "transpose")
    if not follow_from_shape(node):
        stale = ast.Call(ast.Name("previous", ast.Load()), [ast.Name("self", ast.Load()), node], [])
        yield Mistake(node, stale, "stale")


def _of_structure(node: ast.AST, values: dict[ast.expr, Any]) -> Iterator[Mistake]:
    """Mistakes in how values are put together."""
    match node:
        case ast.BinOp(left, operation, right):
            yield Mistake(node, left, "dropped term")
            yield Mistake(node, right, "dropped term")
            if not isinstance(operation, COMMUTATIVE):
                yield Mistake(node, ast.BinOp(right, operation, left), "swapped operands")
            if type(operation) in OPERATIONS:
                yield Mistake(node, ast.BinOp(left, OPERATIONS[type(operation)](), right), "operation")
        case ast.UnaryOp(ast.USub(), operand):
            yield Mistake(node, operand, "sign")
        case ast.AugAssign(target, operation, value) if type(operation) in OPERATIONS:
            yield Mistake(node, ast.AugAssign(target, OPERATIONS[type(operation)](), value), "operation")
        case ast.Compare(left, [operation], [right]):
            for other in COMPARISONS.get(type(operation), []):
                yield Mistake(node, ast.Compare(left, [other()], [right]), "comparison")
        case ast.IfExp(_, body, orelse):
            yield Mistake(node, body, "condition")
            yield Mistake(node, orelse, "condition")
        case ast.Attribute(value, "T"):
            yield Mistake(node, value, "transpose")
        case ast.Attribute(value, name, context) if name in NAMES:
            yield Mistake(node, ast.Attribute(value, NAMES[name], context), f"{NAMES[name]} for {name}")
        case ast.keyword("axis", ast.Constant(int(axis))):
            for other_axis in (1 - axis, None):
                yield Mistake(node, ast.keyword("axis", ast.Constant(other_axis)), "axis")
        case ast.keyword("keepdims", _):
            yield Mistake(node, ast.keyword("keepdims", ast.Constant(False)), "axis")
        case ast.Call(function, arguments, keywords) if node in values and all(a in values for a in arguments):
            if len(arguments) >= 2:
                first, second, *others = arguments
                yield Mistake(node, ast.Call(function, [second, first, *others], keywords), "swapped operands")
            if len(arguments) == 1 and not keywords:
                yield Mistake(node, arguments[0], "dropped function")


def _is_discarded(node: ast.expr, statement: ast.stmt) -> bool:
    """Whether a line runs it, but nothing uses its value: a call that writes its result itself."""
    return isinstance(statement, ast.Expr) and statement.value is node


def _in_formula(nodes: list[ast.AST]) -> set[ast.AST]:
    """The nodes whose numbers are calculated with or compared: an integer elsewhere is an index, a length, or a case.
    """
    found: set[ast.AST] = set()
    for node in nodes:
        match node:
            case ast.BinOp(left, _, right) | ast.IfExp(_, left, right):
                found |= {left, right}
            case ast.Compare(left, [ast.Gt() | ast.GtE() | ast.Lt() | ast.LtE()], [right]):
                found |= {left, right}
    return found


def _is_float(value: Any) -> bool:
    return isinstance(value, float | np.floating) or (isinstance(value, np.ndarray) and value.dtype.kind == "f")


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _other_arrays(node: ast.Name, values: dict[ast.expr, Any]) -> list[str]:
    """The names of other arrays that are known where `node` is read."""
    known = {
        other.id: value
        for other, value in values.items()
        if isinstance(other, ast.Name) and isinstance(value, np.ndarray) and other.lineno <= node.lineno
    }
    return [name for name, value in known.items() if value is not values[node]]
