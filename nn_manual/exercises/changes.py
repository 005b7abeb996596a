"""Changes of a formula by rule: the mistakes of deriving by hand, made in its syntax tree."""

from __future__ import annotations

import ast
import copy
import itertools
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from nn_manual.exercises.changes_of_calls import NAMES, REDUCTIONS, called, of_call

#: How simple the words of a change are, and how likely the mistake: of several that give the same, the first is told.
LEFT_OUT, TURNED, ANOTHER, ADDED = 1, 2, 3, 4

#: Functions that may be applied once more to what they were applied to already.
FUNCTIONS = ("exp", "log", "tanh", "expit")

_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
}


class Change(NamedTuple):
    """`wrong` in the place of `node`. `words` say it behind "the right grad_input": "without `* weight`"."""

    node: ast.AST
    wrong: ast.AST
    words: str
    rank: int


def replaced(tree: ast.AST, node: ast.AST, wrong: ast.AST) -> Any:
    """The tree with `wrong` in the place of `node`. Only the nodes above it are new, all others are the tree's."""
    if tree is node:
        return wrong
    copied = None
    for name, value in ast.iter_fields(tree):
        new: Any = value
        if isinstance(value, ast.AST):
            new = replaced(value, node, wrong)
        elif isinstance(value, list):
            parts = [replaced(part, node, wrong) if isinstance(part, ast.AST) else part for part in value]
            new = value if all(map(operator.is_, parts, value)) else parts
        if new is not value:
            copied = copied or copy.copy(tree)
            setattr(copied, name, new)
    return copied or tree


def changes_of(
    expression: ast.expr, names: Mapping[str, Any], sizes: Sequence[str], functions: Sequence[str] = ()
) -> Iterator[Change]:
    """The changes of an expression. `names` are the arrays that are known where it stands, each with its value, or None
    where that isn't known; `sizes` are numbers that somebody may divide by, as text: "len(input)"; and `functions` may
    be applied once more to what they were applied to already.
    """
    yield from _of_whole(expression, names, sizes)
    for node, parent in _walk(expression, None):
        match node:
            case ast.BinOp(op=ast.Add() | ast.Sub()) if not _continues(parent, (ast.Add, ast.Sub)):
                yield from _of_sum(node, sizes, names)
            case ast.BinOp(op=ast.Mult() | ast.Div()) if not _continues(parent, (ast.Mult, ast.Div)):
                yield from _of_product(node)
            case ast.BinOp(left, ast.MatMult(), right):
                yield from _of_matmul(node, left, right)
            case ast.BinOp(left, ast.FloorDiv() | ast.Mod(), right):
                yield _instead(node, left, LEFT_OUT)
                yield _instead(node, right, TURNED)
                yield _instead(node, ast.BinOp(left, ast.Div(), right), TURNED)
            case ast.BinOp(left, ast.BitAnd() | ast.BitOr(), right):
                yield _without(node, left, right)
                yield _without(node, right, left)
                other = ast.BitOr() if isinstance(node.op, ast.BitAnd) else ast.BitAnd()
                yield _instead(node, ast.BinOp(left, other, right), TURNED)
            case ast.BinOp(left, ast.Pow(), power):
                yield from _of_power(node, left, power)
            case ast.UnaryOp(ast.USub(), operand) if not isinstance(operand, ast.Constant):
                yield Change(node, operand, f"without the minus of {text(node)}", TURNED)
            case ast.Compare(left, [comparison], [right]):
                for other_kind in _COMPARISONS.get(type(comparison), ()):
                    yield _instead(node, ast.Compare(left, [other_kind()], [right]), TURNED)
            case ast.IfExp(_, body, orelse):
                yield _instead(node, body, LEFT_OUT)
                yield _instead(node, orelse, LEFT_OUT)
            case ast.Attribute(value, "T" | "mT"):
                yield Change(node, value, f"with {text(value)} not transposed", TURNED)
            case ast.Subscript() if ast.unparse(node) in names:
                yield from _of_name(node, names, functions)
            case ast.Subscript():
                yield from _of_index(node)
            case ast.Attribute(ast.Name("saved" | "self"), _) if ast.unparse(node) in names:
                yield from _of_name(node, names, functions)
            case ast.Constant(value) if isinstance(value, int | float) and not isinstance(value, bool):
                yield from _of_constant(node, parent)
            case ast.Name("step" | "count"):
                for one in (ast.Sub(), ast.Add()):
                    yield _instead(node, ast.BinOp(node, one, ast.Constant(1)), TURNED)
            case ast.Name(name) if name in names:
                yield from _of_name(node, names, functions)
            case ast.Name(name) if name in NAMES and not _is_called(node, parent):
                for other_name in NAMES[name]:
                    yield _instead(node, ast.Name(other_name, ast.Load()), TURNED)
            case ast.List(elements) | ast.Tuple(elements) if len(elements) == 2:
                turned = type(node)([elements[1], elements[0]], ast.Load())
                yield Change(node, turned, f"with {text(elements[0])} and {text(elements[1])} swapped", TURNED)
            case ast.Call():
                if called(node) in REDUCTIONS:
                    yield from _weighted(node, expression, names)
                yield from (Change(*each) for each in of_call(node))


def text(node: ast.AST) -> str:
    """The code of a node, as a sentence quotes it. A long one is cut."""
    code = ast.unparse(node)
    return f"`{code}`" if len(code) <= 110 else f"`{code[:100]} ...`"


def part(mark: str, node: ast.AST) -> str:
    """A part of a chain with its sign, as a sentence quotes it: `/ (1 - x)`."""
    operator_ = {"+": ast.Add(), "-": ast.Sub(), "*": ast.Mult(), "/": ast.Div()}[mark]
    return f"`{ast.unparse(ast.BinOp(ast.Name('x'), operator_, node))[2:]}`"  # type: ignore[arg-type]


def _walk(node: ast.AST, parent: ast.AST | None) -> Iterator[tuple[ast.AST, ast.AST | None]]:
    yield node, parent
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr_context | ast.operator):
            yield from _walk(child, node)


def _weighted(node: ast.Call, expression: ast.expr, names: Mapping[str, Any]) -> Iterator[Change]:
    """Another factor in what is summed."""
    is_method = isinstance(node.func, ast.Attribute) and not isinstance(node.func.value, ast.Name | ast.Attribute)
    is_method = is_method or (isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) not in ("np", "math"))
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


def _is_called(node: ast.AST, parent: ast.AST | None) -> bool:
    return isinstance(parent, ast.Call) and parent.func is node


def _continues(parent: ast.AST | None, kinds: tuple[type[ast.operator], ...]) -> bool:
    return isinstance(parent, ast.BinOp) and isinstance(parent.op, kinds)


def _instead(node: ast.AST, wrong: ast.AST, rank: int) -> Change:
    return Change(node, wrong, f"with {text(wrong)} in the place of {text(node)}", rank)


def _without(node: ast.AST, kept: ast.AST, dropped: ast.AST) -> Change:
    return Change(node, kept, f"without {text(dropped)}", LEFT_OUT)


def _flat(node: ast.expr, first: type[ast.operator], inverse: type[ast.operator], flipped: bool = False) -> list[Any]:
    """A chain as its parts: (is it subtracted or divided by?, the part)."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, first | inverse):
        turned = flipped != isinstance(node.op, inverse)
        return [*_flat(node.left, first, inverse, flipped), *_flat(node.right, first, inverse, turned)]
    return [(flipped, node)]


def total(terms: Iterable[tuple[bool, ast.expr]]) -> ast.expr:
    """The sum of terms, those that are marked subtracted."""
    result: ast.expr | None = None
    for is_minus, term in terms:
        if result is None:
            result = ast.UnaryOp(ast.USub(), term) if is_minus else term
        else:
            result = ast.BinOp(result, ast.Sub() if is_minus else ast.Add(), term)
    return result or ast.Constant(0)


def product(factors: Iterable[tuple[bool, ast.expr]]) -> ast.expr:
    """The product of factors, those that are marked divided by."""
    result: ast.expr | None = None
    for is_below, factor in factors:
        if result is None:
            result = ast.BinOp(ast.Constant(1), ast.Div(), factor) if is_below else factor
        else:
            result = ast.BinOp(result, ast.Div() if is_below else ast.Mult(), factor)
    return result or ast.Constant(1)


def _of_sum(node: ast.BinOp, sizes: Sequence[str], names: Mapping[str, Any]) -> Iterator[Change]:
    terms = _flat(node, ast.Add, ast.Sub)
    for index, (is_minus, term) in enumerate(terms):
        others = [*terms[:index], *terms[index + 1 :]]
        sign, other_sign = ("-", "+") if is_minus else ("+", "-")
        yield Change(node, total(others), f"without {part(sign, term) if index else text(term)}", LEFT_OUT)
        if len(others) == 1 and not index and others[0][0]:
            yield _instead(node, others[0][1], LEFT_OUT)
        flipped = [*terms[:index], (not is_minus, term), *terms[index + 1 :]]
        words = f"with {part(other_sign, term)} in the place of {part(sign, term)}"
        yield Change(node, total(flipped), words, TURNED)
        if len(others) > 1:
            yield Change(node, total([(is_minus, term)]), f"with {text(term)} alone of {text(node)}", TURNED)
        match term:
            case ast.Call(function, [inner_term], _) if ast.unparse(function).endswith("sqrt") and not is_minus:
                root = ast.Call(function, [total([(False, inner_term), *others])], [])
                yield _instead(node, root, TURNED)
        for name, value in names.items():
            if isinstance(value, np.ndarray | float) and not isinstance(term, ast.Constant):
                read = ast.parse(name, mode="eval").body
                changed = [*terms[:index], (is_minus, ast.BinOp(term, ast.Mult(), read)), *terms[index + 1 :]]
                yield Change(node, total(changed), f"with {part('*', read)} behind {text(term)}", ADDED)
        yield from _weights_swapped(node, terms, index)
        base = _root(term)
        if base is not None:
            inner = [*terms[:index], (is_minus, base), *terms[index + 1 :]]
            yield _instead(node, ast.BinOp(total(inner), ast.Pow(), ast.Constant(2)), ANOTHER)
        for _, factor in _flat(term, ast.Mult, ast.Div):
            if len(terms) > 1 and factor is not term and not isinstance(factor, ast.Constant):
                spread = ast.BinOp(factor, ast.Mult(), total([*terms[:index], *terms[index + 1 :]]))
                sign_first = ast.BinOp(spread, ast.Sub() if is_minus else ast.Add(), term)
                yield Change(node, sign_first, f"with {text(factor)} in all terms of {text(node)}", ANOTHER)
        if base is not None and is_minus and len(terms) == 2 and _is_one(terms[0][1]):
            of_sigmoid = ast.BinOp(base, ast.Mult(), ast.BinOp(ast.Constant(1), ast.Sub(), base))
            yield _instead(node, of_sigmoid, ANOTHER)
        for size in sizes if len(terms) > 2 else ():
            count = ast.parse(size, mode="eval").body
            for factor, mark in ((ast.Div(), "/"), (ast.Mult(), "*")):
                changed = [*terms[:index], (is_minus, ast.BinOp(term, factor, count)), *terms[index + 1 :]]
                yield Change(node, total(changed), f"with {part(mark, count)} behind {text(term)}", ADDED)
        for number, words in ((2.0, "twice"), (0.5, "half of")):
            scaled = ast.BinOp(ast.Constant(number), ast.Mult(), term)
            changed = [*terms[:index], (is_minus, scaled), *terms[index + 1 :]]
            yield Change(node, total(changed), f"with {words} {text(term)}", ADDED)


def _weights_swapped(node: ast.BinOp, terms: list[Any], index: int) -> Iterator[Change]:
    """(1 - f) * a + f * b in the place of f * a + (1 - f) * b."""
    for _, factor in _flat(terms[index][1], ast.Mult, ast.Div) if len(terms) == 2 else ():
        rest = ast.BinOp(ast.Constant(1), ast.Sub(), factor)
        other = terms[1 - index][1]
        twin = next((part for part in ast.walk(other) if ast.unparse(part) == ast.unparse(rest)), None)
        if twin is not None:
            swapped = {index: replaced(terms[index][1], factor, rest), 1 - index: replaced(other, twin, factor)}
            changed = total([(minus, swapped[place]) for place, (minus, _) in enumerate(terms)])
            yield Change(node, changed, f"with {text(factor)} and {text(rest)} swapped", TURNED)


def _root(node: ast.expr) -> ast.expr | None:
    """What a term is the square of; None where it is no square."""
    match node:
        case ast.BinOp(base, ast.Pow(), ast.Constant(2)):
            return base
        case ast.BinOp(left, ast.Mult(), right) if ast.dump(left) == ast.dump(right):
            return left
    return None


def _of_product(node: ast.BinOp) -> Iterator[Change]:
    factors = _flat(node, ast.Mult, ast.Div)
    for index, (is_below, factor) in enumerate(factors):
        others = [*factors[:index], *factors[index + 1 :]]
        mark, other_mark = ("/", "*") if is_below else ("*", "/")
        if not _is_one(factor):
            words = part(mark, factor) if index else f"the factor {text(factor)}"
            yield Change(node, product(others), f"without {words}", LEFT_OUT)
        flipped = [*factors[:index], (not is_below, factor), *factors[index + 1 :]]
        if not _is_one(factor):
            words = f"with {part(other_mark, factor)} in the place of {part(mark, factor)}"
            yield Change(node, product(flipped), words, ANOTHER)
            yield Change(node, product([*factors, (is_below, factor)]), f"with {part(mark, factor)} twice", ANOTHER)
            yield from _confused(node, factors, index)
        if len(others) > 1:
            yield Change(node, product([(is_below, factor)]), f"with {text(factor)} alone of {text(node)}", ANOTHER)
        inner = _flat(factor, ast.Add, ast.Sub)
        for place in range(len(inner) if len(inner) > 1 and not is_below else 0):
            is_minus, term = inner[place]
            applied = [(minus, product([*factors[:index], (False, part), *factors[index + 1 :]])) for minus, part in inner]
            others_words = ast.unparse(product(others))
            changed = [*inner[:place], applied[place], *inner[place + 1 :]]
            words = f"with {text(term)} alone times `{others_words}`, in the place of all of {text(factor)}"
            yield Change(node, total(changed), words, TURNED)
            if len(inner) > 2:
                words = f"with {text(term)} not times `{others_words}`, as the rest of {text(factor)} is"
                yield Change(node, total([*applied[:place], inner[place], *applied[place + 1 :]]), words, TURNED)
    for one, other in itertools.combinations([factor for factor in factors if not factor[0]], 2):
        rest = [factor for factor in factors if factor not in (one, other)]
        added = ast.BinOp(one[1], ast.Add(), other[1])
        words = f"with `{ast.unparse(added)}` in the place of `{ast.unparse(product([one, other]))}`"
        yield Change(node, product([(False, added), *rest]), words, ADDED)
    for index, (is_below, factor) in enumerate(factors):
        others = [*factors[:index], *factors[index + 1 :]]
        if len(factors) > 2 and not is_below:
            yield _instead(node, ast.BinOp(factor, ast.Add(), product(others)), ADDED)


def _confused(node: ast.BinOp, factors: list[Any], index: int) -> Iterator[Change]:
    """f * (1 - f) or 1 - f in the place of f, or a difference the other way round."""
    is_below, factor = factors[index]
    if isinstance(factor, ast.Constant):
        return
    others: list[tuple[ast.expr, int]] = [(ast.BinOp(ast.Constant(1), ast.Sub(), factor), ANOTHER)]
    if isinstance(factor, ast.BinOp) and isinstance(factor.op, ast.Sub):
        others = [(ast.BinOp(factor.right, ast.Sub(), factor.left), TURNED)]
    for other, rank in others:
        words = f"with {text(other)} in the place of {text(factor)}"
        yield Change(node, product([*factors[:index], (is_below, other), *factors[index + 1 :]]), words, rank)
    if is_below:
        return
    if isinstance(factor, ast.Name):
        marked = ast.Compare(factor, [ast.Gt()], [ast.Constant(0)])
        words = f"with {text(marked)} in the place of {text(factor)}"
        yield Change(node, product([*factors[:index], (False, marked), *factors[index + 1 :]]), words, ADDED)
    less = ast.BinOp(factor, ast.Mult(), ast.BinOp(ast.Constant(1), ast.Sub(), factor))
    changed = product([*factors[:index], (False, less), *factors[index + 1 :]])
    yield Change(node, changed, f"with {text(less)} in the place of {text(factor)}", ADDED)


def _is_one(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value == 1


def _transposed(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
        return node.value
    return ast.Attribute(node, "mT", ast.Load())


def _of_matmul(node: ast.BinOp, left: ast.expr, right: ast.expr) -> Iterator[Change]:
    for one, other in ((left, right), (right, left), (left, _transposed(right)), (_transposed(left), right)):
        for first, second in ((one, other), (_transposed(one), _transposed(other)), (other, one)):
            if (first, second) != (left, right):
                yield _instead(node, ast.BinOp(first, ast.MatMult(), second), TURNED)
    yield _instead(node, ast.BinOp(left, ast.Mult(), right), ANOTHER)
    yield _without(node, left, right)
    yield _without(node, right, left)
    for kept, axis, other in ((left, -1, right), (right, 0, left)):
        summed = ast.parse(f"({ast.unparse(kept)}).sum(axis={axis})", mode="eval").body
        yield Change(node, summed, f"with the sum of {text(kept)} in the place of {text(node)}, without {text(other)}", ANOTHER)
    for size in (f"({ast.unparse(left)}).shape[-1]", f"({ast.unparse(left)}).shape[0]"):
        mean = ast.BinOp(node, ast.Div(), ast.parse(size, mode="eval").body)
        yield Change(node, mean, f"with the mean in the place of the sum in {text(node)}", ANOTHER)


def _of_power(node: ast.BinOp, base: ast.expr, power: ast.expr) -> Iterator[Change]:
    yield Change(node, base, f"without the power in {text(node)}", LEFT_OUT)
    one = ast.Constant(1)
    others: list[ast.expr] = [ast.BinOp(power, ast.Sub(), one), ast.BinOp(power, ast.Add(), one)]
    if isinstance(power, ast.BinOp) and isinstance(power.op, ast.Sub | ast.Add):
        others.append(power.left)
    elif isinstance(power, ast.Constant) and isinstance(power.value, int | float):
        others = [ast.Constant(power.value + step) for step in (-1, 1, -0.5, 0.5) if power.value + step not in (0, 1)]
    others.append(ast.UnaryOp(ast.USub(), power))
    for other in others:
        yield _instead(node, ast.BinOp(base, ast.Pow(), other), ANOTHER)


def _of_index(node: ast.Subscript) -> Iterator[Change]:
    """Another place along the first axis, or all of it."""
    yield Change(node, node.value, f"with {text(node.value)} in the place of {text(node)}", ANOTHER)
    match node.slice:
        case ast.Name() | ast.Constant(int()) | ast.BinOp():
            for step in (-1, 1):
                yield _instead(node, _at(node, ast.BinOp(node.slice, ast.Add(), ast.Constant(step))), ANOTHER)
        case ast.Tuple(elements):
            for place, element in enumerate(elements):
                if isinstance(element, ast.Constant) and isinstance(element.value, int):
                    for other in (element.value - 1, element.value + 1):
                        moved = ast.Tuple([*elements[:place], ast.Constant(other), *elements[place + 1 :]], ast.Load())
                        if other >= 0:
                            yield _instead(node, _at(node, moved), ANOTHER)
        case ast.Slice(lower, upper, step) if lower is not None or upper is not None:
            if lower is not None and upper is None:
                yield _instead(node, _at(node, ast.Slice(None, ast.UnaryOp(ast.USub(), lower), step)), ANOTHER)
            elif lower is None and isinstance(upper, ast.UnaryOp):
                yield _instead(node, _at(node, ast.Slice(upper.operand, None, step)), ANOTHER)


def _at(node: ast.Subscript, index: ast.expr) -> ast.Subscript:
    return ast.Subscript(node.value, index, ast.Load())


def _of_constant(node: ast.Constant, parent: ast.AST | None) -> Iterator[Change]:
    if not isinstance(parent, ast.BinOp | ast.UnaryOp | ast.Compare | ast.Call) or isinstance(parent, ast.Subscript):
        return
    value: Any = node.value
    for other in (value + 1, value - 1, -value, 2 * value, value / 2):
        if other != value and not (other == 0 and isinstance(parent, ast.BinOp)):
            yield _instead(node, ast.Constant(other), ANOTHER)


def _of_name(
    node: ast.Name | ast.Attribute | ast.Subscript, names: Mapping[str, Any], functions: Sequence[str]
) -> Iterator[Change]:
    code = ast.unparse(node)
    own = names[code]
    for name, value in names.items():
        if name != code and _fits(value, own):
            yield _instead(node, ast.parse(name, mode="eval").body, ANOTHER)
    if not np.ndim(own) and not isinstance(own, int):
        yield _instead(node, ast.BinOp(ast.Constant(1), ast.Sub(), node), ANOTHER)
    if isinstance(own, int) and code.startswith("self."):
        for one in (ast.Sub(), ast.Add()):
            yield _instead(node, ast.BinOp(node, one, ast.Constant(1)), ANOTHER)
    if np.ndim(own) >= 2:
        yield Change(node, _transposed(node), f"with {text(node)} transposed", TURNED)
    if code.startswith("grad"):
        ones = ast.Call(ast.Name("ones_like", ast.Load()), [node], [])
        yield Change(node, ones, f"with 1 in the place of {text(node)}", LEFT_OUT)
    for function in functions:
        again = ast.Call(ast.Name(function, ast.Load()), [node], [])
        yield _instead(node, again, ANOTHER)


def _fits(value: Any, own: Any) -> bool:
    if isinstance(own, int) or isinstance(value, int):
        return np.ndim(own) == np.ndim(value) == 0
    try:
        np.broadcast_shapes(np.shape(value), np.shape(own))
    except ValueError:
        return False
    return True


def _of_whole(expression: ast.expr, names: Mapping[str, Any], sizes: Sequence[str]) -> Iterator[Change]:
    """The whole line scaled, or another array in its place."""
    minus, half = ast.UnaryOp(ast.USub(), expression), ast.BinOp(expression, ast.Div(), ast.Constant(2))
    yield Change(expression, minus, "with its sign turned", TURNED)
    yield Change(expression, ast.BinOp(expression, ast.Mult(), ast.Constant(2)), "times 2", TURNED)
    yield Change(expression, half, "divided by 2", TURNED)
    nothing = ast.BinOp(ast.Constant(0), ast.Mult(), expression)
    yield Change(expression, nothing, "but for its size: it is 0 everywhere", ADDED)
    for size in sizes:
        number = ast.parse(size, mode="eval").body
        yield Change(expression, ast.BinOp(expression, ast.Div(), number), f"divided by {text(number)}", ADDED)
        yield Change(expression, ast.BinOp(expression, ast.Mult(), number), f"times {text(number)}", ADDED)
    for name, value in names.items():
        read = ast.parse(name, mode="eval").body
        if isinstance(value, np.ndarray) and value.dtype.kind in "fb":
            if not isinstance(expression, ast.Name) and np.ndim(value):
                yield Change(expression, read, f"but for all of {text(expression)}: it is `{name}` alone", ADDED)
            yield Change(expression, ast.BinOp(expression, ast.Mult(), read), f"times `{name}`", ADDED)
            yield Change(expression, ast.BinOp(expression, ast.Div(), read), f"divided by `{name}`", ADDED)
