"""Changes of a sum, a mean and the like: over other axes, of other terms, with another count."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from nn_manual.exercises.causes.change import ADDED, ANOTHER, LEFT_OUT, TURNED, Change, called, is_module, renamed, text

#: Functions that may be applied once more to what they were applied to already.
FUNCTIONS = ("exp", "log", "tanh", "expit")
REDUCTIONS = ("sum", "mean", "max", "min", "var", "std", "mean_over", "sum_rows", "vecdot")
AXES = ("0", "1", "-1", "-2", "None", "(0, 1)", "(0, 2)", "(1, 2)")


def of_reduction(node: ast.Call, name: str, operand: ast.expr, is_method: bool) -> Iterator[Change]:
    """None, over other axes, with other dimensions left, or with another count below it."""
    code = ast.unparse(node)
    kept = operand
    if name == "vecdot":
        kept = ast.BinOp(operand, ast.Mult(), node.args[1])
    yield Change(node, kept, f"without the `{name}` of `{code}`", LEFT_OUT)
    if name in ("mean_over", "sum_rows", "vecdot"):
        return
    places = node.args if is_method else node.args[1:]
    before = [] if is_method else node.args[:1]
    axis = places[0] if places else next((each.value for each in node.keywords if each.arg == "axis"), None)
    others = [each for each in node.keywords if each.arg != "axis"]
    own = "None" if axis is None else ast.unparse(axis)
    names = ("leading",) if own == "axes" else ("axes",) if own == "leading" else ()
    for other in (*AXES, *names):
        if other != own:
            value = ast.parse(other, mode="eval").body
            changed = ast.Call(node.func, before, [ast.keyword("axis", value), *others])
            over = "all axes" if other == "None" else f"axis {other}" if other in AXES else f"`{other}`"
            yield Change(node, changed, f"with the `{name}` over {over} in the place of `{code}`", TURNED)
    if any(each.arg == "keepdims" for each in others):
        without = [each for each in node.keywords if each.arg != "keepdims"]
        yield Change(node, ast.Call(node.func, node.args, without), f"without keepdims in `{code}`", TURNED)
    if name in ("var", "std"):
        keywords = [*node.keywords, ast.keyword("ddof", ast.Constant(1))]
        words = f"with the variance divided by n - 1 in `{code}`"
        yield Change(node, ast.Call(node.func, node.args, keywords), words, TURNED)
    if name == "var":
        centred = ast.BinOp(operand, ast.Pow(), ast.Constant(2))
        function = ast.Attribute(centred, "mean", ast.Load())
        square = ast.Call(function, node.args, node.keywords) if is_method else renamed(node, "mean")
        yield Change(node, square, f"with the mean of the squares in the place of `{code}`", TURNED)
        yield Change(node, renamed(node, "std"), f"with `std` in the place of `{name}`", TURNED)
    if name == "sum":
        yield from _of_sum(node, operand, axis)
    if name in ("mean", "sum"):
        total = ast.unparse(renamed(node, "sum"))
        inner = ast.unparse(operand)
        count = f"({inner}).size / ({code}).size"
        less = ast.parse(f"{total} / ({count} - 1)", mode="eval").body
        yield Change(node, less, f"with n - 1 in the place of n below the mean `{code}`", ANOTHER)


def _of_sum(node: ast.Call, operand: ast.expr, axis: ast.expr | None) -> Iterator[Change]:
    """A mean along one axis of several; or along the first axis one term alone."""
    code, of = ast.unparse(node), ast.unparse(operand)
    means = [(of, 0, "first"), (of, -1, "last")] if isinstance(axis, ast.Tuple) else []
    if isinstance(operand, ast.Call) and called(operand) == "rows":
        inner = ast.unparse(operand.args[0])
        means += [(inner, 0, "first"), (inner, 1, "second")]
    for array, place, along in means:
        mean = ast.parse(f"{code} / ({array}).shape[{place}]", mode="eval").body
        words = f"with the mean along the {along} axis of `{array}`, in the place of the sum"
        yield Change(node, mean, words, ANOTHER)
    if axis is not None and ast.unparse(axis) == "0":
        for place, which in ((-1, "last"), (0, "first")):
            one = ast.parse(f"({of})[{place}]", mode="eval").body
            yield Change(node, one, f"with the {which} of `{of}` alone, in the place of the sum of all", ANOTHER)


def weighted(node: ast.Call, expression: ast.expr, names: Mapping[str, Any]) -> Iterator[Change]:
    """Another factor in what is summed."""
    is_method = isinstance(node.func, ast.Attribute) and not is_module(node.func.value)
    if not is_method and not node.args:
        return
    factors: list[ast.expr] = [
        ast.parse(name, mode="eval").body
        for name, value in names.items()
        if isinstance(value, np.ndarray) and value.dtype.kind in "fb"
    ]
    factors += [part for part in ast.walk(expression) if isinstance(part, ast.Call) and called(part) in FUNCTIONS]
    for factor in factors:
        if is_method and isinstance(node.func, ast.Attribute):
            inner = ast.BinOp(node.func.value, ast.Mult(), factor)
            changed = ast.Call(ast.Attribute(inner, node.func.attr, ast.Load()), node.args, node.keywords)
        else:
            inner = ast.BinOp(node.args[0], ast.Mult(), factor)
            changed = ast.Call(node.func, [inner, *node.args[1:]], node.keywords)
        yield Change(node, changed, f"with {text(inner)} in the `{called(node)}` of {text(node)}", ADDED)
