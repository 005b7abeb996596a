"""Changes of sums, products, matrix products and powers."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from nn_manual.exercises.causes.change import (
    ADDED,
    ANOTHER,
    LEFT_OUT,
    TURNED,
    Change,
    instead,
    part,
    replaced,
    text,
    transposed,
    without,
)


def of_sum(node: ast.BinOp, sizes: Sequence[str], names: Mapping[str, Any]) -> Iterator[Change]:
    """A term left out, alone, with another sign, scaled; a root or square around another part."""
    terms = _flat(node, ast.Add, ast.Sub)
    for index, (is_minus, term) in enumerate(terms):
        others = [*terms[:index], *terms[index + 1 :]]
        sign, other_sign = ("-", "+") if is_minus else ("+", "-")
        yield Change(node, total(others), f"without {part(sign, term) if index else text(term)}", LEFT_OUT)
        if len(others) == 1 and not index and others[0][0]:
            yield instead(node, others[0][1], LEFT_OUT)
        flipped = [*terms[:index], (not is_minus, term), *terms[index + 1 :]]
        words = f"with {part(other_sign, term)} in the place of {part(sign, term)}"
        yield Change(node, total(flipped), words, TURNED)
        if len(others) > 1:
            yield Change(node, total([(is_minus, term)]), f"with {text(term)} alone of {text(node)}", TURNED)
        match term:
            case ast.Call(function, [inner_term], _) if ast.unparse(function).endswith("sqrt") and not is_minus:
                root = ast.Call(function, [total([(False, inner_term), *others])], [])
                yield instead(node, root, TURNED)
        for name, value in names.items():
            if isinstance(value, np.ndarray | float) and not isinstance(term, ast.Constant):
                read = ast.parse(name, mode="eval").body
                changed = [*terms[:index], (is_minus, ast.BinOp(term, ast.Mult(), read)), *terms[index + 1 :]]
                yield Change(node, total(changed), f"with {part('*', read)} behind {text(term)}", ADDED)
        yield from _weights_swapped(node, terms, index)
        if len(terms) == 2 and index and not is_minus and not terms[0][0]:
            yield instead(node, ast.BinOp(terms[0][1], ast.Mult(), term), ANOTHER)
        base = _root(term)
        if base is not None:
            inner = [*terms[:index], (is_minus, base), *terms[index + 1 :]]
            yield instead(node, ast.BinOp(total(inner), ast.Pow(), ast.Constant(2)), ANOTHER)
        if base is not None and is_minus and len(terms) == 2 and is_one(terms[0][1]):
            of_sigmoid = ast.BinOp(base, ast.Mult(), ast.BinOp(ast.Constant(1), ast.Sub(), base))
            yield instead(node, of_sigmoid, ANOTHER)
        for factor in {ast.unparse(factor): factor for _, factor in _flat(term, ast.Mult, ast.Div)}.values():
            if len(terms) > 1 and factor is not term and not isinstance(factor, ast.Constant):
                spread = ast.BinOp(factor, ast.Mult(), total([*terms[:index], *terms[index + 1 :]]))
                sign_first = ast.BinOp(spread, ast.Sub() if is_minus else ast.Add(), term)
                yield Change(node, sign_first, f"with {text(factor)} in all terms of {text(node)}", ANOTHER)
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


def of_product(node: ast.BinOp) -> Iterator[Change]:
    """A factor left out, alone, inverted, twice, on some terms only, added."""
    factors = _flat(node, ast.Mult, ast.Div)
    for index, (is_below, factor) in enumerate(factors):
        others = [*factors[:index], *factors[index + 1 :]]
        mark, other_mark = ("/", "*") if is_below else ("*", "/")
        if not is_one(factor):
            words = part(mark, factor) if index else f"the factor {text(factor)}"
            yield Change(node, product(others), f"without {words}", LEFT_OUT)
        flipped = [*factors[:index], (not is_below, factor), *factors[index + 1 :]]
        if not is_one(factor):
            words = f"with {part(other_mark, factor)} in the place of {part(mark, factor)}"
            yield Change(node, product(flipped), words, ANOTHER)
            yield Change(node, product([*factors, (is_below, factor)]), f"with {part(mark, factor)} twice", ANOTHER)
            yield from _confused(node, factors, index)
        if is_below and isinstance(factor, ast.Name | ast.Attribute | ast.Subscript):
            root = ast.BinOp(factor, ast.Pow(), ast.Constant(0.5))
            words = f"with the root of {text(factor)} in the place of {text(factor)}"
            yield Change(node, product([*factors[:index], (True, root), *factors[index + 1 :]]), words, ANOTHER)
        if len(others) > 1:
            yield Change(node, product([(is_below, factor)]), f"with {text(factor)} alone of {text(node)}", ANOTHER)
        yield from _parentheses_of_power(node, factors, index)
        inner = _flat(factor, ast.Add, ast.Sub)
        for place in range(len(inner) if len(inner) > 1 and not is_below else 0):
            term = inner[place][1]
            before, behind = factors[:index], factors[index + 1 :]
            applied = [(minus, product([*before, (False, each), *behind])) for minus, each in inner]
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
            yield instead(node, ast.BinOp(factor, ast.Add(), product(others)), ADDED)


def _parentheses_of_power(node: ast.BinOp, factors: list[Any], index: int) -> Iterator[Change]:
    """n * x ** n - 1 in the place of n * x ** (n - 1)."""
    match factors[index]:
        case (False, ast.BinOp(base, ast.Pow(), ast.BinOp(left, ast.Add() | ast.Sub() as sign, right))):
            power = ast.BinOp(base, ast.Pow(), left)
            lost = product([*factors[:index], (False, power), *factors[index + 1 :]])
            yield instead(node, ast.BinOp(lost, sign, right), TURNED)


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
        for comparison in (ast.Gt(), ast.Eq()):
            marked = ast.Compare(factor, [comparison], [ast.Constant(0)])
            words = f"with {text(marked)} in the place of {text(factor)}"
            yield Change(node, product([*factors[:index], (False, marked), *factors[index + 1 :]]), words, ADDED)
    less = ast.BinOp(factor, ast.Mult(), ast.BinOp(ast.Constant(1), ast.Sub(), factor))
    changed = product([*factors[:index], (False, less), *factors[index + 1 :]])
    yield Change(node, changed, f"with {text(less)} in the place of {text(factor)}", ADDED)


def is_one(node: ast.AST) -> bool:
    """Whether it is the constant 1."""
    return isinstance(node, ast.Constant) and node.value == 1


def of_matmul(node: ast.BinOp, left: ast.expr, right: ast.expr) -> Iterator[Change]:
    """Factors transposed, swapped, left out; an elementwise product; a mean."""
    for one, other in ((left, right), (right, left), (left, transposed(right)), (transposed(left), right)):
        for first, second in ((one, other), (transposed(one), transposed(other)), (other, one)):
            if (first, second) != (left, right):
                yield instead(node, ast.BinOp(first, ast.MatMult(), second), TURNED)
    yield instead(node, ast.BinOp(left, ast.Mult(), right), ANOTHER)
    yield without(node, left, right)
    yield without(node, right, left)
    for kept, axis, other in ((left, -1, right), (right, 0, left)):
        summed = ast.parse(f"({ast.unparse(kept)}).sum(axis={axis})", mode="eval").body
        words = f"with the sum of {text(kept)} in the place of {text(node)}, without {text(other)}"
        yield Change(node, summed, words, ANOTHER)
    for size in (f"({ast.unparse(left)}).shape[-1]", f"({ast.unparse(left)}).shape[0]"):
        mean = ast.BinOp(node, ast.Div(), ast.parse(size, mode="eval").body)
        yield Change(node, mean, f"with the mean in the place of the sum in {text(node)}", ANOTHER)


def of_power(node: ast.BinOp, base: ast.expr, power: ast.expr) -> Iterator[Change]:
    """Another power."""
    yield Change(node, base, f"without the power in {text(node)}", LEFT_OUT)
    one = ast.Constant(1)
    others: list[ast.expr] = [ast.BinOp(power, ast.Sub(), one), ast.BinOp(power, ast.Add(), one)]
    if isinstance(power, ast.BinOp) and isinstance(power.op, ast.Sub | ast.Add):
        others.append(power.left)
    elif isinstance(power, ast.Constant) and isinstance(power.value, int | float):
        size = ast.Call(ast.Name("abs", ast.Load()), [base], [])
        yield from [instead(node, size, ANOTHER)] if power.value == 2 else []
        others = [ast.Constant(power.value + step) for step in (-1, 1, -0.5, 0.5) if power.value + step not in (0, 1)]
    yield instead(node, ast.BinOp(base, ast.Mult(), power), ANOTHER)
    others.append(ast.UnaryOp(ast.USub(), power))
    for other in others:
        yield instead(node, ast.BinOp(base, ast.Pow(), other), ANOTHER)


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
