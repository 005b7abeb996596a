"""A method with several forms of each of its statements, of which a number chooses one while it runs."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from nn_manual.exercises.causes.change import Change, replaced


class Switched:
    """`tree` is the method in which each changed statement is a choice between its forms. `chosen` has the number of
    the form of each statement that isn't as it was, and `method` is the compiled tree, which reads it as `_chosen`.
    """

    method: Callable[..., Any]

    def __init__(self, unit: ast.AST, changes: Sequence[Change]) -> None:
        self.chosen: dict[int, int] = {}
        self._places: dict[int, tuple[Change, int, int]] = {}
        forms: dict[int, list[ast.stmt]] = {}
        statements = [node for node in ast.walk(unit) if isinstance(node, ast.stmt) and not hasattr(node, "body")]
        owner = {id(part): place for place, statement in enumerate(statements) for part in ast.walk(statement)}
        for change in changes:
            place = owner.get(id(change.node))
            if place is not None:
                form = replaced(statements[place], change.node, change.wrong)
                forms.setdefault(place, []).append(form)
                self._places[id(change)] = change, place, len(forms[place])
        self.tree = _Switching({id(statements[place]): (place, of) for place, of in forms.items()}).visit(unit)

    def has(self, change: Change) -> bool:
        """Whether a change is one of the forms."""
        return id(change) in self._places

    def choose(self, change: Change) -> bool:
        """Let the method run with a change, beside those chosen before; False where its statement has one already."""
        _, place, number = self._places[id(change)]
        if place in self.chosen:
            return False
        self.chosen[place] = number
        return True


class _Switching:
    def __init__(self, forms: dict[int, tuple[int, list[ast.stmt]]]) -> None:
        self._forms = forms

    def visit(self, node: Any) -> Any:
        """A copy of a tree of statements, with the choices in it; expressions are shared."""
        if id(node) in self._forms:
            return self._choice(node, *self._forms[id(node)])
        copied = None
        for name in ("body", "orelse"):
            inner = getattr(node, name, None)
            if isinstance(inner, list):
                copied = copied or type(node)(**dict(ast.iter_fields(node)))
                setattr(copied, name, [self.visit(each) for each in inner])
        return copied or node

    def _choice(self, statement: ast.stmt, place: int, forms: list[ast.stmt]) -> ast.stmt:
        number = ast.parse(f"_form = _chosen.get({place}, 0)").body[0]
        tests = [ast.If(_is(index), [form], []) for index, form in enumerate(forms, start=1)]
        return ast.If(ast.parse(f"{place} in _chosen", mode="eval").body, [number, *tests], [statement])


def _is(index: int) -> ast.expr:
    return ast.Compare(ast.Name("_form", ast.Load()), [ast.Eq()], [ast.Constant(index)])
