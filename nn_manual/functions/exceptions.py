"""What anyone's function raises: whose it is, where, and in which words."""

from __future__ import annotations

import re
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from nn_manual.check.compare.comparison import CannotCompare
from nn_manual.errors import first_words_of, is_from_outside, raise_if_out_of_memory, text_of
from nn_manual.functions.settings import kept
from nn_manual.messages import one_line

#: The note on what a reference raises.
BY_THE_REFERENCE = "raised by the reference"

#: The code that a message doesn't point at: this package's, torch's and what imports a module.
_OTHERS_CODE = (str(Path(__file__).parents[1]), str(Path(torch.__file__).parent), "<frozen ")


@contextmanager
def going_on() -> Iterator[None]:
    """A context for anyone's code, in which all that it raises is an error like others: of sys.exit() the check would
    end as if all were right. What it changes for everybody is changed back.
    """
    with kept():
        try:
            yield
        except Exception:
            raise
        except BaseException as end:
            if is_from_outside(end):
                raise
            words = f"sys.exit({text_of(end)})" if isinstance(end, SystemExit) else first_words_of(end)
            raise RuntimeError(words) from end


@contextmanager
def naming(label: str, doing: str) -> Iterator[None]:
    """A context in which everything that the function raises becomes CannotCompare, with its label and its line."""
    try:
        yield
    except CannotCompare:
        raise
    except Exception as error:  # anyone's function may raise anything
        raise_if_out_of_memory(error)
        raise CannotCompare(f"{label}: {doing} raised {first_words_of(error)}{place_of(error)}") from error


@contextmanager
def raised_by_the_reference() -> Iterator[None]:
    """A context in which what is raised gets a note that the reference raised it."""
    try:
        yield
    except Exception as error:  # anyone's function may raise anything
        error.add_note(BY_THE_REFERENCE)
        raise


def is_of_the_reference(error: BaseException) -> bool:
    """Whether the reference raised it."""
    return BY_THE_REFERENCE in getattr(error, "__notes__", [])


def met_in(error: BaseException | None) -> Iterator[str]:
    """What it says, and what was raised behind it and where: two rows that share one of these met the same."""
    while error is not None:
        yield f"{first_words_of(error)}{place_of(error)}"
        error = error.__cause__


def told(error: Exception) -> str:
    """In one line, what keeps a check from being made."""
    if is_of_the_reference(error):
        return f"the reference raised {first_words_of(error)}{place_of(error)}"
    if notes := getattr(error, "__notes__", []):
        return f"{first_words_of(error)}{place_of(error)}, {one_line(notes[0])}"
    if isinstance(error, ValueError | TypeError):
        return text_of(error)
    return f"{first_words_of(error)}{place_of(error)}"


def place_of(error: BaseException) -> str:
    """Where in the user's code an error was raised, as " at file:line"; nothing where no line of it ran."""
    if isinstance(error, SyntaxError) and error.filename:
        return f" at {error.filename}:{error.lineno}"
    if isinstance(error.__cause__, BaseException) and not isinstance(error.__cause__, Exception):
        error = error.__cause__  # what going_on made an error of
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith(_OTHERS_CODE)]
    return f" at {own[-1].filename}:{own[-1].lineno}" if own else ""


def is_of_the_reference_in_dump(dump: str) -> bool:
    """Whether the reference ran when a signal ended the process, by the same. In one frame the function runs in its
    place.
    """
    own = re.findall(rf'^  File "{re.escape(_OTHERS_CODE[0])}.+", line \d+ in (.+)', dump, re.MULTILINE)
    return not {"_run_reference", "_back_through_reference"}.isdisjoint(own) and "own_sensitivities" not in own


def place_in_dump(dump: str) -> str:
    """The same of a process that a signal has ended, by what Python's faulthandler wrote then."""
    frames = re.findall(r'^  File "(.+)", line (\d+) in ', dump, re.MULTILINE)
    others = (*_OTHERS_CODE, sysconfig.get_path("stdlib"), "<string>")
    own = [(file, line) for file, line in frames if not file.startswith(others)]
    return " at {}:{}".format(*own[0]) if own else ""
