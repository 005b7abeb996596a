"""Errors in a user's code: whether the function or its reference raised one, where, and in which words."""

from __future__ import annotations

import os
import re
import sysconfig
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from nn_manual.check.compare.comparison import CannotCompare
from nn_manual.errors import first_words_of, is_from_outside, raise_if_nobodys_fault, text_of
from nn_manual.functions.device import wait_for_kernels
from nn_manual.functions.settings import kept
from nn_manual.messages.text import one_line

#: The note that an error of the reference gets.
BY_THE_REFERENCE = "raised by the reference"
#: The same of a function that has no other: with what its own forward gives, it is compared.
BY_FORWARD = "raised by forward"

#: Code that a message doesn't point at: this package's, torch's, that of Triton, which lies beside torch, and that of
#: Python's import system.
_OTHERS_CODE = (
    *(f"{Path(__file__).parents[1]}{os.sep}", f"{Path(torch.__file__).parent}{os.sep}"),
    *(f"{Path(torch.__file__).parents[1] / 'triton'}{os.sep}", "<frozen "),
)

#: The functions of this package that run the reference, and nothing else of the user's but its inputs.
RUN_THE_REFERENCE = {
    *("_run_reference", "_back_through_reference", "values_of_reference", "differentiable"),
    *("values_of_its_reference", "peak_of_reference", "with_moved_buffers", "traced_reference"),
}


@contextmanager
def going_on(function: object) -> Iterator[None]:
    """A context for a user's function that turns sys.exit() and the like into a RuntimeError: sys.exit() would end the
    check as if all were right. Global settings that it changes are set back. An error of its kernels is raised here.
    """
    with kept(by=function):
        try:
            yield
            wait_for_kernels()
        except Exception:
            raise
        except BaseException as end:
            if is_from_outside(end):
                raise
            words = f"sys.exit({text_of(end)})" if isinstance(end, SystemExit) else first_words_of(end)
            raise RuntimeError(words) from end


@contextmanager
def naming(label: str, doing: str) -> Iterator[None]:
    """A context that turns an error of the function into CannotCompare, with the function's label and the line."""
    try:
        yield
    except CannotCompare:
        raise
    except Exception as error:  # anyone's function may raise anything
        raise_if_nobodys_fault(error)
        raise CannotCompare(f"{label}: {doing} raised {first_words_of(error)}{place_of(error)}") from error


@contextmanager
def raised_by_the_reference(*, is_own: bool = False) -> Iterator[None]:
    """A context that adds a note to an error: the reference raised it, or the function's own forward in its place."""
    try:
        yield
    except Exception as error:  # anyone's function may raise anything
        error.add_note(BY_FORWARD if is_own else BY_THE_REFERENCE)
        raise


def is_of_the_reference(error: BaseException) -> bool:
    """Whether the reference raised it."""
    return not {BY_THE_REFERENCE, BY_FORWARD}.isdisjoint(getattr(error, "__notes__", []))


def met_in(error: BaseException | None) -> Iterator[str]:
    """The words and the place of an error, and those of its causes: rows that share one of them met the same error."""
    for each in with_causes(error):
        yield f"{first_words_of(each)}{place_of(each)}"


def told(error: Exception) -> str:
    """An error that makes the check impossible, as one line."""
    if is_of_the_reference(error):
        whose = "forward" if BY_FORWARD in error.__notes__ else "the reference"
        return f"{whose} raised {first_words_of(error)}{place_of(error)}"
    if notes := getattr(error, "__notes__", []):
        return f"{first_words_of(error)}{place_of(error)}, {one_line(notes[0])}"
    if isinstance(error, ValueError | TypeError):
        return text_of(error)
    return f"{first_words_of(error)}{place_of(error)}"


def place_of(error: BaseException) -> str:
    """Where in the user's code an error was raised, or the innermost of its causes that was raised there, as
    " at file:line"; empty if no line of it ran. The cause of an error in Triton's interpreter has the kernel's line.
    """
    if isinstance(error, SyntaxError) and error.filename:
        return f" at {error.filename}:{error.lineno}"
    places = (place_in(traceback.extract_tb(each.__traceback__)) for each in reversed([*with_causes(error)]))
    return next(filter(None, places), "")


def with_causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error, its cause, the cause of that, and so on."""
    while error is not None:
        yield error
        error = error.__cause__


def place_in(frames: Iterable[traceback.FrameSummary]) -> str:
    """The innermost line of the user's code among these, as " at file:line"; empty if there is none."""
    own = [frame for frame in frames if not frame.filename.startswith(_OTHERS_CODE)]
    return f" at {own[-1].filename}:{own[-1].lineno}" if own else ""


def is_of_the_reference_in_dump(dump: str) -> bool:
    """Whether the reference ran when the process was ended, by what Python's faulthandler wrote then. In
    own_sensitivities the function runs in the place of the reference.
    """
    own = re.findall(rf'^  File "{re.escape(_OTHERS_CODE[0])}.+", line \d+ in (.+)', dump, re.MULTILINE)
    return not RUN_THE_REFERENCE.isdisjoint(own) and "own_sensitivities" not in own


def place_in_dump(dump: str) -> str:
    """Where in the user's code the process was ended, as by `place_of`, by what Python's faulthandler wrote."""
    frames = re.findall(r'^  File "(.+)", line (\d+) in ', dump, re.MULTILINE)
    others = (*_OTHERS_CODE, sysconfig.get_path("stdlib"), "<string>")
    own = [(file, line) for file, line in frames if not file.startswith(others)]
    return " at {}:{}".format(*own[0]) if own else ""
