"""How a result differs from the right one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from nn_manual.arrays import Array
from nn_manual.check.catalogue.inputs import AT_JUMPS
from nn_manual.check.compare.tolerances import SOLUTION
from nn_manual.check.judge.diagnosis import describe_difference, positions
from nn_manual.exercises.files.statement import OUTPUTS, said_of_kinks
from nn_manual.exercises.running.answer import Answer, Failure
from nn_manual.exercises.running.reference import Reference
from nn_manual.optim import Scheduler

#: The kinds of input that lie at ties and kinks, and those of which a part does.
AT_KINKS, PARTLY_AT_KINKS = ("tied", "zero"), ("tied", "zero", "spread", AT_JUMPS)

#: What remains of a factor that is another one on each input.
MULTIPLE = "a multiple of the reference, with another factor on other inputs"
#: A factor, and what it may be.
_FACTOR = re.compile(r"(.*(?:times|of) the reference)(?:: (.*)|, with another factor.*|)$")
_OR = re.compile("(?<!,) or ")
#: Axes, which have other numbers in other shapes.
_AXES = re.compile(r"(?<=axis )(?:\d+|\([\d, ]+\))")
#: Which numbers differ, the only one, or by how little: that is no reading.
_FACT = re.compile(r"\d+ of \d+ positions|\S+, the reference has |it has some 7 right digits")


def looks_like(theirs: Array, right: Array, others: Iterable[tuple[Any, Array]] = ()) -> str:
    """What a difference looks like. The place and both values aren't in it: they are told by themselves.

    A reading, such as a factor or a transpose, must hold for the `others`, too, wrong results and right ones of other
    inputs. Where it doesn't, only the shape or the places that differ are said.
    """
    words = _words(theirs, right)
    if theirs.shape != right.shape:
        every = [words, *(_words(*both) for both in _alike(others, False))]
        readings = {_AXES.sub("", each.partition(": ")[2]) for each in every}
        return words if len(readings) == 1 else words.partition(": ")[0]
    for both in _alike(others, True):
        if not (words := _shared(words, _words(*both))):
            return positions(differs(theirs, right)).removesuffix("...").rstrip(", ")
    return words


def _words(theirs: Array, right: Array) -> str:
    words = describe_difference(np.asarray(theirs, np.float64), right.astype(np.float64))
    if words.startswith("right to the digits of float32"):
        return "it has some 7 right digits, as where something is float32, or a small number is added"
    return words.partition("; worst ")[0].removesuffix("...").rstrip(", ")


def _alike(others: Iterable[tuple[Any, Array]], of_one_shape: bool) -> Iterator[tuple[Array, Array]]:
    """The pairs of arrays of one shape, or those of two."""
    for theirs, right in others:
        if isinstance(theirs, np.ndarray) and (theirs.shape == np.shape(right)) == of_one_shape:
            yield theirs, np.asarray(right)


def _shared(words: str, other: str) -> str:
    """What remains of a description where another input has the other one; empty where nothing does."""
    is_fact = _FACT.match(words) or (words.startswith("not finite") and other.startswith("not finite"))
    mine, theirs = _FACTOR.match(words), _FACTOR.match(other)
    if is_fact or words == other:
        return words
    if mine is None or theirs is None:
        return words if _AXES.sub("", words) == _AXES.sub("", other) else ""
    names = [name for name in _names(mine[2]) if name in _names(theirs[2])]
    if names:
        return f"{mine[1]}: {mine[2].partition('divided by ')[1]}{' or '.join(names)}"
    return mine[1] if mine[1] == theirs[1] else MULTIPLE


def _names(readings: str) -> list[str]:
    return _OR.split(readings.removeprefix("divided by ")) if readings else []


def has_no_number(theirs: Any) -> bool:
    """Whether an array has no number in it, as memory before the reader's code ran."""
    return isinstance(theirs, np.ndarray) and theirs.size > 0 and bool(np.isnan(theirs).all())


def agrees(theirs: Any, right: Array) -> bool:
    """Whether a result is right, but for the roundings of another order."""
    if isinstance(theirs, str):
        return False
    right = np.asarray(right)
    return theirs.shape == right.shape and not differs(theirs, right).any()


def not_asked(owner: Any, theirs: Any, right: Array, every: Sequence[Any]) -> str:
    """What a result is where it isn't of the kind that is asked, in words: no array of numbers, an array in the place
    of a schedule's number, or a number in the place of an array, the same one in `every` wrong result. Empty for any
    other.
    """
    is_schedule = isinstance(owner, type) and issubclass(owner, Scheduler)
    asked = "one number" if is_schedule else "an array of numbers"
    if isinstance(theirs, str):
        missing = " Is a return missing?" if theirs == "None" else ""
        return f"{theirs}, and not {asked}.{missing}"
    if is_schedule and theirs.ndim > 1:
        return f"an array of shape {theirs.shape[1:]}, and not {asked}."
    are_numbers = all(isinstance(own, np.ndarray) and own.ndim == 0 for own in every)
    if right.ndim and are_numbers and len({float(own) for own in every}) == 1:
        return f"the number {float(theirs):g}, and not {asked}."
    return ""


def differs(theirs: Array, right: Array) -> npt.NDArray[np.bool_]:
    """Where two arrays of one shape differ by more than roundings. Where one isn't finite, the other is the same."""
    finite = np.isfinite(right)
    scale = np.abs(right[finite]).max(initial=0)
    with np.errstate(all="ignore"):
        near = np.abs(theirs - right) <= SOLUTION * scale
    same: npt.NDArray[np.bool_] = np.where(finite, near, (theirs == right) | (np.isnan(theirs) & np.isnan(right)))
    return ~same


def worst(theirs: Array, right: Array) -> tuple[int, ...]:
    """Where two arrays of one shape differ most."""
    wrong = differs(theirs, right)
    with np.errstate(all="ignore"):
        distance = np.where(wrong, np.nan_to_num(np.abs(theirs - right), nan=np.inf), -1)
    return tuple(int(i) for i in np.unravel_index(np.argmax(distance), right.shape))


def of_ties(reference: Reference, wrong: Sequence[int]) -> str | None:
    """Where the cases that are wrong are those at ties and kinks: what the docstring says of these, if it does. None
    for others.
    """
    kinds = [reference.inputs[case][1] for case in wrong]
    said = "" if reference.exercise is None else said_of_kinks(reference.exercise)
    if said and any(kind.startswith(AT_KINKS) for kind in kinds):
        return said if all(kind.startswith(PARTLY_AT_KINKS) for kind in kinds) else None
    return "" if all(kind.startswith("tied") for kind in kinds) else None


def two_numbers(theirs: float, right: float) -> tuple[str, str]:
    """Two numbers that differ, with so many digits that it shows."""
    short = f"{theirs:.6g}", f"{right:.6g}"
    return short if short[0] != short[1] else (f"{theirs:.15g}", f"{right:.15g}")


def of_others(reference: Reference, answer: Answer) -> str:
    """Why there are more or fewer inputs. Which kinds there are depends on what forward computes, too."""
    theirs = answer.results[0] if answer.results else {}
    output = {} if isinstance(theirs, Failure) else theirs
    right = reference.expected[0]
    if any(name in output and not agrees(output[name], right[name]) for name in OUTPUTS if name in right):
        return "has another forward, whose output differs: leave it as the exercise has it"
    return "has other settings or examples than the exercise, or another forward: start it again"
