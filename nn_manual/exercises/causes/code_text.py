"""The code of the package's own methods as a text that can be changed: each method is a unit."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import CodeType, FrameType
from typing import Any

import numpy as np

from nn_manual.defaults import is_of_package
from nn_manual.exercises.causes.candidates import Candidate, Text, local_changes, of_views, singles
from nn_manual.exercises.causes.code_statements import (
    computing,
    ending,
    known_at,
    makes_views,
    of_conditions,
    of_loops,
    source_of,
    swapped_gates,
    swapped_lines,
)
from nn_manual.exercises.causes.plain_code import HELPERS, plain
from nn_manual.exercises.causes.switched_code import Switched
from nn_manual.exercises.kinds.exercise import Case, Exercise, Results
from nn_manual.optim import Optimizer, Scheduler

#: Methods that change no values: they only refuse bad input, or say how large something is.
GUARDS = ("output_shape", "longest_sum", "num_products", "domain", "parameter_shapes", "examples")


class CodeText(Text):
    """The methods that an exercise takes out, the package's methods that they call, and forward with its own."""

    def __init__(self, exercise: Exercise, cases: Sequence[Case]) -> None:
        super().__init__()
        self.cases, self._owner = cases, exercise.owner
        self._functions: dict[str, Callable[..., Any]] = {}
        self._trees: dict[str, ast.FunctionDef] = {}
        self._num_own = self._take_all(exercise)
        self._names = list(self._trees)
        self._prepared: dict[int, Callable[[bool], Results]] = {}
        self._stale: set[int] = set()
        self._switched: dict[int, Switched] = {}
        self.units: list[ast.AST] = [*self._trees.values()]
        self.changed_class: Any = self._changeable()
        self._plain = {
            index: self._compiled(index, unit)
            for index, unit in enumerate(self.units)
            if ast.dump(unit) != ast.dump(source_of(self._functions[self._names[index]]))
        }

    def _take_all(self, exercise: Exercise) -> int:
        """Take the functions. Returns how many of them, the first ones, aren't forward's."""
        for name in (*exercise.taken_out, "coefficients"):
            self._take(name)
        number = len(self._trees)
        self._take("one_way" if "one_way_backward" in exercise.taken_out else "forward")
        return number

    def _changeable(self) -> Any:
        """One class for all changes: its methods are put in and taken out again."""
        return type(self._owner.__name__, (self._owner,), {})

    def _take(self, name: str) -> None:
        function = inspect.getattr_static(self._owner, name, None)
        if not inspect.isfunction(function) or name in self._trees or name in GUARDS or name.startswith("check_"):
            return
        if not is_of_package(function) or function.__module__ == "nn_manual.layers.base":
            return
        tree = source_of(function)
        self._functions[name], self._trees[name] = function, plain(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("self", "super()"):
                self._take(node.attr)

    def of_forward(self, candidate: Candidate) -> bool:
        """Whether a change stands in forward, or in what forward alone calls."""
        return any(index >= self._num_own for index, _ in candidate.edits)

    def run(self, changed: Mapping[int, ast.AST], number: int) -> Results:
        """What the class with the changed methods computes in a case."""
        return self._run({**self._plain, **self._all_compiled(changed)}, number)

    def _run(self, methods: Mapping[int, Callable[..., Any]], number: int) -> Results:
        """A run of the class with these methods."""
        with self._with(methods) as own:
            case = self.cases[number]
            if case.prepare is None:
                return case.run(own)
            if number not in self._prepared:
                self._prepared[number] = case.prepare(own)
                self._stale.add(number)
            changed = (index for index, method in methods.items() if self._plain.get(index) is not method)
            of_forward = any(index >= self._num_own for index in changed)
            forward = of_forward or number in self._stale
            (self._stale.add if of_forward else self._stale.discard)(number)
            return self._prepared[number](forward)

    @contextmanager
    def _with(self, methods: Mapping[int, Callable[..., Any]]) -> Iterator[type]:
        """The class, which has these methods as long."""
        for index, method in methods.items():
            setattr(self.changed_class, self._names[index], method)
        try:
            yield self.changed_class
        finally:
            for index in methods:
                delattr(self.changed_class, self._names[index])

    def prepare(self, candidates: Sequence[Candidate]) -> None:
        """Compile each method once, with all changed forms of each of its statements: a number says which one runs."""
        self._switched = {}
        for index in {index for each in candidates for index, _ in each.edits}:
            changes = {id(change): change for each in candidates for at, change in each.edits if at == index}
            try:
                switched = Switched(self.units[index], list(changes.values()))
                switched.method = self._compiled(index, switched.tree, switched.chosen)
            except (SyntaxError, ValueError, TypeError):
                continue  # one of the forms is no code: each change is then compiled by itself
            self._switched[index] = switched

    def results(self, candidate: Candidate, number: int) -> Results:
        """As every text, in less time for what is prepared."""
        return self._run(self._methods_of(candidate), number)

    def having(self, candidate: Candidate) -> AbstractContextManager[type]:
        """The class, which has the changed methods as long."""
        return self._with(self._methods_of(candidate))

    def _methods_of(self, candidate: Candidate) -> dict[int, Callable[..., Any]]:
        methods, others = dict(self._plain), self._switched
        is_prepared = all(index in others and others[index].has(change) for index, change in candidate.edits)
        for index, _ in candidate.edits if is_prepared else ():
            others[index].chosen.clear()
            methods[index] = others[index].method
        if is_prepared and all(others[index].choose(change) for index, change in candidate.edits):
            return methods
        return {**self._plain, **self._all_compiled(self.changed(candidate))}

    def _all_compiled(self, units: Mapping[int, ast.AST]) -> dict[int, Callable[..., Any]]:
        return {index: self._compiled(index, unit) for index, unit in units.items()}

    def candidates(self, number: int) -> Iterator[Candidate]:
        """The single changes of each method that a case runs, those that are taken out first."""
        seen = self._observed(number)
        for index, unit in enumerate(self.units):
            names = seen.get(self._names[index])
            if names is None or not isinstance(unit, ast.FunctionDef):
                continue
            defined: dict[str, ast.expr] = {}
            for statement in computing(unit.body):
                known = known_at(unit, statement, names)
                sizes = [f"len({name})" for name in ("grad_output", "prediction") if name in known]
                if isinstance(statement, ast.Assign) and makes_views(statement):
                    yield from of_views(index, statement, known)
                else:
                    yield from singles(index, statement, known, sizes)
                    yield from local_changes(index, statement, defined)
                if isinstance(statement, ast.Assign):
                    defined[ast.unparse(statement.targets[0]).removesuffix("[...]")] = statement.value
            yield from of_conditions(index, unit, self._owner)
            yield from of_loops(index, unit)
            yield from swapped_lines(index, unit)
            yield from swapped_gates(index, unit, getattr(self._owner, "NUM_GATES", 0))

    def _observed(self, number: int) -> dict[str, dict[str, Any]]:
        """The arrays that each method has in the end."""
        codes = {index: method.__code__ for index, method in self._plain.items()}
        by_code: dict[CodeType, str] = {}
        for index, name in enumerate(self._names):
            by_code[codes.get(index, self._functions[name].__code__)] = name
        seen: dict[str, dict[str, Any]] = {}

        def watch(frame: FrameType, event: str, argument: Any) -> None:  # noqa: ARG001 - asked for
            if event == "return" and frame.f_code in by_code:
                seen[by_code[frame.f_code]] = _arrays(frame.f_locals)

        before = sys.getprofile()
        sys.setprofile(watch)
        try:
            self.run({}, number)
        finally:
            sys.setprofile(before)
        return seen

    def _compiled(self, index: int, unit: ast.AST, chosen: dict[int, int] | None = None) -> Callable[..., Any]:
        """The method that a tree defines, in the place of the package's."""
        function = self._functions[self._names[index]]
        base = _defining(self._owner, function) if isinstance(self._owner, type) else None
        maker = ast.parse("def _maker(__class__):\n    return 0")
        definition: Any = maker.body[0]
        definition.body = [ending(unit), ast.Return(ast.Name(function.__name__, ast.Load()))]
        namespace = {**HELPERS, **function.__globals__, "_chosen": chosen}
        exec(compile(ast.fix_missing_locations(maker), f"<{function.__qualname__}>", "exec"), namespace)
        made: Callable[..., Any] = namespace["_maker"](base)
        return made


def _arrays(values: Mapping[str, Any]) -> dict[str, Any]:
    """The arrays among a method's variables, and those in what was saved."""
    saved = values.get("saved")
    fields: dict[str, Any] = saved._asdict() if isinstance(saved, tuple) and hasattr(saved, "_asdict") else {}
    every = {**values, **{f"saved.{name}": value for name, value in fields.items()}}
    if isinstance(values.get("coefficients"), dict):
        every |= {f"coefficients['{name}']": float(value) for name, value in values["coefficients"].items()}
    found = {name: value for name, value in every.items() if isinstance(value, np.ndarray | float)}
    if isinstance(own := values.get("self"), Scheduler | Optimizer):
        settings = {name: value for name, value in vars(own).items() if type(value) in (int, float)}
        found |= {f"self.{name}": value for name, value in settings.items()}
    return found


def _defining(owner: type, function: Callable[..., Any]) -> type:
    return next((base for base in owner.__mro__ if function in vars(base).values()), owner)
