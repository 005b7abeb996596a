"""Why a reader's code fails on some inputs: which change of the right formula fails on just these."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from nn_manual.errors import is_from_outside
from nn_manual.exercises.causes.agreement import same
from nn_manual.exercises.causes.candidates import Candidate, Text
from nn_manual.exercises.causes.explanation import Search
from nn_manual.exercises.causes.formula_text import FormulaText
from nn_manual.exercises.causes.sentences import sentence
from nn_manual.exercises.kinds.exercise import Case, Exercise, Results
from nn_manual.exercises.running.answer import Failure

#: What NumPy raises where shapes don't fit.
OF_SHAPES = ("ValueError", "IndexError", "AxisError")


def explain_failure(
    exercise: Exercise, cases: Sequence[Case], expected: Sequence[Results], results: Sequence[Results | Failure]
) -> str:
    """The cause of errors about shapes, in a sentence: a change of the right formula that raises where the reader's
    code does, and agrees with it where it computes something. Empty where there is none.
    """
    failed = [number for number, each in enumerate(results) if isinstance(each, Failure)]
    words = [each.words for each in results if isinstance(each, Failure)]
    theirs = [dict(each.reached) if isinstance(each, Failure) else dict(each) for each in results]
    first = {number: next((name for name in expected[number] if name not in theirs[number]), "") for number in failed}
    wrong = first[failed[0]]
    failed = [number for number in failed if first[number] == wrong]
    if not wrong or not all(each.startswith(OF_SHAPES) for each in words):
        return ""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        search, text = Search(exercise, cases, expected, theirs, wrong), FormulaText(exercise, cases)
        if not text.units or not search.given:
            return ""
        every = [*failed, *search.given]
        if not all(_same(text, None, number, expected[number], wrong) for number in every):
            return ""
        for candidate in search.singles(text, failed[0]):
            if search.is_over():
                break
            if not any(_raises_not(text, candidate, number) for number in failed) and all(
                _same(text, candidate, number, theirs[number], wrong) for number in search.given
            ):
                found = sentence(exercise, candidate, wrong)
                return found.replace(f"This is the right {wrong}", f"It fails just where the right {wrong} fails", 1)
    return ""


def _raises_not(text: Text, candidate: Candidate, number: int) -> bool:
    try:
        text.results(candidate, number)
    except Exception as error:
        if is_from_outside(error):
            raise
        return False
    return True


def _same(text: Text, candidate: Candidate | None, number: int, own: Results, wrong: str) -> bool:
    try:
        results = text.run({}, number) if candidate is None else text.results(candidate, number)
    except Exception as error:  # a change that can't be computed, or takes all memory, isn't the reader's
        if is_from_outside(error):
            raise
        return False
    return same(results.get(wrong), own[wrong])
