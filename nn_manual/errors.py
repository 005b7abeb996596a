"""The errors that end a run with a message instead of a traceback, each with its exit status."""

from __future__ import annotations

import dis
import errno
import functools
import os
import re
import signal
import sys
import traceback
from types import CodeType, FrameType
from typing import Any

from nn_manual.messages.text import first_line, one_line
from nn_manual.messages.users_lines import other_signature

#: What asks to stop, and how a message says it: Ctrl-C, `kill`, and a terminal that is closed.
_WORDS = {"SIGINT": "interrupted", "SIGTERM": "terminated", "SIGHUP": "hung up"}

#: Those of them that this system has: Windows has no SIGHUP.
SIGNALS = tuple(signal.Signals[name] for name in _WORDS if hasattr(signal, name))


class NNManualError(Exception):
    """Base of the errors whose text is written for the user. Each argument is one line; names and values in it may come
    from anywhere. `exit_status` is the exit status of the process.
    """

    exit_status = 1

    def __str__(self) -> str:
        return "\n".join(one_line(str(line)) for line in self.args)


class ConfigError(NNManualError):
    """The command line or the config asks for something that does not exist or does not fit."""

    exit_status = 2


class ComponentError(ConfigError, TypeError):
    """A component's method returned a wrong value, or it lacks one. The text names the class and the method."""


class LayerError(ComponentError):
    """The same of a layer."""


class NoReference(TypeError):  # noqa: N818 - says what is missing, not that something broke
    """Torch has nothing to compare an object of the class `component` with, and the class has no reference."""

    def __init__(self, component: type, words: str) -> None:
        super().__init__(words)
        self.component = component


class GradientMismatch(NNManualError):  # noqa: N818 - the public name that users catch, fixed by design
    """A hand-derived value and torch's differ by more than rounding. `report`, a GradientReport, says where.

    `batch` is the input and the target of the training step in which it was found. If it was found in a slice of the
    batch, they are the slice's, and `first_row` is the row of the batch at which the slice begins; else that is None.
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
    """A signal has asked to stop: SIGINT, SIGTERM or SIGHUP. `exit_status` is what a shell reports for it."""

    def __init__(self, signum: int) -> None:
        super().__init__(_WORDS[signal.Signals(signum).name])
        self.exit_status = 128 + signum


def end_at_once(signum: int) -> None:
    """End this process as the signal does by default. A signal handler calls this. It would be too late to restore the
    default handler for the next signal: that signal may have come already, and then Python prints a traceback.
    Windows knows no end by a signal: there the exit status is that of a shell elsewhere.
    """
    if sys.platform == "win32":
        os._exit(128 + signum)
    signal.signal(signum, signal.SIG_DFL)
    os.kill(os.getpid(), signum)


class FirstSignal:
    """A signal handler: the first signal raises Interrupted, a second one ends the process at once. `signum` is the
    first one's number: where it came within code that drops every error, such as a destructor, nothing but this is left
    of it.
    """

    signum: int | None = None

    def __call__(self, signum: int, frame: FrameType | None) -> None:  # noqa: ARG002 - a signal handler's signature
        """Handle a signal, as Python calls it."""
        if self.signum is not None:
            end_at_once(signum)
        self.signum = signum
        raise Interrupted(signum)


class DataError(NNManualError):
    """A data set, run directory or checkpoint is missing, unreadable, corrupt or can't be written."""

    exit_status = 5


class NotReproducedError(NNManualError):
    """A replay ran another step than the recorded one, or the same step without the recorded difference."""

    exit_status = 6


class ProcessLostError(NNManualError):
    """One of several processes of a run has died, or doesn't answer in time."""

    exit_status = 7


class OthersEnded(BaseException):
    """Several functions run in turns, and another one has raised an error. No layer's own `except Exception` may catch
    it: so it is no Exception.
    """


#: Words, in lower case, by which an error says that memory is short. torch raises RuntimeError, for the memory of the
#: processor or of a GPU, and so does C++, and Python for the stack of a thread. What loads a library raises ImportError
#: or OSError. Python raises SystemError for C code that failed and set no exception, as some does without memory.
OUT_OF_MEMORY: dict[type[Exception], tuple[str, ...]] = {
    RuntimeError: ("allocate memory", "out of memory", "not enough memory", "bad_alloc", "can't start new thread"),
    ImportError: ("failed to map segment", "cannot allocate memory"),
    OSError: ("failed to map segment", "cannot allocate memory"),
    SystemError: ("without setting an exception", "without exception set"),
}


def out_of_memory(error: BaseException) -> str | None:
    """The message for an error that was raised because memory is short, with the size that was asked for if the error
    has it; None for any other error. NumPy and Python raise MemoryError, others the errors in OUT_OF_MEMORY.
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
    """Raise `error` again if it says that memory is short: that is nobody's fault."""
    if out_of_memory(error) is not None:
        raise error


def raise_if_nobodys_fault(error: BaseException) -> None:
    """Raise `error` again if it says that memory is short, or if it comes from outside of the code that ran. Call this
    before an error is reported as the fault of that code.
    """
    if is_from_outside(error):
        raise error
    raise_if_out_of_memory(error)


def is_from_outside(error: BaseException) -> bool:
    """Whether an error comes from outside of the code that ran: from a signal or its handler, from another function
    that has ended, or from Python, which raises KeyboardInterrupt and GeneratorExit at lines without a `raise`.
    """
    if isinstance(error, Interrupted | OthersEnded) or is_from_handler(error):
        return True
    if not isinstance(error, KeyboardInterrupt | GeneratorExit):
        return False
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return last is None or last.tb_frame.f_code.co_code[last.tb_lasti] != dis.opmap["RAISE_VARARGS"]


def is_from_handler(error: BaseException) -> bool:
    """Whether a signal handler has raised an error: the function of one that is set now is in its traceback."""
    handlers = [signal.getsignal(number) for number in signal.valid_signals()]
    codes = {_code_of(handler) for handler in handlers if callable(handler)} - {None}
    return any(frame.f_code in codes for frame, _ in traceback.walk_tb(error.__traceback__))


def _code_of(function: Any) -> CodeType | None:
    """The code of a function, of a method, or of what a partial or an object calls; None for one written in C."""
    while isinstance(function, functools.partial):
        function = function.func
    called = function if hasattr(function, "__code__") else type(function).__call__
    return getattr(called, "__code__", None)


def words_of(error: BaseException) -> str:
    """The type and the text of an error, as one printable line. Where a method of the user's own doesn't take what it
    is called with, its signature stands behind them, as it must be.
    """
    return _words(error, text_of(error))


def first_words_of(error: BaseException) -> str:
    """The same with only the first line of the text: torch appends advice that doesn't concern our users."""
    return _words(error, first_line(_said_by(error)))


def _words(error: BaseException, text: str) -> str:
    other = other_signature(error)
    needed = f"its signature must be {other.needed}" if other is not None and other.needed else ""
    return one_line(": ".join(filter(None, (type(error).__name__, text, needed))))


def text_of(error: BaseException) -> str:
    """The text of an error, as one printable line."""
    return one_line(" ".join(_said_by(error).split()))


def notes_of(error: BaseException) -> list[str]:
    """The notes on an error, each as one printable line."""
    notes = getattr(error, "__notes__", ())
    return [one_line(note) for note in notes if isinstance(note, str)] if isinstance(notes, list) else []


def _said_by(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException as another:  # its own __str__ may raise anything
        if is_from_outside(another):
            raise
        return f"whose text raised {type(another).__name__}"
