"""The Jacobian that a reader's backward pass stands for, beside the true one, on the smallest case that shows both."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nn_manual.arrays import Array
from nn_manual.check.compare.tolerances import SOLUTION
from nn_manual.errors import raise_if_nobodys_fault
from nn_manual.exercises.kinds.exercise import Case, Exercise, Reached

if TYPE_CHECKING:
    from nn_manual.plotting.jacobians import Jacobians

#: The most entries of a Jacobian that is drawn: more can't be told apart.
MOST_ENTRIES = 48 * 48
#: The name of the upstream gradient among the arguments of a case.
UPSTREAM = ("grad_output", "grad_answer")


class Found(NamedTuple):
    """The case, by its index, whose Jacobian differs, and the reader's."""

    case: int
    jacobian: Array


def first_wrong(exercise: Exercise, cases: Sequence[Case], own: Any, wrong: str) -> Found | None:
    """The reader's Jacobian on the smallest of the cases in which a gradient of this name differs. None where each
    would be too large, or where the exercise has no upstream gradient to take back, as a loss has none.
    """
    for index in _drawable(cases):
        case = cases[index]
        true, theirs = _jacobian(case, exercise.owner, wrong), _jacobian(case, own, wrong)
        if true is None or theirs is None or theirs.shape != true.shape:
            continue
        if _differs(theirs, true).any():
            return Found(index, theirs)
    return None


def _drawable(cases: Sequence[Case]) -> list[int]:
    """The cases whose Jacobian can be drawn, from small to large; the last are those of a single entry, which shows
    less.
    """
    small = [index for index, case in enumerate(cases) if 0 < _num_entries(case) <= MOST_ENTRIES]
    return sorted(small, key=lambda index: (_num_entries(cases[index]) == 1, _num_entries(cases[index])))


def why_none(exercise: Exercise, cases: Sequence[Case], own: Any, wrong: str) -> str:
    """Why `first_wrong` has found none for a gradient that is wrong."""
    if not any(map(_num_entries, cases)):
        return f"{wrong} has no Jacobian: there is no upstream gradient to take back"
    small = _drawable(cases)
    if not small:
        return f"each Jacobian of {wrong} has more than {MOST_ENTRIES:,} entries, which can't be told apart"
    for index in small:
        true, theirs = _jacobian(cases[index], exercise.owner, wrong), _jacobian(cases[index], own, wrong)
        if true is not None and (theirs is None or theirs.shape != true.shape):
            return f"your {wrong} has another shape on {cases[index]}"
    return f"your {wrong} is right on each input whose Jacobian has at most {MOST_ENTRIES:,} entries"


def beside_the_true_one(exercise: Exercise, cases: Sequence[Case], found: Found, wrong: str) -> Jacobians:
    """Both Jacobians, to be drawn."""
    from nn_manual.plotting.jacobians import Jacobians  # no process that runs a reader's file needs it

    case = cases[found.case]
    true = _jacobian(case, exercise.owner, wrong)
    assert true is not None
    differs, of = _differs(found.jacobian, true), wrong.removeprefix("grad_")
    assert isinstance(case.run, functools.partial)
    output_shape = next(case.run.keywords[name].shape for name in UPSTREAM if name in case.run.keywords)
    input_shape = np.shape(case.run(exercise.owner)[wrong])
    return Jacobians(found.jacobian, true, differs, str(case), of, output_shape, input_shape)


def _differs(theirs: Array, true: Array) -> Array:
    with np.errstate(all="ignore"):
        differs: Array = ~(np.abs(theirs - true) <= SOLUTION * np.abs(true).max(initial=0))
    return differs


def _num_entries(case: Case) -> int:
    keywords = case.run.keywords if isinstance(case.run, functools.partial) else {}
    upstream = next((keywords[name] for name in UPSTREAM if name in keywords), None)
    if upstream is None:
        return 0
    operands = keywords.get("operands") or [case.known.get("input", upstream)]
    return int(upstream.size * max(operand.size for operand in operands))


def _jacobian(case: Case, own: Any, wrong: str) -> Array | None:
    """A row for each element of the output: the gradient that an upstream gradient of 1 there, and 0 elsewhere, has."""
    run = case.run
    assert isinstance(run, functools.partial)
    name = next(each for each in UPSTREAM if each in run.keywords)
    upstream = run.keywords[name]
    rows = []
    for place in range(upstream.size):
        one = np.zeros(upstream.size)
        one[place] = 1
        with np.errstate(all="ignore"):
            try:
                results = run.func(own, **{**run.keywords, name: one.reshape(upstream.shape)})
            except Reached as reached:
                results = reached.results
            except BaseException as error:  # the reader's forward may raise anything
                raise_if_nobodys_fault(error)
                return None
        if wrong not in results:
            return None
        rows.append(np.ravel(results[wrong]))
    return np.array(rows) if len({row.shape for row in rows}) == 1 else None
