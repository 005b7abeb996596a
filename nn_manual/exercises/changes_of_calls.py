"""Changes of a call in a formula: another function, none, another axis, other arguments."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from nn_manual.exercises.change import ADDED, ANOTHER, LEFT_OUT, TURNED, Change, instead, text

#: Functions that may be applied once more to what they were applied to already.
FUNCTIONS = ("exp", "log", "tanh", "expit")
#: Functions and methods that people mistake for each other.
NAMES = {
    "sum": ("mean", "max"),
    "mean": ("sum",),
    "max": ("min", "sum"),
    "min": ("max",),
    "argmax": ("argmin",),
    "argmin": ("argmax",),
    "maximum": ("minimum",),
    "minimum": ("maximum",),
    "exp": ("expm1", "log"),
    "expm1": ("exp",),
    "log": ("log1p", "exp"),
    "log1p": ("log",),
    "tanh": ("expit",),
    "expit": ("tanh",),
    "sin": ("cos",),
    "cos": ("sin",),
    "ndtr": ("expit",),
    "sqrt": ("square", "cbrt"),
    "abs": ("sign",),
    "floor": ("ceil",),
}
#: Functions that give an array another shape.
SHAPING = ("unbroadcast", "spread", "expand_dims", "broadcast_to", "pad")
REDUCTIONS = ("sum", "mean", "max", "min", "var", "std", "mean_over", "sum_rows", "vecdot")
AXES = ("0", "1", "-1", "-2", "None", "(0, 1)", "(0, 2)", "(1, 2)")


def of_call(node: ast.Call) -> Iterator[Change]:
    """The changes of one call."""
    function, arguments, keywords = node.func, node.args, node.keywords
    name = called(node)
    is_method = isinstance(function, ast.Attribute) and not _is_module(function.value)
    operands: list[ast.expr] = [function.value] if isinstance(function, ast.Attribute) and is_method else arguments
    operand = operands[0] if operands else None
    code = ast.unparse(node)
    if any(isinstance(argument, ast.Starred) for argument in arguments):
        return
    for other in NAMES.get(name, ()):
        yield Change(node, _renamed(node, other), f"with `{other}` in the place of `{name}`", TURNED)
    if name in REDUCTIONS and operand is not None:
        yield from _of_reduction(node, name, operand, is_method)
    elif operand is not None and not isinstance(operand, ast.Starred):
        if name == "where" and len(arguments) == 3:
            yield from _of_choice(node)
        elif name in ("maximum", "minimum", "clip", "masked") or (len(arguments) == 1 and not is_method):
            words = f"without the `{name}` of `{code}`"
            yield Change(node, operand, words, LEFT_OUT)
            if name in ("maximum", "minimum"):
                yield instead(node, arguments[1], ANOTHER)
        elif (is_method and not _is_component(operand)) or name in SHAPING:
            yield Change(node, operand, f"without the `{name}` of `{code}`", LEFT_OUT)
    if name == "clip" and len(arguments) == 3:
        for bound, kept in (("minimum", arguments[2]), ("maximum", arguments[1])):
            one = ast.Call(ast.Name(bound, ast.Load()), [arguments[0], kept], [])
            yield instead(node, one, TURNED)
    is_function = not keywords and not is_method and name not in (*REDUCTIONS, "len", "rows")
    if len(arguments) == 1 and is_function:
        for form in ("2 * ({})", "({}) / 2", "-({})"):
            argument = ast.parse(form.format(ast.unparse(arguments[0])), mode="eval").body
            yield instead(node, ast.Call(function, [argument], []), ANOTHER)
    if isinstance(function, ast.Name) and len(arguments) > 1 and name not in ("where", "unbroadcast", *NAMES):
        yield from (instead(node, argument, ANOTHER) for argument in arguments)
    if name == "sqrt" and len(arguments) == 1 and isinstance(arguments[0], ast.BinOp):
        inner = arguments[0]
        if isinstance(inner.op, ast.Add):
            beside = ast.BinOp(ast.Call(function, [inner.left], keywords), ast.Add(), inner.right)
            yield Change(node, beside, f"with `{ast.unparse(beside)}` in the place of `{code}`", TURNED)
    if len(arguments) >= 2 and name not in ("where", *REDUCTIONS):
        first, second, *others = arguments
        swapped = ast.Call(function, [second, first, *others], keywords)
        yield Change(node, swapped, f"with `{ast.unparse(swapped)}` in the place of `{code}`", ANOTHER)
        if len(arguments) == 3:
            last_swapped = ast.Call(function, [first, arguments[2], second], keywords)
            yield Change(node, last_swapped, f"with `{ast.unparse(last_swapped)}` in the place of `{code}`", ANOTHER)
    yield from _of_method(node, name)


def _of_method(node: ast.Call, name: str) -> Iterator[Change]:
    """A part's way back left out, numbers in the order of columns, sums of which the last term alone is kept."""
    code = ast.unparse(node)
    for keyword in node.keywords:
        if isinstance(keyword.value, ast.Constant) and isinstance(keyword.value.value, bool):
            turned = ast.keyword(keyword.arg, ast.Constant(not keyword.value.value))
            changed = ast.Call(node.func, node.args, [turned if each is keyword else each for each in node.keywords])
            yield instead(node, changed, TURNED)
    if name == "backward" and len(node.args) == 2:
        yield Change(node, node.args[1], f"without the `{ast.unparse(node.func)}` of `{code}`", LEFT_OUT)
    elif name == "back" and len(node.args) == 2 and code.startswith("self.windows"):
        of = ", ".join(["self.windows", *map(ast.unparse, node.args)])
        for by_windows in (True, False):
            overwritten = ast.parse(f"last_parts({of}, {by_windows})", mode="eval").body
            yield Change(node, overwritten, "with `=` for `+=` where windows overlap", TURNED)
        parts, size = map(ast.unparse, node.args)
        order = "np.arange(np.prod(self.windows.kernel)).reshape(self.windows.kernel[::-1]).T.ravel()"
        across = ast.parse(f"self.windows.back(np.stack([*{parts}])[{order}], {size})", mode="eval").body
        yield Change(node, across, "with rows and columns of the windows exchanged", TURNED)
    elif name == "one_hot_product":
        overwritten = ast.Call(ast.Name("last_rows", ast.Load()), node.args, [])
        yield Change(node, overwritten, "with `=` for `+=` at an index that stands several times", TURNED)
    elif name == "reshape" and not node.keywords:
        by_columns = ast.Call(node.func, node.args, [ast.keyword("order", ast.Constant("F"))])
        yield Change(node, by_columns, f"with the numbers in the order of columns in `{code}`", TURNED)


def called(node: ast.Call) -> str:
    """The function's or method's own name."""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _is_component(node: ast.expr) -> bool:
    """Whether it is a part of the component, and no array."""
    return ast.unparse(node).startswith("self.") and not ast.unparse(node).startswith(("self.param", "self.grad"))


def _is_module(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("np", "math", "scipy", "self")


def _renamed(node: ast.Call, name: str) -> ast.Call:
    if isinstance(node.func, ast.Attribute):
        return ast.Call(ast.Attribute(node.func.value, name, ast.Load()), node.args, node.keywords)
    return ast.Call(ast.Name(name, ast.Load()), node.args, node.keywords)


def _of_choice(node: ast.Call) -> Iterator[Change]:
    condition, first, second = node.args
    code = ast.unparse(node)
    for kept in (first, second):
        everywhere = ast.Call(node.func, [condition, kept, kept], node.keywords)
        yield Change(node, everywhere, f"with `{ast.unparse(kept)}` everywhere, in the place of `{code}`", LEFT_OUT)
    zero = ast.Constant(0)
    for parts, of in (([condition, first, zero], second), ([condition, zero, second], first)):
        if not isinstance(of, ast.Constant):
            changed = ast.Call(node.func, list(parts), node.keywords)
            yield Change(node, changed, f"with 0 in the place of `{ast.unparse(of)}`", LEFT_OUT)
    swapped = ast.Call(node.func, [condition, second, first], node.keywords)
    yield Change(node, swapped, f"with both cases of `{code}` swapped", TURNED)


def _of_reduction(node: ast.Call, name: str, operand: ast.expr, is_method: bool) -> Iterator[Change]:
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
        square = ast.Call(function, node.args, node.keywords) if is_method else _renamed(node, "mean")
        yield Change(node, square, f"with the mean of the squares in the place of `{code}`", TURNED)
        yield Change(node, _renamed(node, "std"), f"with `std` in the place of `{name}`", TURNED)
    if name == "sum":
        yield from _of_sum(node, operand, axis)
    if name in ("mean", "sum"):
        total = ast.unparse(_renamed(node, "sum"))
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
    is_method = isinstance(node.func, ast.Attribute) and not _is_module(node.func.value)
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
