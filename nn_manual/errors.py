"""The errors that end a run with a message instead of a traceback, each with its exit status."""

from __future__ import annotations

import errno
import os
import re
import signal
import traceback
from pathlib import Path
from typing import Any

from nn_manual.messages import one_line

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


#: In what a RuntimeError says of memory that isn't there: torch's, of the processor's and of a GPU's, and C++'s.
OUT_OF_MEMORY = ("allocate memory", "out of memory", "not enough memory", "bad_alloc")
#: In what an ImportError says of a library for which there is no memory.
NOT_LOADED = "failed to map segment"


def out_of_memory(error: BaseException) -> str | None:
    """What to say of an error that memory which isn't there has raised, with the size that was asked for where the
    error has it; None of any other error. NumPy and Python raise MemoryError, torch RuntimeError, the system OSError,
    and what loads a library ImportError.
    """
    if isinstance(error, RuntimeError):
        said = str(next(iter(error.args), ""))
        if not any(words in said.lower() for words in OUT_OF_MEMORY):
            return None
        found = re.search(r"tried to allocate ([\d.]+) (\w+)", said, re.IGNORECASE)
        size, unit = found.groups() if found else ("", "")
        if found:
            said = f"torch tried to allocate {f'{int(size):,}' if size.isdecimal() else size} {unit}"
    elif (
        isinstance(error, MemoryError)
        or (isinstance(error, OSError) and error.errno == errno.ENOMEM)
        or (isinstance(error, ImportError) and NOT_LOADED in str(error))
    ):
        said = str(error)
    else:
        return None
    return f"not enough memory: {one_line(said.partition(chr(10))[0]) or 'how much was asked for is not known'}"


def raise_if_out_of_memory(error: BaseException) -> None:
    """Raise `error` again if it says that memory isn't there. Who takes any error of somebody's code for a fault of
    that code asks this first: it is nobody's fault.
    """
    if out_of_memory(error) is not None:
        raise error


def last_line(error: BaseException, folder: Path) -> str | None:
    """file:line of the last line in `folder` that ran before `error` was raised; None where no line of it ran."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(folder)]
    return f"{own[-1].filename}:{own[-1].lineno}" if own else None
