"""The package's code in the plain form of its formulas: no `out=`, no faster forms."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from nn_manual.layers.activations import expit
from nn_manual.layers.fast_forms import rows

#: What the plain forms call, beside what the code itself imports.
HELPERS = {"np": np, "rows": rows, "expit": expit, "ones_like": np.ones_like}
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
