"""The Jacobian that a reader's backward pass stands for, beside the true one, on the smallest case that shows both."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from nn_manual.arrays import Array
from nn_manual.exercises.exercise import Case, Exercise
from nn_manual.plotting.jacobians import Jacobians

#: The most entries of a Jacobian that is drawn: more can't be told apart.
MOST_ENTRIES = 48 * 48
#: The name of the upstream gradient among the arguments of a case, by what the gradient is of.
UPSTREAM = {"output": "grad_output", "answer": "grad_answer"}
#: Two right entries in float64 differ by less than this part of the largest.
TOLERANCE = 1e-9


def jacobians(exercise: Exercise, cases: Sequence[Case], own: Any, wrong: str) -> Jacobians | None:
    """Those of the first of the cases, from small to large, in which a gradient of the wrong name differs. None where a
    Jacobian would be too large, or where the exercise has no upstream gradient to take back, as a loss has none.
    """
    for case in sorted(cases, key=_num_entries):
        if not 0 < _num_entries(case) <= MOST_ENTRIES:
            continue
        true, theirs = _jacobian(case, exercise.owner, wrong), _jacobian(case, own, wrong)
        if true is None or theirs is None or theirs.shape != true.shape:
            continue
        differs = ~(np.abs(theirs - true) <= TOLERANCE * np.abs(true).max(initial=0))
        if differs.any():
            return Jacobians(theirs, true, differs, str(case), wrong.removeprefix("grad_"))
    return None


def _num_entries(case: Case) -> int:
    keywords = case.run.keywords if isinstance(case.run, functools.partial) else {}
    upstream = next((keywords[name] for name in UPSTREAM.values() if name in keywords), None)
    if upstream is None:
        return 0
    operands = keywords.get("operands") or [case.known.get("input", upstream)]
    return int(upstream.size * max(operand.size for operand in operands))


def _jacobian(case: Case, own: Any, wrong: str) -> Array | None:
    """A row for each element of the output: the gradient that an upstream gradient of 1 there, and 0 elsewhere, has."""
    run = case.run
    assert isinstance(run, functools.partial)
    name = next(each for each in UPSTREAM.values() if each in run.keywords)
    upstream = run.keywords[name]
    rows = []
    for place in range(upstream.size):
        one = np.zeros(upstream.size)
        one[place] = 1
        with np.errstate(all="ignore"):
            results = run.func(own, **{**run.keywords, name: one.reshape(upstream.shape)})
        if wrong not in results:
            return None
        rows.append(np.ravel(results[wrong]))
    return np.array(rows) if len({row.shape for row in rows}) == 1 else None
