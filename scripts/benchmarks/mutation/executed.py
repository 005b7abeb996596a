"""Which lines of a class's methods run in each of its trials. Where the line of a mistake doesn't run, the mutant
computes what the right class does, and needs no trial.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

from benchmarks.mutation.mutants import Mutant
from benchmarks.mutation.subjects import Subject
from nn_manual.arrays import DTYPES

#: The code of a function, and the number of one of its lines, counted from its first.
Line = tuple[CodeType, int]


class Executed:
    """The lines that the right class runs in each of its trials. They are noted when it is made, which runs all trials
    once. Raises AssertionError where the right class fails one.
    """

    def __init__(self, subject: Subject) -> None:
        self._codes = {name: inspect.getattr_static(subject.owner, name).__code__ for name in subject.methods}
        self._lines = {dtype: list(self._of_trials(subject, dtype)) for dtype in DTYPES}

    def runs(self, mutant: Mutant, dtype: str, number: int) -> bool:
        """Whether the trial of this number runs the line of the mistake."""
        code = self._codes.get(mutant.method)
        return not mutant.lines or any((code, line) in self._lines[dtype][number] for line in mutant.lines)

    def _of_trials(self, subject: Subject, dtype: str) -> Iterator[frozenset[Line]]:
        lines: set[Line] = set()
        trials = subject.trials(subject.owner, dtype)
        while True:
            lines.clear()
            with _noting({*self._codes.values()}, lines):
                if (trial := next(trials, None)) is None:  # a trial may run the class when it is made
                    return
                for case in trial.cases:
                    assert case.failure is None, f"the right class fails: {case.description}\n{case.failure}"
            yield frozenset(lines)


@contextmanager
def _noting(codes: set[CodeType], lines: set[Line]) -> Iterator[None]:
    """The context in which each line of these functions that runs is added to `lines`."""

    def note(frame: FrameType, event: str, argument: Any) -> Any:  # noqa: ARG001 - sys.settrace passes it
        if event == "line":
            lines.add((frame.f_code, frame.f_lineno - frame.f_code.co_firstlineno))
        return note if frame.f_code in codes else None

    before = sys.gettrace()
    sys.settrace(note)
    try:
        yield
    finally:
        sys.settrace(before)
