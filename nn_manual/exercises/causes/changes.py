"""Changes of a formula by rule: the mistakes of deriving by hand, made in its syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nn_manual.exercises.causes.change import ANOTHER, LEFT_OUT, TURNED, Change, called, instead, text, without
from nn_manual.exercises.causes.changes_of_calls import NAMES, of_call
from nn_manual.exercises.causes.changes_of_chains import of_matmul, of_power, of_product, of_sum
from nn_manual.exercises.causes.changes_of_names import (
    chosen,
    of_constant,
    of_index,
    of_name,
    of_other_names,
    of_times,
    of_whole,
    scaled,
)
from nn_manual.exercises.causes.changes_of_reductions import FUNCTIONS, REDUCTIONS, weighted

_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
}
#: What options of operations are taken for: mostly what they are by default.
_OPTIONS = {
    "axis": ("0", "-1", "None"),
    "along": ("0", "-1"),
    "offset": ("0", "-offset"),
    "axis1": ("0", "axis2"),
    "axis2": ("1", "-1", "axis1"),
}


def changes_of(
    expression: ast.expr, names: Mapping[str, Any], sizes: Sequence[str], functions: Sequence[str] = ()
) -> Iterator[Change]:
    """The changes of an expression. `names` are the arrays that are known where it stands, each with its value, or None
    where that isn't known; `sizes` are numbers that somebody may divide by, as text: "len(input)"; and `functions` may
    be applied once more to what they were applied to already.
    """
    yield from of_whole(expression, names, sizes)
    loops = (part.target for part in ast.walk(expression) if isinstance(part, ast.comprehension))
    bound = {ast.unparse(target) for target in loops}
    for node, parent in _walk(expression, None):
        match node:
            case ast.BinOp(op=ast.Add() | ast.Sub()) if not _continues(parent, (ast.Add, ast.Sub)):
                yield from of_sum(node, sizes, names)
            case ast.BinOp(op=ast.Mult() | ast.Div()) if not _continues(parent, (ast.Mult, ast.Div)):
                yield from of_product(node)
            case ast.BinOp(left, ast.MatMult(), right):
                yield from of_matmul(node, left, right)
                yield from of_times(node)
            case ast.BinOp(left, ast.FloorDiv() | ast.Mod(), right):
                counts = (ast.parse(size, mode="eval").body for size in sizes)
                yield from (instead(node, count, ANOTHER) for count in counts)
                yield instead(node, left, LEFT_OUT)
                yield instead(node, right, TURNED)
                yield instead(node, ast.BinOp(left, ast.Div(), right), TURNED)
            case ast.BinOp(left, ast.BitAnd() | ast.BitOr(), right):
                yield without(node, left, right)
                yield without(node, right, left)
                other = ast.BitOr() if isinstance(node.op, ast.BitAnd) else ast.BitAnd()
                yield instead(node, ast.BinOp(left, other, right), TURNED)
            case ast.BoolOp(values=values):
                for index, value in enumerate(values):
                    rest = [*values[:index], *values[index + 1 :]]
                    yield without(node, rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest), value)
            case ast.BinOp(left, ast.Pow(), power):
                yield from of_power(node, left, power)
            case ast.UnaryOp(ast.USub(), operand) if not isinstance(operand, ast.Constant):
                yield Change(node, operand, f"without the minus of {text(node)}", TURNED)
            case ast.Compare(left, [comparison], [right]):
                for other_kind in _COMPARISONS.get(type(comparison), ()):
                    yield instead(node, ast.Compare(left, [other_kind()], [right]), TURNED)
            case ast.IfExp(_, body, orelse):
                yield instead(node, body, LEFT_OUT)
                yield instead(node, orelse, LEFT_OUT)
            case ast.Attribute(ast.Name(name), "size"):
                for place in (0, -1):
                    yield instead(node, ast.parse(f"{name}.shape[{place}]", mode="eval").body, TURNED)
            case ast.Attribute(value, "T" | "mT"):
                yield Change(node, value, f"with {text(value)} not transposed", TURNED)
            case ast.Subscript() if ast.unparse(node) in names:
                yield from of_name(node, names, functions)
            case ast.Subscript():
                yield from of_index(node)
            case ast.Attribute(ast.Attribute(ast.Name("self"), "param"), "weight"):
                flipped = ast.parse(f"{ast.unparse(node)}[..., ::-1]", mode="eval").body
                yield Change(node, flipped, f"with {text(node)} turned round along its last axis", TURNED)
            case ast.Attribute(ast.Name("saved" | "self"), _) if ast.unparse(node) in names:
                yield from of_name(node, names, functions)
            case ast.Constant(value) if isinstance(value, int | float) and not isinstance(value, bool):
                yield from of_constant(node, parent)
            case ast.Name("step" | "count"):
                for one in (ast.Sub(), ast.Add()):
                    yield instead(node, ast.BinOp(node, one, ast.Constant(1)), TURNED)
                for setting in (name for name, value in names.items() if isinstance(value, int)):
                    yield instead(node, ast.parse(f"min({node.id}, {setting})", mode="eval").body, ANOTHER)
            case ast.Name(name) if name in _OPTIONS and name not in bound:
                for other_value in _OPTIONS[name]:
                    yield instead(node, ast.parse(other_value, mode="eval").body, TURNED)
            case ast.Name(name) if name in names and not _is_measured(parent):
                yield from of_name(node, names, functions)
            case ast.Name(name) if name in NAMES and not _is_called(node, parent):
                for other_name in NAMES[name]:
                    yield instead(node, ast.Name(other_name, ast.Load()), TURNED)
            case ast.List(elements) | ast.Tuple(elements) if len(elements) == 2:
                yield _swapped(node, elements)
            case ast.Call():
                if called(node) in REDUCTIONS:
                    yield from weighted(node, expression, names)
                if called(node) in FUNCTIONS:
                    yield from scaled(node, names)
                if called(node) == "where" and len(node.args) == 3:
                    yield from chosen(node, names)
                yield from of_call(node)


def changes_of_views(expression: ast.expr, names: Mapping[str, Any]) -> Iterator[Change]:
    """The changes of an expression that computes no number: another name, another place, another order."""
    for node, _ in _walk(expression, None):
        if isinstance(node, ast.expr) and ast.unparse(node) in names:
            yield from of_other_names(node, names)
        elif isinstance(node, ast.Subscript):
            yield from of_index(node)
        elif isinstance(node, ast.List | ast.Tuple) and len(node.elts) == 2:
            yield _swapped(node, node.elts)


def _swapped(node: ast.List | ast.Tuple, elements: list[ast.expr]) -> Change:
    turned = type(node)([elements[1], elements[0]], ast.Load())
    return Change(node, turned, f"with {text(elements[0])} and {text(elements[1])} swapped", TURNED)


def _walk(node: ast.AST, parent: ast.AST | None) -> Iterator[tuple[ast.AST, ast.AST | None]]:
    yield node, parent
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr_context | ast.operator):
            yield from _walk(child, node)


def _continues(parent: ast.AST | None, kinds: tuple[type[ast.operator], ...]) -> bool:
    return isinstance(parent, ast.BinOp) and isinstance(parent.op, kinds)


def _is_measured(parent: ast.AST | None) -> bool:
    """Whether only the shape of an array is read: its numbers aren't confused with another's there."""
    return isinstance(parent, ast.Attribute) and parent.attr == "shape"


def _is_called(node: ast.AST, parent: ast.AST | None) -> bool:
    return isinstance(parent, ast.Call) and parent.func is node
