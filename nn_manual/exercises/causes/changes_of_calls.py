"""Changes of a call in a formula: another function, none, another axis, other arguments."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nn_manual.exercises.causes.change import (
    ANOTHER,
    LEFT_OUT,
    ONLY_ONCE,
    TURNED,
    Change,
    called,
    instead,
    is_module,
    renamed,
    text,
)
from nn_manual.exercises.causes.changes_of_reductions import REDUCTIONS, of_reduction

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


def of_call(node: ast.Call) -> Iterator[Change]:
    """The changes of one call."""
    function, arguments, keywords = node.func, node.args, node.keywords
    name = called(node)
    is_method = isinstance(function, ast.Attribute) and not is_module(function.value)
    operands: list[ast.expr] = [function.value] if isinstance(function, ast.Attribute) and is_method else arguments
    operand = operands[0] if operands else None
    code = ast.unparse(node)
    if any(isinstance(argument, ast.Starred) for argument in arguments):
        yield from _of_shape(node)
        return
    yield from _of_copies(node, name)
    if name == "sign":
        for comparison in (ast.Gt(), ast.Lt(), ast.GtE()):
            yield instead(node, ast.Compare(arguments[0], [comparison], [ast.Constant(0)]), TURNED)
    match arguments:
        case [ast.Subscript(sizes, ast.Slice(None, ast.expr() as place, None))] if name == "sum":
            for size in (place, ast.Constant(0)):
                yield instead(node, ast.BinOp(place, ast.Mult(), ast.Subscript(sizes, size, ast.Load())), TURNED)
    if name == "slice" and len(arguments) == 2:
        for step in ("+ 1", "- 1"):
            moved = f"slice({', '.join(f'{ast.unparse(bound)} {step}' for bound in arguments)})"
            yield instead(node, ast.parse(moved, mode="eval").body, TURNED)
    if name == "transpose" and len(arguments) == 2:
        words = f"without the order {text(arguments[1])}, so that all axes are reversed"
        yield Change(node, ast.Call(function, arguments[:1], []), words, LEFT_OUT)
    for other in NAMES.get(name, ()):
        yield Change(node, renamed(node, other), f"with `{other}` in the place of `{name}`", TURNED)
    if name in REDUCTIONS and operand is not None:
        yield from of_reduction(node, name, operand, is_method)
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


def _of_shape(node: ast.Call) -> Iterator[Change]:
    """eye(len(x)) in the place of eye(*x.shape)."""
    match node.args:
        case [ast.Starred(ast.Attribute(array, "shape"))]:
            yield instead(node, ast.Call(node.func, [ast.Call(ast.Name("len", ast.Load()), [array], [])], []), TURNED)


#: Other forms of a sum over copies, and of a gradient that is spread: the function, how likely it is, and its words.
_OTHER_FORMS = {
    "unbroadcast": (
        ("mean_of_copies({0}, {1})", TURNED, "with the mean in the place of the sum in"),
        ("first_of_copies({0}, {1})", TURNED, "with the first copy alone in the place of the sum in"),
        ("({0}).reshape({1})", TURNED, "with a reshape, which adds nothing up, in the place of the sum in"),
    ),
    "bincount": (("assigned({0}, {1}, {2})", TURNED, ONLY_ONCE.removesuffix(" {0}")),),
    "spread": (
        ("broadcast_to({0}, {1})", TURNED, "without the summed axes, which must come back as keepdims leaves them, in"),
        ("put_back_last({0}, {1})", TURNED, "with the summed axes put back behind the others in"),
        ("put_back_last({0}, {1}, True)", TURNED, "with the summed axes put back behind the others in"),
        ("put_back_always({0}, {1}, {2})", TURNED, "with axes put back also where keepdims has left them in"),
        ("broadcast_to(sum({0}), {1})", ANOTHER, "with the sum of all of `{0}` everywhere in"),
    ),
}


def _of_copies(node: ast.Call, name: str) -> Iterator[Change]:
    arguments = [ast.unparse(each) for each in node.args]
    for form, rank, words in _OTHER_FORMS.get(name, ()) if len(arguments) > 1 else ():
        changed = ast.parse(form.format(*arguments), mode="eval").body
        yield Change(node, changed, f"{words.format(*arguments)} {text(node)}", rank)


def _is_component(node: ast.expr) -> bool:
    """Whether it is a part of the component, and no array."""
    return ast.unparse(node).startswith("self.") and not ast.unparse(node).startswith(("self.param", "self.grad"))


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
