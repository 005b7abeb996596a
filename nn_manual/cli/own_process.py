"""check-function in a process of its own: a kernel may end the process, or hang, and this is reported, too.

Not on Windows, which passes no pipe to a process by its number.
"""

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
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from nn_manual.cli.terminal import clear_line, own_streams
from nn_manual.errors import SIGNALS, ConfigError, Interrupted, NNManualError, out_of_memory
from nn_manual.functions.request import Request
from nn_manual.messages.text import one_line

if TYPE_CHECKING:
    from nn_manual.functions.function_report import BatteryRow

assert sys.platform != "win32"  # a type checker for Windows reads no further

#: Every so many seconds we look whether the process still lives: its own children may keep its end of the pipe open.
LOOK_AFTER = 0.2
#: How many seconds it has to end after its last message: a kernel may have work left to do at exit.
ENDS_WITHIN = 10
#: How often a kernel may end it before all other rows are skipped: each time costs the start of another process.
MOST_ENDS = 8
#: How the name of the work under way begins if it is a row.
ROW = "row "
#: How what faulthandler writes begins if it has ended a process that took too long.
TOO_LONG = "Timeout ("
#: An option of Linux's prctl: which signal a process gets when its parent has ended.
PR_SET_PDEATHSIG = 1


class FunctionVerdict(NamedTuple):
    """The text of a report, and whether the function passed."""

    text: str
    passed: bool

    def __str__(self) -> str:
        return self.text


def check_in_own_process(request: Request) -> FunctionVerdict:
    """Run `check_named_function(request)` in a new process. If a kernel ends the process in a row, or takes longer than
    the request allows, another process goes on behind that row.

    Raises the errors of the arguments, and ConfigError where the process ends, or takes too long, while it imports.
    """
    known: dict[str, tuple[str, str]] = {}
    suspected: set[str] = set()
    for _ in range(MOST_ENDS):
        if verdict := _checked(request, known, suspected):
            return verdict
    known[""] = ("skipped", f"the process of {request.function} had ended {MOST_ENDS} times")
    verdict = _checked(request, known, suspected)
    assert verdict is not None  # no row is left in which it could end
    return verdict


def _checked(request: Request, known: dict[str, tuple[str, str]], suspected: set[str]) -> FunctionVerdict | None:
    """The verdict of a process that runs all rows but the known ones; None where the process ended in a row. Then this
    row is known, too. If the process ended in the reference, a kernel may have damaged the memory before: the reference
    is only suspected, and the row runs again as the first one in another process.
    """
    parent_end, child_end = Pipe()
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="backslashreplace") as dump, parent_end:
        with child_end:
            process = _start(child_end, dump)
        doing = None
        try:
            parent_end.send((request, known))
            for what, value in _received(parent_end, process):
                if what == "begins":
                    doing = value
                elif what == "row":
                    known.update([value])
                else:
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(ENDS_WITHIN)
                    if what == "error":
                        raise value
                    return FunctionVerdict(*value)
            words, by_reference = _how_it_ended(process.wait(), dump, request.timeout)
            if doing is None:
                raise ConfigError(f"{words}, while {_imported(request)} imported")
            if not doing.startswith(ROW):
                if by_reference:
                    raise ConfigError(f"the reference {request.reference}: {words}, in {doing}")
                text = one_line(f"gradient check failed: {request.function}: {words}, in {doing}")
                return FunctionVerdict(text, passed=False)
            row = doing.removeprefix(ROW)
            if not by_reference:
                known[row] = ("WRONG", words)
            elif row in suspected:
                known[row] = ("skipped", f"in the reference {words}")
            else:
                suspected.add(row)
            return None
        except Interrupted as interrupted:
            if doing is not None:
                interrupted.add_note(f"in {doing} of {request.function}")
            raise
        finally:
            process.kill()
            process.wait()
            clear_line()  # it may have left a bar


def _imported(request: Request) -> str:
    """What was imported, in words."""
    names = [name for name in (request.function, request.backward, request.reference) if name is not None]
    return f"{' and '.join(names)} {'was' if len(names) == 1 else 'were'}"


def _start(connection: Connection, dump: IO[str]) -> subprocess.Popen[bytes]:
    descriptors = (connection.fileno(), dump.fileno())
    # sys.path is set first: by itself, Python also looks into the current folder, which may have a random.py.
    given = f"*{descriptors}, {os.getpid()}"
    code = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import run; run({given})"
    held_back = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # until it handles them without a traceback
    try:
        return subprocess.Popen([sys.executable, "-c", code], pass_fds=descriptors)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held_back)


def _received(reader: Connection, process: subprocess.Popen[bytes]) -> Iterator[tuple[str, Any]]:
    """The messages of the process, until it ends."""
    with suppress(EOFError, OSError):  # its end of the pipe is closed
        while reader.poll(LOOK_AFTER) or process.poll() is None or reader.poll():
            if reader.poll():
                yield reader.recv()


def _how_it_ended(status: int, dump: IO[str], timeout: float | None) -> tuple[str, bool]:
    """How a process ended that has sent no last message, in words; and whether it ended in the reference."""
    if -status in SIGNALS:
        raise Interrupted(-status)
    from nn_manual.functions.exceptions import is_of_the_reference_in_dump, place_in_dump

    dump.seek(0)
    dumped = dump.read()
    if dumped.startswith(TOO_LONG):
        of_main_thread = dumped.rpartition("\nThread ")[2]
        return f"it took over {timeout:g} s{place_in_dump(of_main_thread)}", is_of_the_reference_in_dump(of_main_thread)
    how = f"signal {signal.Signals(-status).name}" if status < 0 else f"status {status}"
    return f"the process ended with {how}{place_in_dump(dumped)}", is_of_the_reference_in_dump(dumped)


@own_streams()
def run(own_end: int, dump: int, parent: int) -> None:
    """What the process does: it receives the arguments and the known rows. It sends a message when a row begins and
    when it ends, and at last the verdict or the error that was raised.
    """
    _end_with(parent)
    for signum in SIGNALS:
        if signal.getsignal(signum) is not signal.SIG_IGN:
            signal.signal(signum, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    for descriptor in (own_end, dump):
        os.set_inheritable(descriptor, False)
    faulthandler.enable(dump, all_threads=False)
    with Connection(own_end) as connection:
        from nn_manual.functions.from_text import check_named_function

        def end_later() -> None:
            if request.timeout is not None:
                faulthandler.dump_traceback_later(request.timeout, exit=True, file=dump)

        def told(what: str | BatteryRow) -> None:
            if isinstance(what, str):
                _say(connection, "begins", what)
                end_later()
            else:
                faulthandler.cancel_dump_traceback_later()
                _say(connection, "row", (what.name, (what.verdict, what.note)))  # a Row itself would need torch

        try:
            request: Request
            request, known = connection.recv()
            end_later()  # the user's module may hang while it is imported
            report = check_named_function(request, told, known)
        except (NNManualError, MemoryError, RuntimeError) as error:
            if not isinstance(error, NNManualError) and out_of_memory(error) is None:
                raise
            _say(connection, "error", error)
        else:
            _say(connection, "verdict", (str(report), report.passed))


def _end_with(parent: int) -> None:
    """Let this process end when its parent does: a parent that is killed can't end it itself."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # the parent ended before
        raise SystemExit(1)


def _say(connection: Connection, what: str, value: object) -> None:
    try:
        connection.send((what, value))
    except BrokenPipeError:  # the parent has gone: nobody is left to hear of it
        raise SystemExit(1) from None
