"""One change of a formula's syntax tree, and how its words quote the formula."""

from __future__ import annotations

import ast
import copy
import operator
from typing import Any, NamedTuple

#: How simple the words of a change are, and how likely the mistake: of several that give the same, the first is told.
LEFT_OUT, TURNED, ANOTHER, ADDED = 1, 2, 3, 4
#: Code with more letters isn't quoted.
LONGEST = 140
#: Where an array is written by indices, and some come several times.
ONLY_ONCE = "with `=` for `+=`, which keeps only one number of each position, in {0}"


class Change(NamedTuple):
    """`wrong` in the place of `node`. `words` say it behind "the right grad_input": "without `* weight`"."""

    node: ast.AST
    wrong: ast.AST
    words: str
    rank: int


def replaced(tree: ast.AST, node: ast.AST, wrong: ast.AST) -> Any:
    """The tree with `wrong` in the place of `node`. Only the nodes above it are new: each changed tree has its own."""
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


def text(node: ast.AST) -> str:
    """The code of a node, as a sentence quotes it. A long one isn't quoted: a part of it would be no code."""
    return _quoted(node) or "a long formula"


def in_place(wrong: ast.AST, node: ast.AST) -> str:
    """The words for a formula in the place of another one."""
    return f"with {_quoted(wrong) or 'another formula'} in the place of {text(node)}"


def _quoted(node: ast.AST) -> str:
    code = ast.unparse(node)
    return f"`{code}`" if len(code) <= LONGEST else ""


def part(mark: str, node: ast.AST) -> str:
    """A part of a chain with its sign, as a sentence quotes it: `/ (1 - x)`."""
    operator_ = {"+": ast.Add(), "-": ast.Sub(), "*": ast.Mult(), "/": ast.Div()}[mark]
    return f"`{ast.unparse(ast.BinOp(ast.Name('x'), operator_, node))[2:]}`"  # type: ignore[arg-type]


def instead(node: ast.AST, wrong: ast.AST, rank: int) -> Change:
    """Another formula in the place of a node."""
    return Change(node, wrong, in_place(wrong, node), rank)


def without(node: ast.AST, kept: ast.AST, dropped: ast.AST) -> Change:
    """A node of which a part is left out."""
    return Change(node, kept, f"without {text(dropped)}", LEFT_OUT)


def transposed(node: ast.expr) -> ast.expr:
    """A node transposed, or no longer so."""
    if isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
        return node.value
    return ast.Attribute(node, "mT", ast.Load())


def called(node: ast.Call) -> str:
    """The function's or method's own name."""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def is_module(node: ast.expr) -> bool:
    """Whether it is what functions are taken from, and no array."""
    return isinstance(node, ast.Name) and node.id in ("np", "math", "scipy", "self")


def renamed(node: ast.Call, name: str) -> ast.Call:
    """A call of another function, or method, with the same arguments."""
    if isinstance(node.func, ast.Attribute):
        return ast.Call(ast.Attribute(node.func.value, name, ast.Load()), node.args, node.keywords)
    return ast.Call(ast.Name(name, ast.Load()), node.args, node.keywords)
