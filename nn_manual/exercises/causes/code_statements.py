"""The statements of a method, and the changes of whole statements: conditions, and the order of lines."""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import itertools
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from nn_manual.exercises.causes.candidates import Candidate
from nn_manual.exercises.causes.change import LEFT_OUT, TURNED, Change
from nn_manual.exercises.causes.changes import changes_of

#: Methods that show an array in another form.
VIEWS = ("reshape", "transpose", "swapaxes", "ravel", "copy")

#: A `while` that goes round so often doesn't end.
MOST_ROUNDS = 10_000


@functools.cache
def source_of(function: Callable[..., Any]) -> ast.FunctionDef:
    """The tree of a method, without its docstring, decorators and annotations."""
    tree: Any = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    if isinstance(tree.body[0], ast.Expr) and isinstance(tree.body[0].value, ast.Constant):
        tree.body = tree.body[1:] or [ast.Pass()]
    tree.decorator_list, tree.returns = [], None
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.FunctionDef):
            node.returns = None
    made: ast.FunctionDef = tree
    return made


def ending(unit: ast.AST) -> ast.AST:
    """The same, with an error where a `while` doesn't end, as it may not when something is changed."""
    if not any(isinstance(node, ast.While) for node in ast.walk(unit)):
        return unit
    ended: ast.AST = _Ending().visit(copy.deepcopy(unit))
    return ended


class _Ending(ast.NodeTransformer):
    def visit_While(self, node: ast.While) -> Any:
        """`for ... in range(...)` with the condition as its first line."""
        self.generic_visit(node)
        rounds = f"for _ in range({MOST_ROUNDS}):\n    if not ...:\n        break\nelse:\n    raise RuntimeError"
        loop: Any = ast.parse(rounds).body[0]
        loop.body[0].test.operand = node.test
        loop.body += node.body
        return loop


def computing(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that compute."""
    for statement in body:
        match statement:
            case ast.If(body=inner, orelse=other) if not all(isinstance(each, ast.Raise) for each in inner):
                yield from computing(inner)
                yield from computing(other)
            case ast.For(body=inner) | ast.While(body=inner) | ast.FunctionDef(body=inner):
                yield from computing(inner)
            case ast.Assign() | ast.AugAssign() | ast.AnnAssign() | ast.Return():
                yield statement
            case ast.Expr(ast.Call(ast.Attribute(ast.Name("self"), name))) if name.startswith("check"):
                continue
            case ast.Expr(ast.Call()):
                yield statement


def makes_views(statement: ast.stmt) -> bool:
    """Whether a line gives names to arrays, to parts of them or to places, and computes no number."""
    if not isinstance(statement, ast.Assign):
        return False
    names = [node for target in statement.targets for node in getattr(target, "elts", [target])]
    parts = getattr(statement.value, "elts", [statement.value])
    return all(isinstance(node, ast.Name) for node in names) and all(map(_is_view, parts))


def _is_view(node: ast.expr) -> bool:
    match node:
        case ast.Name() | ast.Constant() | ast.Call(ast.Name("slice")):
            return True
        case ast.Attribute(value) | ast.Subscript(value) | ast.Starred(value):
            return _is_view(value)
        case ast.Call(ast.Attribute(value, name)):
            return name in VIEWS and _is_view(value)
    return False


def known_at(unit: ast.FunctionDef, statement: ast.stmt, names: Mapping[str, Any]) -> dict[str, Any]:
    """The arrays that have a value before a statement."""
    stored = {
        node.id
        for node in ast.walk(unit)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.lineno < statement.lineno
    }
    arguments = {node.arg for node in ast.walk(unit.args) if isinstance(node, ast.arg)}
    return {name: value for name, value in names.items() if re.split(r"\W", name)[0] in stored | arguments}


def of_conditions(index: int, unit: ast.FunctionDef, owner: Any) -> Iterator[Candidate]:
    """A condition that always holds, or never, or where its bound is crossed and not met; and the smallest number so
    far in the place of one that is kept under a condition.
    """
    for node in ast.walk(unit):
        if isinstance(node, ast.If | ast.While):
            for other in changes_of(node.test, {}, []):
                if isinstance(other.node, ast.Compare) and isinstance(other.wrong, ast.Compare):
                    yield Candidate(((index, other),), ("",), "", TURNED)
        if isinstance(node, ast.If) and not all(isinstance(each, ast.Raise) for each in node.body):
            for holds in (True, False):
                change = Change(node.test, ast.Constant(holds), _decided(ast.unparse(node.test), holds, owner), TURNED)
                yield Candidate(((index, change),), ("",), "", TURNED)
        match node:
            case ast.If(test, [ast.Assign([ast.Attribute() as kept], value)], []):  # a state that is kept at times
                line = f"{ast.unparse(kept)} = min({ast.unparse(kept)}, {ast.unparse(value)})"
                words = f"with `{line}` whatever `{ast.unparse(test)}` is"
                change = Change(node, ast.parse(line).body[0], words, TURNED)
                yield Candidate(((index, change),), ("",), "", TURNED)


def _decided(test: str, holds: bool, owner: Any) -> str:
    """The words for a condition that doesn't depend on anything. A setting that is true or false has its name."""
    name = test.removeprefix("self.")
    if isinstance(getattr(owner, name, None), bool):
        return f"with {name}={holds} on every input"
    return f"with `{test}` always {str(holds).lower()}"


def of_loops(index: int, unit: ast.FunctionDef) -> Iterator[Candidate]:
    """A loop without its first round, or without its last one."""
    for node in ast.walk(unit):
        if isinstance(node, ast.For):
            code = ast.unparse(node.iter)
            for part, which in (("1:", "first"), (":-1", "last")):
                fewer = ast.parse(f"list({code})[{part}]", mode="eval").body
                change = Change(node.iter, fewer, f"without the {which} round of `for ... in {code}`", TURNED)
                yield Candidate(((index, change),), ("",), "", TURNED)


def swapped_gates(index: int, unit: ast.FunctionDef, num_gates: int) -> Iterator[Candidate]:
    """Two gates of a recurrent net exchanged in the gradients of its affine maps."""
    joined = [
        node.func.value
        for node in ast.walk(unit)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "reshape"
        if ast.unparse(node.func.value).startswith("grad_")
    ]
    for one, other in itertools.combinations(range(num_gates) if joined else (), 2):
        order = [{one: other, other: one}.get(gate, gate) for gate in range(num_gates)]
        words = f"with gates {one} and {other} exchanged, counted from 0"
        forms = (ast.parse(f"np.take({ast.unparse(node)}, {order}, axis=-2)", mode="eval").body for node in joined)
        edits = tuple((index, Change(node, form, words, TURNED)) for node, form in zip(joined, forms, strict=True))
        yield Candidate(edits, ("",) * len(edits), "", TURNED)


def swapped_lines(index: int, unit: ast.FunctionDef) -> Iterator[Candidate]:
    """Two lines one after the other, the later one first; and a line that only changes something left out."""
    for node in ast.walk(unit):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        for place, (first, second) in enumerate(itertools.pairwise(body)):
            if isinstance(first, ast.Assign | ast.AugAssign) and isinstance(second, ast.Assign | ast.AugAssign):
                swapped = [*body[:place], second, first, *body[place + 2 :]]
                wrong: Any = type(node)(**{**dict(ast.iter_fields(node)), "body": swapped})
                words = f"with `{ast.unparse(second)}` before `{ast.unparse(first)}`"
                yield Candidate(((index, Change(node, wrong, words, TURNED)),), ("",), "", TURNED)
        for statement in body:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
                change = Change(statement, ast.Pass(), f"without `{ast.unparse(statement)}`", LEFT_OUT)
                yield Candidate(((index, change),), ("",), "", LEFT_OUT)
