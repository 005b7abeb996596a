"""The package's code in the plain form of its formulas: no `out=`, no faster forms."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.layers.activations import expit
from nn_manual.layers.fast_forms import rows
from nn_manual.layers.windows import Windows


def last_parts(windows: Windows, parts: Iterable[Array], image_size: Shape, by_windows: bool) -> Array:
    """`windows.back` with `=` for `+=`: of several numbers for a place the last one stays, that of the last window or
    that of the last place in a window.
    """
    every = list(parts)
    image = windows.back([np.zeros_like(part) for part in every], image_size)
    for place in reversed(range(len(every))) if by_windows else range(len(every)):
        is_there = np.arange(len(every)) == place
        alone = [part if own else np.zeros_like(part) for part, own in zip(every, is_there, strict=True)]
        written = windows.back([part != 0 for part in alone], image_size)
        image = np.where(written, windows.back(alone, image_size), image)
    return image


def last_rows(indices: Array, values: Array, num_rows: int) -> Array:
    """`one_hot_product` with `=` for `+=`: of several values for a row the last one stays."""
    product = np.zeros((num_rows, values.shape[1]), values.dtype)
    for index, value in zip(indices, values, strict=True):
        product[index] = value
    return product


#: What the plain forms call, beside what the code itself imports.
HELPERS = {
    "np": np,
    "rows": rows,
    "expit": expit,
    "ones_like": np.ones_like,
    "last_parts": last_parts,
    "last_rows": last_rows,
}
_OPERATIONS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "matmul": "@"}


def plain(tree: ast.FunctionDef) -> ast.FunctionDef:
    """A method in which each line writes what it computes: `np.multiply(a, b, out=c)` is `c[...] = a * b`."""
    source = ast.unparse(_Plain().visit(ast.parse(ast.unparse(tree))))
    made: Any = ast.parse(source).body[0]
    return made if isinstance(made, ast.FunctionDef) else tree


class _Plain(ast.NodeTransformer):
    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        """`np.multiply(a, b, out=c)`."""
        self.generic_visit(node)
        target = _out(node.value)
        return node if target is None else self._written(target, node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        """`total: Array = a + b`."""
        if node.value is None:
            return node
        return self.visit_Assign(ast.Assign([node.target], node.value, lineno=0))

    def visit_Assign(self, node: ast.Assign) -> Any:
        """`h = np.multiply(a, b, out=c)`."""
        self.generic_visit(node)
        target = _out(node.value)
        if target is None:
            return node
        return [self._written(target, node.value), ast.Assign(node.targets, target, lineno=0)]

    def visit_Return(self, node: ast.Return) -> Any:
        """`return np.divide(a, b, out=c)`."""
        self.generic_visit(node)
        target = _out(node.value)
        return node if target is None else [self._written(target, node.value), ast.Return(target)]

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """A sum that keeps its axis."""
        if ast.unparse(node).startswith("np.vecdot(") and ast.unparse(node.slice) == "(..., np.newaxis)":
            first, second = (ast.unparse(self.visit(each)) for each in node.value.args)  # type: ignore[attr-defined]
            return _parsed(f"({first} * {second}).sum(axis=-1, keepdims=True)")
        self.generic_visit(node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """The faster forms of NumPy's operations."""
        self.generic_visit(node)
        name = ast.unparse(node.func)
        arguments = [ast.unparse(each) for each in node.args]
        form = {
            "mean_over": "({0}).mean(axis={1}, keepdims=True)",
            "masked": "np.where({1}, {0}, 0)",
            "np.vecdot": "({0} * {1}).sum(axis=-1)",
        }.get(name)
        return node if form is None else _parsed(form.format(*arguments))

    def _written(self, target: ast.expr, value: Any) -> ast.stmt:
        arguments = [ast.unparse(each) for each in value.args]
        keywords = "".join(f", {each.arg}={ast.unparse(each.value)}" for each in value.keywords if each.arg != "out")
        name = ast.unparse(value.func)
        if name.removeprefix("np.") in _OPERATIONS and len(arguments) == 2:
            code = f"({arguments[0]}) {_OPERATIONS[name.removeprefix('np.')]} ({arguments[1]})"
        elif name == "sum_rows":
            code = f"rows({arguments[0]}).sum(axis=0)"
        else:
            code = f"{name}({', '.join(arguments)}{keywords})"
        return ast.parse(f"({ast.unparse(target)})[...] = {code}").body[0]


def _out(value: Any) -> ast.expr | None:
    if isinstance(value, ast.Call) and ast.unparse(value.func).startswith(("np.", "sum_rows")):
        return next((each.value for each in value.keywords if each.arg == "out"), None)
    return None


def _parsed(code: str) -> ast.expr:
    return ast.parse(code, mode="eval").body
