"""Numbers that don't come from the data: settings, by their names, and expressions of settings as in the source."""

from __future__ import annotations

import ast
import copy
import inspect
import math
import re
import textwrap
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any

import numpy as np

from nn_manual.arrays import Array
from nn_manual.losses import Loss
from nn_manual.optim import Optimizer, Scheduler
from nn_manual.trace.observed import Frame
from nn_manual.unroll.expressions import literal
from nn_manual.unroll.source import assigned_in
from nn_manual.unroll.syntax import COMPARED, POWER, PRODUCT, SIGN, SUM, Expression, Name, of

#: How strongly Python's operators bind, by their nodes.
LEVELS = {ast.Add: SUM, ast.Sub: SUM, ast.Mult: PRODUCT, ast.Div: PRODUCT, ast.FloorDiv: PRODUCT, ast.Pow: POWER}

#: The nodes that an expression may have, besides names, attributes and calls.
ARITHMETIC = (
    *(ast.BinOp, ast.UnaryOp, ast.Compare, ast.Constant, ast.Subscript, ast.Tuple),
    *(ast.operator, ast.unaryop, ast.cmpop, ast.expr_context),
)

#: The names in an optimizer's source of what a schedule may move, and which of Scheduled each is.
MOVABLE = {"lr": "lr", "momentum": "momentum", "beta1": "momentum"}

#: The modules whose functions may stand in such an expression.
MODULES = {"math": math, "np": np}

#: Python's functions that may stand there.
FUNCTIONS = {"abs", "float", "int", "len", "max", "min"}


class Unknown(Exception):  # noqa: N818 - says that the number itself is shown, not that something broke
    """An expression that the page can't show."""


class NamedSettings:
    """The settings that the page names, with their values, in the order in which they first appear."""

    def __init__(self, reserved: Iterable[str]) -> None:
        """`reserved` are the names of layers' settings: an optimizer's setting of such a name gets another one."""
        self.values: dict[Name, Any] = {}
        self._reserved = set(reserved)
        self._variables: set[Name] = set()
        #: Those among them that a schedule may move: each with its optimizer, and which of Scheduled it is.
        self._movable: dict[Name, tuple[Optimizer, str]] = {}

    def name(self, owner: Any, field: str, value: Any) -> Name:
        """The name of a setting. If another setting has it already, the class's name stands before it."""
        own_class = type(owner).__name__.lower()
        name = Name(f"{own_class}_{field}" if field in self._reserved and isinstance(owner, Optimizer) else field)
        while name in self._variables or (name in self.values and self.values[name] != value):
            name = Name(f"{own_class}_{name.local}" if name.local == field else f"{name.local}_")
        self.values[name] = value
        if field in MOVABLE and isinstance(owner, Optimizer):
            self._movable[name] = owner, MOVABLE[field]
        return name

    def variable(self, local: str, others: Container[str]) -> Name:
        """The name of a variable: that of no setting, and none of `others`. A number stands behind it if it must."""
        name, number = local, 2
        while name in self._reserved or name in others or Name(name) in self.values:
            name, number = f"{local}{number}", number + 1
        self._variables.add(Name(name))
        return Name(name)

    def scheduled(self, scheduler: Scheduler | None) -> dict[Name, tuple[Optimizer, str]]:
        """The settings that the schedule moves: each with its optimizer, and which of Scheduled it is."""
        moves = {"lr": scheduler is not None, "momentum": scheduler is not None and scheduler.moves_momentum}
        return {name: place for name, place in self._movable.items() if moves[place[1]]}


class Resolver(ast.NodeTransformer):
    """Replaces `self` and local variables in an expression by the names of the page. `values` has the value of each new
    name.
    """

    def __init__(
        self,
        settings: NamedSettings,
        instance: Any,
        frame: Frame | None,
        arrays: Mapping[str, tuple[Expression, Array]],
    ) -> None:
        self.settings, self.instance, self.frame, self.arrays = settings, instance, frame, arrays
        self.values: dict[str, Any] = {}
        self.texts: dict[str, Expression] = {}
        #: Names that stay as they are, as the number of the step.
        self.free: dict[str, Any] = {}

    def put(self, text: Expression, value: Any) -> ast.Name:
        """A name that stands for a text of the page."""
        name = f"piece_{len(self.texts)}_"
        self.texts[name], self.values[name] = text, value
        return ast.Name(name)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """A setting, something in a module, or a size of an array."""
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            value = getattr(self.instance, node.attr, None)
            if type(value) is int and not isinstance(self.instance, Loss):  # a size
                return ast.Constant(value)
            if type(value) in (int, float):
                return self.put(of(self.settings.name(self.instance, node.attr, value)), value)
            raise Unknown
        if isinstance(node.value, ast.Name) and node.value.id in MODULES:
            return node
        if node.attr in ("shape", "size", "ndim"):
            return ast.Attribute(self.visit(node.value), node.attr)
        raise Unknown

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """An array, a number, or a name that stays as it is."""
        if node.id in self.free:
            return self.put(of(Name(node.id)), self.free[node.id])
        if node.id in self.arrays:
            return self.put(*self.arrays[node.id])
        if self.frame is not None:
            assigned = assigned_in(self.frame, node.id)
            if assigned is not None:
                return self.visit(copy.deepcopy(assigned))  # type: ignore[no-any-return]
            value, code = self.frame.values.get(node.id), self.frame.code
            if type(value) is float and self.instance is None and node.id in code.co_varnames[: code.co_argcount]:
                return self.put(of(self.settings.name(None, node.id, value)), value)
            if type(value) in (int, float):
                return ast.Constant(self.frame.values[node.id])
        raise Unknown

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """The side that the condition chooses."""
        return self.visit(node.body if self.holds(node.test) else node.orelse)  # type: ignore[no-any-return]

    def holds(self, condition: ast.expr) -> bool:
        """Whether a condition on settings is true. Raises Unknown for a condition on anything that the page computes,
        as the number of the step.
        """
        scope = {"self": self.instance, **MODULES, **(self.frame.values if self.frame else {})}
        try:
            return bool(eval(_code(condition), scope))
        except (NameError, AttributeError, TypeError) as error:
            raise Unknown from error

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """A function of a module or of Python, or a method of the instance that returns one expression."""
        function = node.func
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            if function.value.id == "self" and not node.args:
                return self.visit(_returned(getattr(type(self.instance), function.attr)))  # type: ignore[no-any-return]
            if function.value.id in MODULES:
                return ast.Call(function, [self.visit(argument) for argument in node.args], [])
        if isinstance(function, ast.Name) and function.id in FUNCTIONS:
            return ast.Call(function, [self.visit(argument) for argument in node.args], [])
        raise Unknown

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Arithmetic."""
        if isinstance(node, ARITHMETIC):
            return super().generic_visit(node)
        raise Unknown

    def text(self, node: ast.expr) -> tuple[Expression, Any]:
        """The expression and its value. Raises Unknown if the page can't show it."""
        resolved = ast.fix_missing_locations(self.visit(copy.deepcopy(node)))
        words = ast.unparse(resolved).replace(" ** ", "**")
        try:
            value = eval(words, {**MODULES, **self.values})
        except (ArithmeticError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise Unknown from error
        parts: list[str | Name] = []
        for piece in re.split(r"(piece_\d+_)", words):
            parts += self.texts[piece].parts if piece in self.texts else [piece]
        return Expression(tuple(part for part in parts if part), _level(resolved)), value


def _level(node: ast.AST) -> int:
    if isinstance(node, ast.BinOp):
        return LEVELS.get(type(node.op), COMPARED)
    return SIGN if isinstance(node, ast.UnaryOp) else COMPARED if isinstance(node, ast.Compare) else 7


def _code(node: ast.expr) -> Any:
    return compile(ast.fix_missing_locations(ast.Expression(node)), "<condition>", "eval")


def _returned(function: Callable[..., Any]) -> ast.expr:
    """The expression that a method returns. Raises Unknown if its last statement isn't a return."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(definition, ast.FunctionDef)
    if not isinstance(definition.body[-1], ast.Return) or definition.body[-1].value is None:
        raise Unknown
    return definition.body[-1].value


def number(value: Any, node: ast.expr | None, resolver: Resolver) -> Expression:
    """A number as the source has it, where that can be shown and is the number; else the number."""
    if node is not None and isinstance(value, int | float) and not isinstance(node, ast.Constant):
        try:
            text, found = resolver.text(node)
        except (Unknown, OSError, SyntaxError):
            return literal(value)
        if type(found) is type(value) and found == value:
            return text
    return literal(value)
