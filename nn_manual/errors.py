"""The errors that end a run with a message instead of a traceback, each with its exit status."""

from __future__ import annotations

import dis
import errno
import os
import re
import signal
import traceback
from pathlib import Path
from typing import Any

from nn_manual.messages import first_line, one_line

#: What asks to stop: Ctrl-C, `kill`, and a terminal that is closed.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class NNManualError(Exception):
    """Base of the errors whose text is written for the user: each argument is one line, of which names and values can
    be from anywhere. `exit_status` is the process's.
    """

    exit_status = 1

    def __str__(self) -> str:
        return "\n".join(one_line(str(line)) for line in self.args)


class ConfigError(NNManualError):
    """The command line or the config asks for something that does not exist or does not fit."""

    exit_status = 2


class LayerError(ConfigError, TypeError):
    """A layer's method returned what it must not, or the layer lacks one that it needs. The text names both."""


class GradientMismatch(NNManualError):  # noqa: N818 - the public name that users catch, fixed by design
    """A hand-derived value and torch's differ by more than rounding. `report`, a GradientReport, says where.

    `batch` is the input and the target of the training step that it was found in, or of one of its slices: then
    `first_row` is the row of the batch at which the slice begins, else None.
    """

    exit_status = 3

    def __init__(self, report: Any) -> None:
        super().__init__(*str(report).split("\n"))
        self.report = report
        self.batch: tuple[Any, Any] | None = None
        self.first_row: int | None = None


class NotFiniteError(NNManualError):
    """A loss, gradient or parameter is infinite or not a number."""

    exit_status = 4


class Interrupted(KeyboardInterrupt):
    """A signal has asked to stop: SIGINT, SIGTERM or SIGHUP. `exit_status` is what a shell reports of it."""

    def __init__(self, signum: int) -> None:
        words: dict[int, str] = {signal.SIGTERM: "terminated", signal.SIGHUP: "hung up"}
        super().__init__(words.get(signum, "interrupted"))
        self.exit_status = 128 + signum


def end_at_once(signum: int) -> None:
    """End this process as the signal does by default. It is called by a handler: the system's own for the next signal
    would be set too late for one that has come already, of which Python then prints a traceback.
    """
    signal.signal(signum, signal.SIG_DFL)
    os.kill(os.getpid(), signum)


class DataError(NNManualError):
    """A data set, run directory or checkpoint is missing, unreadable, corrupt or can't be written."""

    exit_status = 5


class NotReproducedError(NNManualError):
    """A replay of a step that differed from torch's is another step, or the same one without the difference."""

    exit_status = 6


class ProcessLostError(NNManualError):
    """A process of a run of several has died, or doesn't answer in time."""

    exit_status = 7


class OthersEnded(BaseException):
    """Of several functions that run in turns, another has raised. No layer's own `except Exception` may catch it."""


#: In what an error says of memory that isn't there, in lower case. RuntimeError: torch of the processor's and of a
#: GPU's, C++, and Python of a thread's stack. ImportError and OSError: what loads a library. SystemError: C code that
#: failed and told Python nothing, as most does that looks no further than that where memory ends.
OUT_OF_MEMORY: dict[type[Exception], tuple[str, ...]] = {
    RuntimeError: ("allocate memory", "out of memory", "not enough memory", "bad_alloc", "can't start new thread"),
    ImportError: ("failed to map segment", "cannot allocate memory"),
    OSError: ("failed to map segment", "cannot allocate memory"),
    SystemError: ("without setting an exception", "without exception set"),
}


def out_of_memory(error: BaseException) -> str | None:
    """What to say of an error that memory which isn't there has raised, with the size that was asked for where the
    error has it; None of any other error. NumPy and Python raise MemoryError, others those of OUT_OF_MEMORY.
    """
    said = _said_by(error)
    if not isinstance(error, MemoryError) and getattr(error, "errno", None) != errno.ENOMEM:
        words = next((words for kind, words in OUT_OF_MEMORY.items() if isinstance(error, kind)), ())
        if not any(word in said.lower() for word in words):
            return None
    if found := re.search(r"tried to allocate ([\d.]+) (\w+)", said, re.IGNORECASE):
        size, unit = found.groups()
        said = f"torch tried to allocate {f'{int(size):,}' if size.isdecimal() else size} {unit}"
    return f"not enough memory: {first_line(said) or 'how much was asked for is not known'}"


def raise_if_out_of_memory(error: BaseException) -> None:
    """Raise `error` again if it says that memory isn't there: that is nobody's fault."""
    if out_of_memory(error) is not None:
        raise error


def raise_if_nobodys_fault(error: BaseException) -> None:
    """Raise `error` again if it says that memory isn't there, or that somebody or something else ends the work. Who
    takes anything that somebody's code raises for a fault of that code asks this first.
    """
    if is_from_outside(error):
        raise error
    raise_if_out_of_memory(error)


def is_from_outside(error: BaseException) -> bool:
    """Whether it isn't the code's own that it came up in: a signal, another function that has ended, or Ctrl-C and the
    end of a generator, at which no `raise` stands.
    """
    if isinstance(error, Interrupted | OthersEnded) or not isinstance(error, KeyboardInterrupt | GeneratorExit):
        return isinstance(error, Interrupted | OthersEnded)
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return last is None or last.tb_frame.f_code.co_code[last.tb_lasti] != dis.opmap["RAISE_VARARGS"]


def words_of(error: BaseException) -> str:
    """The type of anyone's error and what it says, as one line that can be printed."""
    return one_line(": ".join(filter(None, (type(error).__name__, text_of(error)))))


def first_words_of(error: BaseException) -> str:
    """The same with the first line alone of what it says: torch appends advice that concerns others."""
    return one_line(": ".join(filter(None, (type(error).__name__, first_line(_said_by(error))))))


def text_of(error: BaseException) -> str:
    """What anyone's error says, as one line that can be printed."""
    return one_line(" ".join(_said_by(error).split()))


def notes_of(error: BaseException) -> list[str]:
    """The notes on anyone's error, each a line that can be printed."""
    notes = getattr(error, "__notes__", ())
    return [one_line(note) for note in notes if isinstance(note, str)] if isinstance(notes, list) else []


def _said_by(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException as another:  # its own __str__ may raise anything
        if is_from_outside(another):
            raise
        return f"whose text raised {type(another).__name__}"


def last_line(error: BaseException, folder: Path) -> str | None:
    """file:line of the last line in `folder` that ran before `error` was raised; None where no line of it ran."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(folder)]
    return f"{own[-1].filename}:{own[-1].lineno}" if own else None
