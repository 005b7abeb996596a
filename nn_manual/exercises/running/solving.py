"""Runs a reader's class or operation on the cases of an exercise."""

from __future__ import annotations

import builtins
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nn_manual.check.catalogue.inputs import AT_JUMPS
from nn_manual.defaults import is_of_package
from nn_manual.errors import is_from_outside, words_of
from nn_manual.exercises.kinds.exercise import Case, Exercise, NotASolution, Reached, Results
from nn_manual.exercises.running.answer import Failure
from nn_manual.exercises.running.read_only import of_read_only
from nn_manual.exercises.running.shapes import misfit
from nn_manual.messages.text import advice, nearest


def unfit(exercise: Exercise, own: Any) -> str:
    """Why an object is no solution of an exercise, in words; empty where it can be run."""
    if problem := exercise.accepts(own):
        return problem
    if exercise.is_function:
        return ""
    for name in exercise.taken_out:
        definer = next(base for base in own.__mro__ if name in vars(base))
        if is_of_package(definer):
            return f"{own.__name__} has no {name} of its own: write it"
    return ""


def cases_of(exercise: Exercise, *, is_made: bool) -> list[Case]:
    """The cases of an exercise. Of one that a teacher has made, without those that depend on its derivative: the
    process that runs the reader's class hasn't the teacher's.
    """
    return [case for case in exercise.cases() if not (is_made and case.kind == AT_JUMPS)]


def results_of(
    cases: Sequence[Case], own: Any, file: str, look: Callable[[int], None] = lambda _: None
) -> list[Results | Failure]:
    """What each case gives, or the error that it raises; nothing where the code raises NotImplementedError. `look` is
    called before each, with its number.
    """
    results: list[Results | Failure] = []
    for number, case in enumerate(cases):
        look(number)
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
    return results


def failure(error: BaseException, file: str) -> Failure:
    """An error of the reader's code, with the last line of its file that ran."""
    if isinstance(error, SyntaxError) and error.filename == file:
        return Failure(f"{type(error).__name__}: {error.msg}", error.lineno or 0)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    words = str(error) if isinstance(error, NotASolution) else f"{words_of(error)}{_meant(error)}"
    if of_writing := of_read_only(error, file):
        words = of_writing
    elif of_shapes := misfit(error, file):
        words = f"{type(error).__name__}: {of_shapes}"
    return Failure(words, (lines[-1] or 0) if lines else getattr(error, "line", 0))


def _meant(error: BaseException) -> str:
    """Which name was probably meant in the place of one that is unknown, as Python says below a traceback."""
    if isinstance(error, AttributeError) and error.name is not None:
        known = dir(error.obj)
    elif isinstance(error, NameError) and error.name is not None and error.__traceback__ is not None:
        *_, (frame, _) = traceback.walk_tb(error.__traceback__)
        known = [*frame.f_locals, *frame.f_globals, *dir(builtins)]
    else:
        return ""
    return advice(error.name, known) if nearest(error.name, known) else ""
