"""One-line faults in the package: drawn with a fixed seed from the lines that two states of it have in common."""

from __future__ import annotations

import ast
import copy
import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

#: How many faults are planted, and the seed with which they are drawn.
NUM_FAULTS, SEED = 60, 0

#: What another campaign changes: the formulas of layers.
LAYERS = "nn_manual/layers/"
FORMULAS = {"forward", "backward", "infer", "derivative", "backward_parameters"}
#: The files whose functions numba compiles: nothing there can say that it runs.
COMPILED = {"elementary.py", "gemm.py", "intrinsics.py", "tiles.py"}

SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Div,
}  # fmt: skip


class Fault(NamedTuple):
    """A line of a file, without and with the fault; the line of the statement that it is part of."""

    path: str
    number: int
    line: str
    changed: str
    statement: int

    @property
    def name(self) -> str:
        """The same in all states that have the line."""
        return f"{self.path}: {self.line.strip()} -> {self.changed.strip()}"


def drawn(tree: Path, other: Path | None, count: int = NUM_FAULTS) -> list[Fault]:
    """The faults of `tree`. Each of their lines stands once in its file, and once in the same file of `other`."""
    found = []
    for path in sorted((tree / "nn_manual").rglob("*.py")):
        name = path.relative_to(tree).as_posix()
        if path.name in COMPILED or (other is not None and not (other / name).exists()):
            continue
        lines = path.read_text(encoding="utf-8").splitlines()
        theirs = lines if other is None else (other / name).read_text(encoding="utf-8").splitlines()
        found += [each for each in _of_file(name, lines) if lines.count(each.line) == theirs.count(each.line) == 1]
    # By name: the order, and so the draw, is that of every state that has these lines.
    unique = {fault.name: fault for fault in found}
    names = sorted(unique)
    random.Random(SEED).shuffle(names)
    chosen: dict[tuple[str, str], Fault] = {}
    for each in names:
        chosen.setdefault((unique[each].path, unique[each].line), unique[each])
    return list(chosen.values())[:count]


def _of_file(path: str, lines: list[str]) -> Iterator[Fault]:
    tree = ast.parse("\n".join(lines))
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef) or (path.startswith(LAYERS) and function.name in FORMULAS):
            continue
        for statement in _statements(function.body, lines):
            yield from _of_statement(path, lines, statement)


def _statements(body: list[ast.stmt], lines: list[str]) -> Iterator[ast.stmt]:
    """The statements of a function's body, before which another one can stand."""
    for statement in body:
        is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if isinstance(statement, ast.FunctionDef | ast.ClassDef) or is_text:
            continue
        if not lines[statement.lineno - 1].lstrip().startswith("elif"):
            yield statement
        for inner in ("body", "orelse", "finalbody"):
            yield from _statements(getattr(statement, inner, []), lines)
        for handler in getattr(statement, "handlers", []):
            yield from _statements(handler.body, lines)


def _of_statement(path: str, lines: list[str], statement: ast.stmt) -> Iterator[Fault]:
    own: list[ast.stmt | ast.expr] = [statement, *_expressions(statement)]
    for node in own:
        if node.lineno != node.end_lineno:
            continue
        for changed in _changed(node):
            line = lines[node.lineno - 1]
            if not line.isascii():  # columns count bytes
                continue
            text = line[: node.col_offset] + ast.unparse(changed) + line[node.end_col_offset :]
            yield Fault(path, node.lineno, line, text, statement.lineno)


def _expressions(statement: ast.stmt) -> Iterator[ast.expr]:
    """The expressions of a statement, without those of the statements in it."""
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, ast.expr):
            yield from (node for node in ast.walk(child) if isinstance(node, ast.expr) and not _is_in_text(child, node))


def _is_in_text(whole: ast.expr, node: ast.expr) -> bool:
    """Whether a node stands in an f-string: Python 3.11 gives it other columns."""
    return any(
        inner is node for text in ast.walk(whole) if isinstance(text, ast.JoinedStr) for inner in ast.walk(text)
    )


def _changed(node: ast.AST) -> Iterator[ast.AST]:
    """The node with a fault."""
    changed = copy.deepcopy(node)
    match changed:
        case ast.Compare(ops=[operator]) if type(operator) in SWAPPED:
            changed.ops = [SWAPPED[type(operator)]()]  # type: ignore[list-item]  # a comparison for a comparison
            yield changed
        case ast.BoolOp() | ast.BinOp() | ast.AugAssign() if type(changed.op) in SWAPPED:
            changed.op = SWAPPED[type(changed.op)]()  # type: ignore[assignment]  # the same kind of operator
            yield ast.fix_missing_locations(changed)
        case ast.UnaryOp(op=ast.Not()):
            yield changed.operand
        case ast.Constant(value=bool()):
            yield ast.Constant(not changed.value)
        case ast.Constant(value=(int() | float()) as value):
            yield ast.Constant(value + 1)
        case ast.IfExp():
            changed.body, changed.orelse = changed.orelse, changed.body
            yield changed
        case ast.Expr(value=ast.Call()):
            yield ast.Pass()
        case ast.Return(value=value) if value is not None and not isinstance(value, ast.Constant):
            yield ast.Return()
