"""The cause of a wrong tensor in words, where the reader's numbers tell it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nn_manual.exercises.running.answer import Failure
from nn_manual.exercises.running.reference import Reference


def cause_of(reference: Reference, theirs: Sequence[Mapping[str, Any]], name: str) -> str:
    """The cause; empty where none was found, and for the exercise of a teacher, whose formula isn't here. A case in
    which the reader's code failed has no results.
    """
    if reference.exercise is None:
        return ""
    from nn_manual.exercises.causes.explanation import explain  # no process that runs a reader's file needs it

    there = [i for i, results in enumerate(theirs) if results and not any(isinstance(r, str) for r in results.values())]
    cases = [reference.cases[i] for i in there]
    expected = [reference.expected[i] for i in there]
    return explain(reference.exercise, cases, expected, [dict(theirs[i]) for i in there], name)


def cause_of_failure(reference: Reference, results: Sequence[Mapping[str, Any] | Failure]) -> str:
    """The cause of an error about shapes, where the reader's code computes something on other inputs."""
    if reference.exercise is None:
        return ""
    from nn_manual.exercises.causes.failures import explain_failure

    own = [each if isinstance(each, Failure) else dict(each) for each in results]
    return explain_failure(reference.exercise, reference.cases, reference.expected, own)
