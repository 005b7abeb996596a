"""The rule of an operation as a text that can be changed: the answer, and the functions back."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from nn_manual.exercises.causes.candidates import Candidate
from nn_manual.exercises.causes.code_statements import source_of
from nn_manual.exercises.causes.code_text import CodeText
from nn_manual.exercises.causes.plain_code import plain
from nn_manual.exercises.files.source import leading_to
from nn_manual.exercises.kinds.exercise import Exercise, Results
from nn_manual.ops import Operation


class OperationText(CodeText):
    """The one unit is the rule."""

    def _take_all(self, exercise: Exercise) -> int:
        rule = exercise.owner.rule
        self._functions["rule"], self._trees["rule"] = rule, plain(source_of(rule))
        return 1

    def _changeable(self) -> Operation:
        """The operation itself: each run has one of its own."""
        operation: Operation = self._owner
        return operation

    def _run(self, methods: Mapping[int, Callable[..., Any]], number: int) -> Results:
        """A run of an operation with this rule."""
        rule = methods.get(0, self.changed_class.rule)
        return self.cases[number].run(Operation(rule, self.changed_class.analytic))

    def of_forward(self, candidate: Candidate) -> bool:
        """Whether a change stands in the answer, or in a line that leads to it."""
        (unit,) = self._trees.values()
        *statements, end = unit.body
        answer = end.value.elts[0]  # type: ignore[attr-defined]
        forward = {id(node) for one in (answer, *leading_to(answer, statements)) for node in ast.walk(one)}
        return any(id(change.node) in forward for _, change in candidate.edits)
