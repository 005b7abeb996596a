"""Whether what a reader's code computed is right, but for the roundings of another order."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from nn_manual.arrays import Array
from nn_manual.check.compare.tolerances import SOLUTION
from nn_manual.exercises.answer import Answer, Failure
from nn_manual.exercises.reference import Reference
from nn_manual.exercises.statement import OUTPUTS


def agrees(theirs: Any, right: Array) -> bool:
    """Whether a result is right, but for the roundings of another order."""
    if isinstance(theirs, str):
        return False
    right = np.asarray(right)
    return theirs.shape == right.shape and not differs(theirs, right).any()


def differs(theirs: Array, right: Array) -> npt.NDArray[np.bool_]:
    """Where two arrays of one shape differ by more than roundings. Where one isn't finite, the other is the same."""
    finite = np.isfinite(right)
    scale = np.abs(right[finite]).max(initial=0)
    with np.errstate(all="ignore"):
        near = np.abs(theirs - right) <= SOLUTION * scale
    same: npt.NDArray[np.bool_] = np.where(finite, near, (theirs == right) | (np.isnan(theirs) & np.isnan(right)))
    return ~same


def of_others(reference: Reference, answer: Answer) -> str:
    """Why there are more or fewer inputs. Which kinds there are depends on what forward computes, too."""
    theirs = answer.results[0] if answer.results else {}
    output = {} if isinstance(theirs, Failure) else theirs
    right = reference.expected[0]
    if any(name in output and not agrees(output[name], right[name]) for name in OUTPUTS if name in right):
        return "has another forward, whose output differs: leave it as the exercise has it"
    return "has other settings or examples than the exercise, or another forward: start it again"
