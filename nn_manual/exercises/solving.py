"""Runs a reader's class or operation on the cases of an exercise."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nn_manual.check.catalogue.inputs import AT_JUMPS
from nn_manual.errors import is_from_outside, words_of
from nn_manual.exercises.answer import Failure
from nn_manual.exercises.exercise import Case, Exercise, NotASolution, Reached, Results


def unfit(exercise: Exercise, own: Any) -> str:
    """Why an object is no solution of an exercise, in words; empty where it can be run."""
    if problem := exercise.accepts(own):
        return problem
    if exercise.is_function:
        return ""
    for name in exercise.taken_out:
        definer = next(base for base in own.__mro__ if name in vars(base))
        if definer.__module__.startswith("nn_manual."):
            return f"{own.__name__} has no {name} of its own: write it"
    return ""


def cases_of(exercise: Exercise, *, is_made: bool) -> list[Case]:
    """The cases of an exercise. Of one that a teacher has made, without those that depend on its derivative: the
    process that runs the reader's class hasn't the teacher's.
    """
    return [case for case in exercise.cases() if not (is_made and case.kind == AT_JUMPS)]


def results_of(
    cases: Sequence[Case], own: Any, file: str, look: Callable[[], None] = lambda: None
) -> list[Results | Failure]:
    """What each case gives, or the error that it raises; nothing where the code raises NotImplementedError. `look` is
    called behind each.
    """
    results: list[Results | Failure] = []
    for case in cases:
        try:
            with np.errstate(all="ignore"):
                results.append(case.run(own))
        except NotImplementedError:
            results.append({})  # it isn't written yet
        except Reached as reached:
            results.append(replace(failure(reached.error, file), reached=reached.results))
        except BaseException as error:  # the reader's code may raise anything
            if is_from_outside(error):
                raise
            results.append(failure(error, file))
        look()
    return results


def failure(error: BaseException, file: str) -> Failure:
    """An error of the reader's code, with the last line of its file that ran."""
    if isinstance(error, SyntaxError) and error.filename == file:
        return Failure(f"{type(error).__name__}: {error.msg}", error.lineno or 0)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    words = str(error) if isinstance(error, NotASolution) else words_of(error)
    if isinstance(error, ValueError) and "read-only" in words:
        words = "it writes into its input, which other code still reads"
    return Failure(words, (lines[-1] or 0) if lines else getattr(error, "line", 0))
