"""The code of the package's own methods as a text that can be changed: each method is a unit."""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import CodeType, FrameType
from typing import Any

import numpy as np

from nn_manual.exercises.candidates import Candidate, Text, singles
from nn_manual.exercises.changes import LEFT_OUT, TURNED, Change
from nn_manual.exercises.exercise import Case, Exercise, Results
from nn_manual.exercises.plain_code import HELPERS, plain

#: Methods that change no values: they only refuse bad input, or say how large something is.
GUARDS = ("output_shape", "longest_sum", "num_products", "domain", "parameter_shapes", "examples")


class CodeText(Text):
    """The methods that an exercise takes out, the package's methods that they call, and forward with its own."""

    def __init__(self, exercise: Exercise, cases: Sequence[Case]) -> None:
        super().__init__()
        self.cases, self._owner = cases, exercise.owner
        self._functions: dict[str, Callable[..., Any]] = {}
        self._trees: dict[str, ast.FunctionDef] = {}
        for name in (*exercise.taken_out, "backward", "derivative", "coefficients"):
            self._take(name)
        self._num_own = len(self._trees)
        self._take("forward")
        self._names = list(self._trees)
        self.units: list[ast.AST] = [*self._trees.values()]
        # One class for all changes: its methods are put in and taken out again.
        self._changed = type(self._owner.__name__, (self._owner,), {})
        self._plain = {
            index: self._compiled(index, unit)
            for index, unit in enumerate(self.units)
            if ast.dump(unit) != ast.dump(_source(self._functions[self._names[index]]))
        }

    def _take(self, name: str) -> None:
        function = inspect.getattr_static(self._owner, name, None)
        if not inspect.isfunction(function) or name in self._trees or name in GUARDS or name.startswith("check_"):
            return
        if not function.__module__.startswith("nn_manual.") or function.__module__ == "nn_manual.layers.base":
            return
        tree = _source(function)
        self._functions[name], self._trees[name] = function, plain(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("self", "super()"):
                self._take(node.attr)

    def of_forward(self, candidate: Candidate) -> bool:
        """Whether a change stands in forward, or in what forward alone calls."""
        return any(index >= self._num_own for index, _ in candidate.edits)

    def run(self, changed: Mapping[int, ast.AST], number: int) -> Results:
        """What the class with the changed methods computes in a case."""
        methods = {**self._plain, **{index: self._compiled(index, unit) for index, unit in changed.items()}}
        for index, method in methods.items():
            setattr(self._changed, self._names[index], method)
        try:
            return self.cases[number].run(self._changed)
        finally:
            for index in methods:
                delattr(self._changed, self._names[index])

    def candidates(self, number: int) -> Iterator[Candidate]:
        """The single changes of each method that a case runs, those that are taken out first."""
        seen = self._observed(number)
        for index, unit in enumerate(self.units):
            names = seen.get(self._names[index])
            if names is None or not isinstance(unit, ast.FunctionDef):
                continue
            for statement in _statements(unit.body):
                known = _known_at(unit, statement, names)
                sizes = [f"len({name})" for name in list(known)[-1:]]
                yield from singles(index, statement, known, sizes)
            yield from _swapped(index, unit)

    def _observed(self, number: int) -> dict[str, dict[str, Any]]:
        """The arrays that each method has in the end."""
        codes = {index: method.__code__ for index, method in self._plain.items()}
        by_code: dict[CodeType, str] = {}
        for index, name in enumerate(self._names):
            by_code[codes.get(index, self._functions[name].__code__)] = name
        seen: dict[str, dict[str, Any]] = {}

        def watch(frame: FrameType, event: str, argument: Any) -> None:  # noqa: ARG001 - asked for
            if event == "return" and frame.f_code in by_code:
                arrays = {name: value for name, value in frame.f_locals.items() if isinstance(value, np.ndarray | float)}
                seen[by_code[frame.f_code]] = arrays

        before = sys.getprofile()
        sys.setprofile(watch)
        try:
            self.run({}, number)
        finally:
            sys.setprofile(before)
        return seen

    def _compiled(self, index: int, unit: ast.AST) -> Callable[..., Any]:
        """The method that a tree defines, in the place of the package's."""
        function = self._functions[self._names[index]]
        maker = ast.parse("def _maker(__class__):\n    return 0")
        definition: Any = maker.body[0]
        definition.body = [unit, ast.Return(ast.Name(function.__name__, ast.Load()))]
        namespace = _namespace(function)
        exec(compile(ast.fix_missing_locations(maker), f"<{function.__qualname__}>", "exec"), namespace)
        made: Callable[..., Any] = namespace["_maker"](_defining(self._owner, function))
        return made


def _namespace(function: Callable[..., Any]) -> dict[str, Any]:
    return {**HELPERS, **function.__globals__}


def _defining(owner: type, function: Callable[..., Any]) -> type:
    return next((base for base in owner.__mro__ if function in vars(base).values()), owner)


@functools.cache
def _source(function: Callable[..., Any]) -> ast.FunctionDef:
    """The tree of a method, without its docstring, decorators and annotations."""
    tree: Any = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    if isinstance(tree.body[0], ast.Expr) and isinstance(tree.body[0].value, ast.Constant):
        tree.body = tree.body[1:] or [ast.Pass()]
    tree.decorator_list, tree.returns = [], None
    for argument in (*tree.args.args, *tree.args.kwonlyargs):
        argument.annotation = None
    return tree


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that compute, but those in a `while`, which may not end when changed."""
    for statement in body:
        match statement:
            case ast.If(body=inner, orelse=other) if not all(isinstance(each, ast.Raise) for each in inner):
                yield from _statements(inner)
                yield from _statements(other)
            case ast.For(body=inner):
                yield from _statements(inner)
            case ast.Assign() | ast.AugAssign() | ast.AnnAssign() | ast.Return():
                yield statement
            case ast.Expr(ast.Call(ast.Attribute(ast.Name("self"), name))) if name.startswith("check"):
                continue
            case ast.Expr(ast.Call()):
                yield statement


def _known_at(unit: ast.FunctionDef, statement: ast.stmt, names: Mapping[str, Any]) -> dict[str, Any]:
    """The arrays that have a value before a statement."""
    stored = {
        node.id
        for node in ast.walk(unit)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.lineno < statement.lineno
    }
    arguments = {argument.arg for argument in unit.args.args}
    return {name: value for name, value in names.items() if name in stored | arguments}


def _swapped(index: int, unit: ast.FunctionDef) -> Iterator[Candidate]:
    """Two lines one after the other, the later one first; and a line that only changes something left out."""
    for node in ast.walk(unit):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        for place, (first, second) in enumerate(zip(body, body[1:], strict=False)):
            if isinstance(first, ast.Assign | ast.AugAssign) and isinstance(second, ast.Assign | ast.AugAssign):
                swapped = [*body[:place], second, first, *body[place + 2 :]]
                wrong: Any = type(node)(**{**dict(ast.iter_fields(node)), "body": swapped})
                words = f"with `{ast.unparse(second)}` before `{ast.unparse(first)}`"
                yield Candidate(((index, Change(node, wrong, words, TURNED)),), ("",), "", TURNED)
        for statement in body:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
                change = Change(statement, ast.Pass(), f"without `{ast.unparse(statement)}`", LEFT_OUT)
                yield Candidate(((index, change),), ("",), "", LEFT_OUT)
