"""Changes of names, places and constants, and of a whole line."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from nn_manual.exercises.causes.change import (
    ADDED,
    ANOTHER,
    LEFT_OUT,
    TURNED,
    Change,
    instead,
    replaced,
    text,
    transposed,
)

#: What may become of a whole line.
SCALED = ("with its sign turned", "times 2", "divided by 2")


def of_whole(expression: ast.expr, names: Mapping[str, Any], sizes: Sequence[str]) -> Iterator[Change]:
    """The whole line scaled, or another array in its place."""
    minus, half = ast.UnaryOp(ast.USub(), expression), ast.BinOp(expression, ast.Div(), ast.Constant(2))
    double = ast.BinOp(expression, ast.Mult(), ast.Constant(2))
    for words, scaled_line in zip(SCALED, (minus, double, half), strict=True):
        yield Change(expression, scaled_line, words, TURNED)
    nothing = ast.BinOp(ast.Constant(0), ast.Mult(), expression)
    yield Change(expression, nothing, "with 0 everywhere", ADDED)
    for size in sizes:
        number = ast.parse(size, mode="eval").body
        yield Change(expression, ast.BinOp(expression, ast.Div(), number), f"divided by {text(number)}", ADDED)
        yield Change(expression, ast.BinOp(expression, ast.Mult(), number), f"times {text(number)}", ADDED)
    for name, value in names.items():
        read = ast.parse(name, mode="eval").body
        if isinstance(value, np.ndarray) and value.dtype.kind in "fb":
            if not isinstance(expression, ast.Name) and np.ndim(value):
                yield Change(expression, read, f"with `{name}` alone in the place of {text(expression)}", ADDED)
            yield Change(expression, ast.BinOp(expression, ast.Mult(), read), f"times `{name}`", ADDED)
            yield Change(expression, ast.BinOp(expression, ast.Div(), read), f"divided by `{name}`", ADDED)
            if name.startswith("grad_"):
                yield Change(expression, ast.BinOp(expression, ast.Add(), read), f"plus `{name}`", ADDED)
        if _are_probabilities(value):
            slope = ast.parse(f"{name} * (1 - {name})", mode="eval").body
            yield Change(expression, ast.BinOp(expression, ast.Mult(), slope), f"times {text(slope)}", ADDED)


def _are_probabilities(value: Any) -> bool:
    is_array = isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.size > 0
    return is_array and bool(0 < value.min() < value.max() < 1)


def of_name(
    node: ast.Name | ast.Attribute | ast.Subscript, names: Mapping[str, Any], functions: Sequence[str]
) -> Iterator[Change]:
    """Another name, the name transposed, 1 less it, a function of it."""
    code = ast.unparse(node)
    own = names[code]
    yield from of_other_names(node, names)
    if not np.ndim(own) and not isinstance(own, int):
        yield instead(node, ast.BinOp(ast.Constant(1), ast.Sub(), node), ANOTHER)
    if isinstance(own, int) and code.startswith("self."):
        for one in (ast.Sub(), ast.Add()):
            yield instead(node, ast.BinOp(node, one, ast.Constant(1)), ANOTHER)
    if np.ndim(own) >= 2:
        yield Change(node, transposed(node), f"with {text(node)} transposed", TURNED)
    if code.startswith("grad"):
        ones = ast.Call(ast.Name("ones_like", ast.Load()), [node], [])
        yield Change(node, ones, f"with 1 in the place of {text(node)}", LEFT_OUT)
    for function in functions:
        again = ast.Call(ast.Name(function, ast.Load()), [node], [])
        yield instead(node, again, ANOTHER)


def of_other_names(node: ast.expr, names: Mapping[str, Any]) -> Iterator[Change]:
    """Another name in the place of one."""
    code = ast.unparse(node)
    for name, value in names.items():
        if name != code and _fits(value, names[code]):
            yield instead(node, ast.parse(name, mode="eval").body, ANOTHER)


def _fits(value: Any, own: Any) -> bool:
    if isinstance(own, int | float) and isinstance(value, int | float):
        return type(own) is type(value)
    if isinstance(own, int | float) or isinstance(value, int | float):
        return np.ndim(own) == np.ndim(value) == 0
    try:
        np.broadcast_shapes(np.shape(value), np.shape(own))
    except ValueError:
        return False
    return True


def of_index(node: ast.Subscript) -> Iterator[Change]:
    """Another place along the first axis, or all of it."""
    yield Change(node, node.value, f"with {text(node.value)} in the place of {text(node)}", ANOTHER)
    match node.slice:
        case ast.Name() | ast.Constant(int()) | ast.BinOp():
            for step in (-1, 1):
                yield instead(node, _at(node, ast.BinOp(node.slice, ast.Add(), ast.Constant(step))), ANOTHER)
        case ast.Tuple(elements):
            for place, element in enumerate(elements):
                if isinstance(element, ast.Constant) and isinstance(element.value, int):
                    for other in (element.value - 1, element.value + 1):
                        moved = ast.Tuple([*elements[:place], ast.Constant(other), *elements[place + 1 :]], ast.Load())
                        if other >= 0:
                            yield instead(node, _at(node, moved), ANOTHER)
        case ast.Slice(lower, upper, step) if lower is not None or upper is not None:
            if lower is not None and upper is None:
                yield instead(node, _at(node, ast.Slice(None, ast.UnaryOp(ast.USub(), lower), step)), ANOTHER)
            elif lower is None and isinstance(upper, ast.UnaryOp):
                yield instead(node, _at(node, ast.Slice(upper.operand, None, step)), ANOTHER)


def of_times(node: ast.BinOp) -> Iterator[Change]:
    """A product of later times with the times before them: of each time with itself, or with the last time before the
    first one.
    """
    match node:
        case ast.BinOp(ast.Attribute(ast.Call(ast.Name("rows"), [left]), "T"), _, ast.Call(ast.Name("rows"), [right])):
            one = f"rows(({ast.unparse(left)})[:1]).T @ rows(({ast.unparse(right)})[:1])"
            words = f"with the first of {text(left)} and of {text(right)} alone, as with `=` for `+=`, in {text(node)}"
            yield Change(node, ast.parse(one, mode="eval").body, words, TURNED)
    parts = {ast.unparse(part.slice): part for part in ast.walk(node) if isinstance(part, ast.Subscript)}
    if not {"1:", ":-1"} <= parts.keys():
        return
    later, before = parts["1:"], parts[":-1"]
    of_all = replaced(node, later, later.value)
    words = f"with {text(before.value)} of the same time in the place of that of the time before"
    yield Change(node, replaced(of_all, before, before.value), words, TURNED)
    rolled = ast.parse(f"np.roll({ast.unparse(before.value)}, 1, axis=0)", mode="eval").body
    words = f"with {text(before.value)} of the last time, which has the index -1, before the first one"
    yield Change(node, replaced(of_all, before, rolled), words, TURNED)


def scaled(node: ast.Call, names: Mapping[str, Any]) -> Iterator[Change]:
    """A function times a number that is known by a name."""
    for name, value in names.items():
        if isinstance(value, float | np.floating):
            yield instead(node, ast.BinOp(ast.parse(name, mode="eval").body, ast.Mult(), node), ANOTHER)


def chosen(node: ast.Call, names: Mapping[str, Any]) -> Iterator[Change]:
    """An array in the place of a number that holds in one of two cases."""
    for place in (1, 2):
        for name, value in names.items() if isinstance(node.args[place], ast.Constant) else ():
            if isinstance(value, np.ndarray):
                read = ast.parse(name, mode="eval").body
                arguments = [*node.args[:place], read, *node.args[place + 1 :]]
                yield instead(node, ast.Call(node.func, arguments, node.keywords), ADDED)


def _at(node: ast.Subscript, index: ast.expr) -> ast.Subscript:
    return ast.Subscript(node.value, index, ast.Load())


def of_constant(node: ast.Constant, parent: ast.AST | None) -> Iterator[Change]:
    """Another number."""
    if not isinstance(parent, ast.BinOp | ast.UnaryOp | ast.Compare | ast.Call) or isinstance(parent, ast.Subscript):
        return
    value: Any = node.value
    for other in (value + 1, value - 1, -value, 2 * value, value / 2):
        if other != value and not (other == 0 and isinstance(parent, ast.BinOp)):
            yield instead(node, ast.Constant(other), ANOTHER)
