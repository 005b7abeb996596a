"""The numbers in an optimizer's formula, as expressions of its settings."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from typing import Any

from nn_manual.errors import ConfigError
from nn_manual.optim import Optimizer
from nn_manual.unroll.constants import NamedSettings, Resolver, Unknown
from nn_manual.unroll.syntax import Expression, Name, call, of


class Coefficients:
    """The numbers in an optimizer's formula, as expressions of lr, the settings and the number of the step, in `texts`.
    `before` are assignments that come first, name and expression. Raises ConfigError if the source is too complicated.
    """

    def __init__(self, member: Optimizer, settings: NamedSettings) -> None:
        self.before: list[tuple[Name, Expression]] = []
        #: The variables that may be NumPy's numbers.
        self._numpys: set[Name] = set()
        self.texts: dict[str, Expression] = {}
        try:
            self._read(member, settings)
        except (Unknown, OSError, SyntaxError, AssertionError):
            raise ConfigError(
                f"unroll: {type(member).__name__}.coefficients is too complicated for a script. It may assign and "
                "return arithmetic of settings and the step, with functions of math and np, and branch on settings"
            ) from None

    def _read(self, member: Optimizer, settings: NamedSettings) -> None:
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(type(member).coefficients))).body
        assert isinstance(definition, ast.FunctionDef)
        step = 3
        resolver = Resolver(settings, member, None, {})
        resolver.free = {definition.args.args[1].arg: step}
        expected = member.coefficients(step)
        for statement in _chosen(definition.body, resolver):
            if isinstance(statement, ast.Assign):
                (target,) = statement.targets
                self._assign(target, statement.value, resolver, settings, member)
            elif isinstance(statement, ast.Return) and isinstance(statement.value, ast.Dict):
                for key, node in zip(statement.value.keys, statement.value.values, strict=True):
                    assert isinstance(key, ast.Constant)
                    text, value = resolver.text(node)
                    if self._is_numpys(text, node):  # float64 is stronger than the parameters' dtype, float isn't
                        text = call(("float",), [text.parts])
                    self._add(str(key.value), text, is_right=value == expected[str(key.value)])
                break
            else:
                raise Unknown
        if self.texts.keys() != expected.keys():
            raise Unknown

    def _is_numpys(self, text: Expression, node: ast.expr) -> bool:
        """Whether an expression may be NumPy's number, and not Python's."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "float":
            return False
        return bool(text.names & self._numpys) or "np." in str(text)

    def _add(self, name: str, text: Expression, *, is_right: bool) -> None:
        if not is_right:
            raise Unknown
        if len(text.names) > 3:  # too long for the formula
            self.before.append((Name(name), text))
            text = of(Name(name))
        self.texts[name] = text

    def _assign(
        self, target: ast.expr, node: ast.expr, resolver: Resolver, settings: NamedSettings, member: Any
    ) -> None:
        if isinstance(target, ast.Tuple) and isinstance(node, ast.Attribute):  # beta1, beta2 = self.betas
            for name, value in zip(target.elts, getattr(member, node.attr), strict=True):
                assert isinstance(name, ast.Name)
                resolver.arrays = {**resolver.arrays, name.id: (of(settings.name(member, name.id, value)), value)}
            return
        assert isinstance(target, ast.Name)
        text, value = resolver.text(node)
        if self._is_numpys(text, node):
            self._numpys.add(Name(target.id))
        self.before.append((Name(target.id), text))
        resolver.arrays = {**resolver.arrays, target.id: (of(Name(target.id)), value)}


def _chosen(body: list[ast.stmt], resolver: Resolver) -> Iterator[ast.stmt]:
    """The statements that run, without docstrings: of an `if` on settings, those of the side that it chooses."""
    for statement in body:
        if isinstance(statement, ast.If):
            side = statement.body if resolver.holds(statement.test) else statement.orelse
            yield from _chosen(side, resolver)
        elif not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
            yield statement
