"""check-function's battery in a process of its own: a kernel may end it, and that is said, too."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import IO, Any, NamedTuple, TypeAlias

from nn_manual.cli.terminal import clear_line, open_standard_streams
from nn_manual.errors import SIGNALS, ConfigError, Interrupted, NNManualError

#: Seconds between two looks at whether the process still lives: what it has started may keep its end of the pipe open.
LOOK_AFTER = 0.2
#: Seconds that it has to end after its last word: what a kernel has left to do at exit.
ENDS_WITHIN = 10
#: Of Linux's prctl: the signal that a process gets when its parent has ended.
PR_SET_PDEATHSIG = 1


#: Function, reference, shapes, sizes, dtypes and rows to skip, as on the command line.
Arguments: TypeAlias = tuple[str, str, str, str, list[str], list[str]]


class Verdict(NamedTuple):
    """The text of a report, and whether the function passed."""

    text: str
    passed: bool

    def __str__(self) -> str:
        return self.text


def check_in_own_process(*arguments: *Arguments) -> Verdict:
    """`check_named_function(*arguments)` in a new process.

    Raises what is wrong with the arguments, and ConfigError where the process ends while it imports. Where it ends
    later, a kernel has ended it, and the verdict says in which row.
    """
    reader, writer = Pipe(duplex=False)
    with tempfile.TemporaryFile("w+") as dump, reader:
        with writer:
            process = _start(writer, dump, arguments)
        try:
            row = None
            for what, value in _received(reader, process):
                if what == "row":
                    row = value
                    continue
                with suppress(subprocess.TimeoutExpired):
                    process.wait(ENDS_WITHIN)
                if what == "error":
                    raise value
                return Verdict(*value)
            return _ended(process.wait(), row, dump, arguments)
        finally:
            process.kill()
            process.wait()
            clear_line()  # of the bar that it may have left


def _start(writer: Connection, dump: IO[str], arguments: Arguments) -> subprocess.Popen[bytes]:
    descriptors = (writer.fileno(), dump.fileno())
    # The path comes first: the current folder, where Python looks by itself, may have a random.py.
    given = f"*{descriptors}, {os.getpid()}, {arguments!r}"
    code = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import run; run({given})"
    held_back = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # until it has no traceback for them
    try:
        return subprocess.Popen([sys.executable, "-c", code], pass_fds=descriptors)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held_back)


def _received(reader: Connection, process: subprocess.Popen[bytes]) -> Iterator[tuple[str, Any]]:
    """What the process says, until it ends."""
    with suppress(EOFError, OSError):  # its end of the pipe is closed
        while reader.poll(LOOK_AFTER) or process.poll() is None or reader.poll():
            if reader.poll():
                yield reader.recv()


def _ended(status: int, row: str | None, dump: IO[str], arguments: Arguments) -> Verdict:
    """What is said of a process that ended without a last word."""
    if -status in SIGNALS:
        raise Interrupted(-status)
    from nn_manual.check.functions.raised import place_in_dump

    dump.seek(0)
    how = f"signal {signal.Signals(-status).name}" if status < 0 else f"status {status}"
    words = f"the process ended with {how}{place_in_dump(dump.read())}"
    if row is None:
        raise ConfigError(f"{words}, while {arguments[0]} and {arguments[1]} were imported")
    return Verdict(f"gradient check failed: {arguments[0]}: {words}, in {row}", passed=False)


def run(writer: int, dump: int, parent: int, arguments: Arguments) -> None:
    """What the process does: it says which row begins, and in the end the verdict or what was raised."""
    _end_with(parent)
    open_standard_streams()
    for signum in SIGNALS:
        if signal.getsignal(signum) is not signal.SIG_IGN:
            signal.signal(signum, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    for descriptor in (writer, dump):
        os.set_inheritable(descriptor, False)
    faulthandler.enable(dump, all_threads=False)
    with Connection(writer, readable=False) as connection:
        from nn_manual.check.functions.from_text import check_named_function

        try:
            report = check_named_function(*arguments, starting=lambda row: _say(connection, "row", row))
        except (NNManualError, MemoryError) as error:
            _say(connection, "error", error)
        else:
            _say(connection, "verdict", (str(report), report.passed))


def _end_with(parent: int) -> None:
    """Have a parent that is killed, and so can't end this process, take it along."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before that
        raise SystemExit(1)


def _say(connection: Connection, what: str, value: object) -> None:
    try:
        connection.send((what, value))
    except BrokenPipeError:  # the parent has gone: nobody is left to hear of it
        raise SystemExit(1) from None
