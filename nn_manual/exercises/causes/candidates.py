"""A text of the right formulas, in units that can be changed, and the changes of each unit."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from nn_manual.exercises.causes.change import ADDED, LEFT_OUT, ONLY_ONCE, TURNED, Change, instead, part, replaced, text
from nn_manual.exercises.causes.changes import changes_of, changes_of_views
from nn_manual.exercises.kinds.exercise import Results

#: The arrays that are known somewhere by their names, each with its value, or None where that isn't known.
Names: TypeAlias = Mapping[str, Any]


class Candidate(NamedTuple):
    """One change or several, each in a unit of the text. `lines` are those in which they stand, and `name` is what the
    first of these computes. `rank` is the lower the likelier it is. `reason` has the exercise's own words for it.
    """

    edits: tuple[tuple[int, Change], ...]
    lines: tuple[str, ...]
    name: str
    rank: int
    reason: str = ""

    def beside(self, other: Candidate) -> Candidate:
        """Both changes. The other one's place may be inside of what this one keeps."""
        edits, lines = (*self.edits, *other.edits), (*self.lines, *other.lines)
        return Candidate(edits, lines, self.name, self.rank + other.rank)


class Source(ABC):
    """What wrong code computes."""

    @abstractmethod
    def results(self, candidate: Candidate, number: int) -> Results:
        """What the right code with these changes computes in a case. Raises what that code raises."""


class Text(Source):
    """The right formulas as syntax trees, the `units`."""

    units: Sequence[ast.AST]

    def __init__(self) -> None:
        self._made: dict[tuple[int, int], tuple[Change, ast.AST]] = {}

    @abstractmethod
    def of_forward(self, candidate: Candidate) -> bool:
        """Whether a change stands where forward computes the output: there the reader's code is ours."""

    def shows(self, candidate: Candidate, number: int) -> bool:  # noqa: ARG002 - some lines hold in some cases only
        """Whether a change can show in a case."""
        return True

    def leads_to(self, wrong: str) -> set[int]:  # noqa: ARG002 - by default, any may
        """The units from which a tensor may be computed."""
        return {*range(len(self.units))}

    @abstractmethod
    def run(self, changed: Mapping[int, ast.AST], number: int) -> Results:
        """What the text computes in a case, with other units in the place of some. Raises what the text raises."""

    @abstractmethod
    def candidates(self, number: int) -> Iterator[Candidate]:
        """The single changes that can show in a case."""

    def prepare(self, candidates: Sequence[Candidate]) -> None:
        """Do what can be done for many candidates at once."""

    def results(self, candidate: Candidate, number: int) -> Results:
        """What the text with these changes computes in a case."""
        return self.run(self.changed(candidate), number)

    def changed(self, candidate: Candidate) -> dict[int, ast.AST]:
        """The changed units."""
        units: dict[int, ast.AST] = {}
        for index, change in candidate.edits:
            if index in units:
                units[index] = replaced(units[index], change.node, change.wrong)
                continue
            key = index, id(change)
            if key not in self._made:
                self._made[key] = change, replaced(self.units[index], change.node, change.wrong)
            units[index] = self._made[key][1]
        return units


def singles(
    unit: int, statement: ast.stmt, names: Names, sizes: Sequence[str], functions: Sequence[str] = ()
) -> Iterator[Candidate]:
    """The single changes of one statement of a unit."""
    value = getattr(statement, "value", None)
    line = ast.unparse(statement)
    name = line.partition(" ")[0]

    def candidate(change: Change) -> Candidate:
        return Candidate(((unit, change),), (line,), name, change.rank)

    if isinstance(statement, ast.AugAssign):
        mark = {ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}.get(type(statement.op), "+")
        words = f"without {part(mark, statement.value)}"
        yield candidate(Change(statement, ast.Pass(), words, LEFT_OUT))
        if isinstance(statement.op, ast.Add | ast.Sub):
            turned = ast.AugAssign(
                statement.target, ast.Sub() if isinstance(statement.op, ast.Add) else ast.Add(), statement.value
            )
            yield candidate(Change(statement, turned, f"with the sign of {part(mark, statement.value)} turned", TURNED))
        plain = ast.Assign([_everywhere(statement.target)], statement.value)
        yield candidate(Change(statement, plain, f"with `=` for `{mark}=`", TURNED))
    match statement:
        case ast.Expr(ast.Call(function, [array, places, values])) if ast.unparse(function) == "np.add.at":
            once = ast.Assign([ast.Subscript(array, places, ast.Store())], values)
            change = Change(statement, once, ONLY_ONCE.format(f"`{line}`"), TURNED)
            yield Candidate(((unit, change),), ("",), name, TURNED)
    if isinstance(statement, ast.Assign) and _updates(statement):
        change = Change(statement, ast.Pass(), f"without the line `{line}`", LEFT_OUT)
        yield Candidate(((unit, change),), ("",), name, LEFT_OUT)
    if value is not None:
        yield from map(candidate, changes_of(value, names, sizes, functions))


def of_views(unit: int, statement: ast.Assign, names: Names) -> Iterator[Candidate]:
    """The single changes of a line that computes no number."""
    line = ast.unparse(statement)
    for change in changes_of_views(statement.value, names):
        yield Candidate(((unit, change),), (line,), line.partition(" ")[0], change.rank)


def local_changes(unit: int, statement: ast.stmt, defined: Mapping[str, ast.expr]) -> Iterator[Candidate]:
    """What an earlier line defines, changed in this line alone: in the place of its name there stands the right side of
    that line without a part of it.
    """
    line = ast.unparse(statement)
    value = getattr(statement, "value", None)
    for node in ast.walk(value) if isinstance(value, ast.expr) else ():
        if isinstance(node, ast.Name | ast.Subscript) and ast.unparse(node) in defined:
            definition = defined[ast.unparse(node)]
            for change in changes_of(definition, {}, []):
                if change.rank == LEFT_OUT:
                    wrong = replaced(definition, change.node, change.wrong)
                    rank = ADDED if isinstance(node, ast.Name) else TURNED
                    yield Candidate(((unit, instead(node, wrong, rank)),), (line,), line.partition(" ")[0], rank)


def forward_of_gradient(unit: int, statement: ast.stmt, forward: ast.expr) -> Iterator[Candidate]:
    """The formula of the output with the upstream gradient in the place of the input: clip(grad_answer, min, max)."""
    value: Any = getattr(statement, "value", None)
    line = ast.unparse(statement)
    names = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
    inputs = [node for node in ast.walk(forward) if isinstance(node, ast.Name) and node.id == "input"]
    for upstream in sorted(names & {"grad_answer", "grad_output"}) if isinstance(value, ast.expr) and inputs else ():
        wrong: Any = forward
        for node in inputs:
            wrong = replaced(wrong, node, ast.Name(upstream, ast.Load()))
        words = f"with {text(wrong)}, what forward would make of the gradient, in the place of {text(value)}"
        yield Candidate(((unit, Change(value, wrong, words, ADDED)),), (line,), line.partition(" ")[0], ADDED)


def _everywhere(target: ast.expr) -> ast.expr:
    if isinstance(target, ast.Name):
        return ast.Subscript(target, ast.Constant(...), ast.Store())
    return target


def _updates(statement: ast.Assign) -> bool:
    """Whether a line changes what it reads: exp_avg = beta1 * exp_avg + ..."""
    (target,) = statement.targets[:1]
    return isinstance(target, ast.Name) and any(
        isinstance(node, ast.Name) and node.id == target.id for node in ast.walk(statement.value)
    )
