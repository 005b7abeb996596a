"""The formulas of a docstring as a text that can be changed: each line is a unit."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from types import CodeType
from typing import Any

import numpy as np

from nn_manual.defaults import is_of_package
from nn_manual.exercises.causes.candidates import Candidate, Names, Text, forward_of_gradient, local_changes, singles
from nn_manual.exercises.causes.changes_of_reductions import FUNCTIONS
from nn_manual.exercises.causes.changes_of_steps import OLD, of_steps
from nn_manual.exercises.causes.wrong_forms import WRONG_FORMS
from nn_manual.exercises.kinds.exercise import Case, Exercise, Results
from nn_manual.exercises.kinds.formulas import Formula, formulas
from nn_manual.ops import Operation
from nn_manual.optim import Optimizer

#: What forward computes.
OUTPUTS = {"output", "answer", "loss"}
#: What a formula takes for the size that it divides by, of the first of its names.
SIZES = ("{}.size", "{}.shape[0]", "{}.shape[-1]", "({0}.size // {0}.shape[1])", "({0}.size // {0}.shape[-1])")
#: The same in operations, whose answer may be smaller.
OF_REDUCTIONS = ("({}.size // answer.size)", "answer.size", "{}.ndim")
#: What the formulas of losses call the sizes of a batch.
COUNTS = ("N", "rows", "classes", "batch")


class FormulaText(Text):
    """The formulas in the docstring of an exercise's owner; no lines where it has none that are Python."""

    units: list[ast.Assign]

    def __init__(self, exercise: Exercise, cases: Sequence[Case]) -> None:
        super().__init__()
        self.cases, self._owner = cases, exercise.owner
        self.lines = exercise.formulas() or _lines(exercise.owner)
        self.units = [_assignment(line) for line in self.lines]
        self._before: dict[int, list[dict[str, Any]]] = {}
        self._codes: dict[int, tuple[ast.AST, CodeType]] = {}
        self._bases: dict[int, dict[str, Any]] = {}
        self._held: dict[int, frozenset[int]] = {}
        self._read: set[str] = set()
        self._functions = [name for name in FUNCTIONS if any(f"{name}(" in line.expression for line in self.lines)]
        self._forward = self._lines_of(OUTPUTS)
        for unit in self.units:
            self._read |= {node.id for node in ast.walk(unit) if isinstance(node, ast.Name)}

    def of_forward(self, candidate: Candidate) -> bool:
        """Whether the output is computed from a line."""
        return any(index in self._forward for index, _ in candidate.edits)

    def run(self, changed: Mapping[int, ast.AST], number: int) -> Results:
        """What the lines make of a case."""
        base = self._base(number)
        if number not in self._before:
            self._before[number] = [{}]
            for index in range(len(self.lines)):
                results = dict(self._before[number][-1])
                self._pass({}, number, base, results, [index])
                self._before[number].append(results)
        first = min(changed, default=len(self.lines))
        results = dict(self._before[number][first])
        self._pass(changed, number, base, results, range(first, len(self.lines)))
        return results

    def candidates(self, number: int) -> Iterator[Candidate]:
        """The single changes of all lines, with what is known in a case."""
        self.run({}, number)
        base = self._base(number)
        for index, unit in enumerate(self.units):
            names = self._names(base, self._before[number][index])
            yield from singles(index, unit, names, self._sizes(number), self._functions)
            before = zip(self.lines[:index], self.units[:index], strict=True)
            defined = {line.name: own.value for line, own in before}
            yield from local_changes(index, unit, defined)
            for output in OUTPUTS & defined.keys():
                yield from forward_of_gradient(index, unit, defined[output])

    def shows(self, candidate: Candidate, number: int) -> bool:
        """Whether one of the changed lines holds in a case."""
        return any(index in self._holding(number) for index, _ in candidate.edits)

    def leads_to(self, wrong: str) -> set[int]:
        """The lines from which a tensor is computed."""
        return self._lines_of({wrong})

    def _lines_of(self, needed: set[str]) -> set[int]:
        found = set()
        for index in reversed(range(len(self.lines))):
            if self.lines[index].name in needed:
                found.add(index)
                needed = needed | {node.id for node in ast.walk(self.units[index]) if isinstance(node, ast.Name)}
        return found

    def _pass(
        self,
        changed: Mapping[int, ast.AST],
        number: int,
        base: dict[str, Any],
        results: dict[str, Any],
        only: Sequence[int],
    ) -> None:
        """Evaluate the lines in their order."""
        for index in only:
            if index in self._holding(number):
                exec(self._code(changed.get(index, self.units[index])), base, results)

    def _holding(self, number: int) -> frozenset[int]:
        """The lines that apply in a case."""
        if number not in self._held:
            case = self.cases[number]
            holding = (index for index, line in enumerate(self.lines) if line.holds(case.instance, case.conditions))
            self._held[number] = frozenset(holding)
        return self._held[number]

    def _code(self, unit: ast.AST) -> CodeType:
        kept = self._codes.get(id(unit))
        if kept is None:
            module = ast.Module([unit], [])  # type: ignore[list-item]
            kept = self._codes[id(unit)] = unit, compile(ast.fix_missing_locations(module), "<formula>", "exec")
        return kept[1]

    def _base(self, number: int) -> dict[str, Any]:
        if number not in self._bases:
            case = self.cases[number]
            self._bases[number] = {**vars(np), **WRONG_FORMS, **vars(case.instance), **case.known}
        return self._bases[number]

    def _names(self, base: dict[str, Any], results: dict[str, Any]) -> Names:
        """The arrays that a line may read: those that some line reads, and what the lines before have computed."""
        names = (*sorted(self._read), *COUNTS)
        known = {name: base[name] for name in names if isinstance(base.get(name), np.ndarray | float | int)}
        return {**known, **{name: np.asarray(value) for name, value in results.items()}}

    def _sizes(self, number: int) -> list[str]:
        known = self.cases[number].known
        arrays = [name for name, value in known.items() if isinstance(value, np.ndarray)]
        first = next((name for name in ("input", *arrays) if name in known), None)
        own = [name for name in COUNTS if isinstance(known.get(name), int)]
        sizes = (*SIZES, *(OF_REDUCTIONS if isinstance(self._owner, Operation) else ()))
        return own if own or first is None else [size.format(first) for size in sizes]


class UpdateText(FormulaText):
    """The formulas of an optimizer: the lines make one step after the other, from what each step starts from.

    A decay of 0 is left out, as by code that asks first; or it is not, and makes of a parameter that is no number a
    gradient that is none.
    """

    def __init__(self, exercise: Exercise, cases: Sequence[Case], without_decay: bool) -> None:
        super().__init__(exercise, cases)
        self._without_decay = without_decay
        self._steps: dict[int, list[dict[str, Any]]] = {}

    def run(self, changed: Mapping[int, ast.AST], number: int) -> Results:
        """The vectors and the parameters after each step."""
        base, found, state = self._base(number), dict[str, Any](), dict[str, Any]()
        for count, step in enumerate(self._recorded(number), start=1):
            results = {**step, **state}
            results |= {f"{OLD}{name}": results[name] for name in step if name not in ("grad", "lr", "step")}
            self._pass(changed, number, base, results, range(len(self.lines)))
            vectors = ((name, start) for name, start in step.items() if name not in ("grad", "lr", "step"))
            # A vector whose elements are all alike is one number in a formula.
            state = {name: np.broadcast_to(results[name], start.shape) for name, start in vectors}
            for name, value in state.items():
                found[f"{'parameters' if name == 'param' else name} after step {count}"] = value
        return found

    def candidates(self, number: int) -> Iterator[Candidate]:
        """The single changes of all lines, with what is known in the first step."""
        results = dict(self._recorded(number)[0])
        names = {name: value for name, value in results.items() if name != "step"}
        base = self._base(number)
        settings = {name: base[name] for name in sorted(self._read) if type(base.get(name)) is float}
        for index, unit in enumerate(self.units):
            yield from singles(index, unit, {**settings, **names}, [])
            self._pass({}, number, base, results, [index])
            if self.lines[index].name in results:
                names[self.lines[index].name] = results[self.lines[index].name]
        yield from of_steps(self.units, self.cases[number].instance.vectors)

    def _holding(self, number: int) -> frozenset[int]:
        """All lines but those with a vector that the settings don't need, or a decay of 0."""
        if number not in self._held:
            own = self._recorded(number)[0]
            absent = {name for case in self.cases for name in case.instance.vectors if name not in own}
            if self._without_decay and not self._base(number).get("weight_decay"):
                absent.add("weight_decay")
            names = ({node.id for node in ast.walk(unit) if isinstance(node, ast.Name)} for unit in self.units)
            self._held[number] = frozenset(index for index, read in enumerate(names) if not read & absent)
        return self._held[number]

    def leads_to(self, wrong: str) -> set[int]:  # noqa: ARG002 - as every text is asked
        """All lines: each step starts from what the last one left."""
        return {*range(len(self.lines))}

    def _base(self, number: int) -> dict[str, Any]:
        base = super()._base(number)
        if isinstance(betas := base.get("betas"), tuple):
            base["beta1"], base["beta2"] = betas
        return base

    def _recorded(self, number: int) -> list[dict[str, Any]]:
        """What each step starts from: its gradient, lr and number; and in the first step the vectors and parameters."""
        if number not in self._steps:
            steps: list[dict[str, Any]] = []
            move = self._owner.move

            def recording(own: Optimizer, param: Any, grad: Any, vectors: Any, coefficients: Any) -> None:
                state = {name: vector.copy() for name, vector in vectors.items()}
                start = {"grad": grad.copy(), "lr": own.lr, "step": len(steps) + 1, "param": param.copy()}
                steps.append({**start, **state})
                move(own, param, grad, vectors, coefficients)

            self.cases[number].run(type(self._owner.__name__, (self._owner,), {"move": recording}))
            self._steps[number] = steps
        return self._steps[number]


def _lines(documented: Any) -> list[Formula]:
    """The formulas of a class, or of the first of its bases that has any as Python."""
    for base in getattr(documented, "__mro__", (documented,)):
        if is_of_package(base) or base is documented:
            try:
                lines = list(formulas(base))
                for line in lines:
                    _assignment(line)
            except (ValueError, SyntaxError):
                continue
            if any(line.name.startswith("grad_") or line.name in ("param", "lr") for line in lines):
                return lines
    return []


def _assignment(line: Formula) -> ast.Assign:
    return ast.Assign([ast.Name(line.name, ast.Store())], ast.parse(line.expression, mode="eval").body, lineno=0)
