"""The numbers in an optimizer's formula, as expressions of its settings."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from pathlib import Path

from nn_manual.errors import ConfigError
from nn_manual.optim import Optimizer
from nn_manual.trace.trace import SourcePlace
from nn_manual.unroll.constants import NamedSettings, Resolver, Unknown
from nn_manual.unroll.syntax import Expression, Name, call, of

#: The names of what a step is given and returns, besides the optimizer's vectors.
GIVEN = ("input", "target", "param", "grad", "buffer", "counters", "step", "batch", "loss")


class Coefficients:
    """The numbers in an optimizer's formula, as expressions of lr, the settings and the number of the step, in `texts`.
    `before` are assignments that come first, name and expression. Raises ConfigError, with the line, if the source is
    too complicated.
    """

    def __init__(self, member: Optimizer, settings: NamedSettings) -> None:
        self.before: list[tuple[Name, Expression]] = []
        #: The variables that may be NumPy's numbers.
        self._numpys: set[Name] = set()
        self.texts: dict[str, Expression] = {}
        self._settings, self._member = settings, member
        self._taken = {*GIVEN, *member.setting_names(), *member.vector_names()}
        #: The line that is read, counted from the function's first one.
        self._line = 1
        try:
            self._read()
        except (Unknown, OSError, SyntaxError, AssertionError):
            code = type(member).coefficients.__code__
            file, line = Path(code.co_filename).name, code.co_firstlineno - 1 + self._line
            raise ConfigError(
                f"unroll: {SourcePlace(type(member).__name__, 'coefficients', file, line)}: too complicated for a "
                "script. Each line may assign one variable, or return the numbers, by arithmetic of settings and the "
                "step, with functions of math and np. It may branch on settings, but not on the step"
            ) from None

    def _read(self) -> None:
        member = self._member
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(type(member).coefficients))).body
        assert isinstance(definition, ast.FunctionDef)
        self._locals = {node.id for node in ast.walk(definition) if isinstance(node, ast.Name)}
        step = 3
        resolver = Resolver(self._settings, member, None, {})
        resolver.free = {definition.args.args[1].arg: step}
        expected = member.coefficients(step)
        for statement in self._chosen(definition.body, resolver):
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                self._assign(statement.targets[0], statement.value, resolver)
            elif isinstance(statement, ast.Return) and isinstance(statement.value, ast.Dict):
                for key, node in zip(statement.value.keys, statement.value.values, strict=True):
                    self._line = node.lineno
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

    def _add(self, key: str, text: Expression, *, is_right: bool) -> None:
        if not is_right:
            raise Unknown
        if len(text.names) > 3:  # too long for the formula
            name = self._settings.variable(key, self._taken | self._locals)
            self.before.append((name, text))
            text = of(name)
        self.texts[key] = text

    def _assign(self, target: ast.expr, node: ast.expr, resolver: Resolver) -> None:
        if isinstance(target, ast.Tuple) and isinstance(node, ast.Attribute):  # beta1, beta2 = self.betas
            for name, value in zip(target.elts, getattr(self._member, node.attr), strict=True):
                assert isinstance(name, ast.Name)
                text = of(self._settings.name(self._member, name.id, value))
                resolver.arrays = {**resolver.arrays, name.id: (text, value)}
            return
        assert isinstance(target, ast.Name)
        text, value = resolver.text(node)
        if not self._is_setting(text):
            variable = self._settings.variable(target.id, self._taken | self._locals - {target.id})
            if self._is_numpys(text, node):
                self._numpys.add(variable)
            self.before.append((variable, text))
            text = of(variable)
        resolver.arrays = {**resolver.arrays, target.id: (text, value)}

    def _is_setting(self, text: Expression) -> bool:
        return text.parts[0] in self._settings.values and len(text.parts) == 1

    def _chosen(self, body: list[ast.stmt], resolver: Resolver) -> Iterator[ast.stmt]:
        """The statements that run, without docstrings: of an `if` on settings, those of the side that it chooses."""
        for statement in body:
            self._line = statement.lineno
            if isinstance(statement, ast.If):
                side = statement.body if resolver.holds(statement.test) else statement.orelse
                yield from self._chosen(side, resolver)
            elif not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
                yield statement
