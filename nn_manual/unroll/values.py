"""Beside each line of a page: the shape and the first numbers that it has in a real step, and torch's of a gradient."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

import numpy as np

from nn_manual.arrays import Array
from nn_manual.unroll.wrapping import WIDTH

#: What the page says of the values.
ABOUT = """
Beside or below a line stand the shape and the first numbers of what it has computed in the first step, and of a
gradient the first numbers of torch's.
"""
#: So many numbers of an array are shown, each with so many digits.
SHOWN, DIGITS = 3, 4
#: The column in which the values begin, where the line is shorter.
COLUMN = 68
#: The name under which a page reports what a line has computed.
NOTE = "_note"


def with_values(text: str, arguments: Mapping[str, Any], gradients: Mapping[str, Array]) -> str:
    """The page with the values of each line of train_step in a comment. `arguments` are those of train_step; they are
    changed, as a step changes them. `gradients` are torch's, by their names in the plan of a check: "2.grad_weight".
    A line that runs several times, in a loop, has the values of the last time.
    """
    text = text.replace('\n"""\n', f'\n{ABOUT}"""\n', 1)
    values = _values(text, arguments)
    theirs = {_name_on_page(name): gradient for name, gradient in gradients.items()}
    last = {name: line for line, named in sorted(values.items()) for name in named}
    lines = text.splitlines()
    for end, named in sorted(values.items(), reverse=True):
        first = lines[end - 1]
        indent = " " * (len(first) - len(first.lstrip()))
        finished = {name: theirs.get(name) if last[name] == end else None for name in named}
        words = [_described(name, value, finished[name], is_one=len(named) == 1) for name, value in named.items()]
        comment = f"# {'; '.join(words)}"
        beside = f"{first:{COLUMN}}  {comment}"
        if len(beside) <= WIDTH:
            lines[end - 1] = beside
        else:
            lines.insert(end, f"{indent}{comment}"[:WIDTH])
    return "\n".join(lines) + "\n"


def _values(text: str, arguments: Mapping[str, Any]) -> dict[int, dict[str, Array]]:
    """By the last line of each assignment in train_step, what it has assigned, by name."""
    tree = ast.parse(text)
    (step,) = (own for own in tree.body if isinstance(own, ast.FunctionDef) and own.name == "train_step")
    step.body = _noting(step.body)
    values: dict[int, dict[str, Array]] = {}

    def note(line: int, name: str, value: Any) -> None:
        values.setdefault(line, {})[name] = np.array(value)

    space: dict[str, Any] = {"__name__": "step", NOTE: note}
    exec(compile(ast.fix_missing_locations(tree), "<the script>", "exec"), space)
    space["train_step"](**arguments)
    return values


def _noting(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements, each assignment followed by a note of what it has assigned."""
    noting: list[ast.stmt] = []
    for statement in body:
        noting.append(statement)
        for inner in ("body", "orelse"):
            if getattr(statement, inner, None):
                setattr(statement, inner, _noting(getattr(statement, inner)))
        for name in _assigned(statement):
            call = f"{NOTE}({statement.end_lineno}, {name!r}, {name})"
            noting.extend(ast.parse(call).body)
    return noting


def _assigned(statement: ast.stmt) -> list[str]:
    """The names of the variables that a statement gives a value, or part of a value."""
    match statement:
        case ast.Assign(targets=[ast.Tuple(elts=targets)]) | ast.Assign(targets=targets):
            pass
        case ast.AugAssign(target=target):
            targets = [target]
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name() as array, attr="put"))):
            targets = [array]
        case ast.Expr(value=ast.Call(keywords=keywords)):  # NumPy writes into what `out` names
            targets = [keyword.value for keyword in keywords if keyword.arg == "out"]
        case _:
            return []
    bases = [target.value if isinstance(target, ast.Subscript) else target for target in targets]
    return [base.id for base in bases if isinstance(base, ast.Name)]


def _described(name: str, value: Array, theirs: Array | None, *, is_one: bool) -> str:
    shape = f"({', '.join(map(str, value.shape))}{',' * (value.ndim == 1)}) " if value.shape else ""
    words = f"{'' if is_one else f'{name} '}{shape}{_numbers(value)}"
    return words if theirs is None else f"{words}  torch: {_numbers(theirs)}"


def _numbers(value: Array) -> str:
    spec = f".{DIGITS}g" if value.dtype.kind == "f" else ""
    first = " ".join(f"{number:{spec}}" for number in value.ravel()[:SHOWN].tolist())
    return f"{first} ..." if value.size > SHOWN else first


def _name_on_page(name: str) -> str:
    """`2.grad_weight` is grad_weight_2 on the page, and `loss.grad_prediction` is grad_prediction. A layer's own names
    may have points in them: `1.0.grad_out_proj.weight` is grad_out_proj_weight_1_0.
    """
    layer, _, local = name.partition(".grad_")
    return "_".join(["grad", *local.split("."), *(layer.split(".") if layer != "loss" else [])])
