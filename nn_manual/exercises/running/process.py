"""Runs readers' files, each in a process of its own that has imported the package before it is asked."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, TypeAlias

from nn_manual.exercises.running.answer import Answer, Failure
from nn_manual.exercises.running.marked import VARIABLE, kill_marked
from nn_manual.exercises.running.request import MARK, Request

#: What a file printed in each case, by its number; under None, before the first one.
Printed: TypeAlias = dict[int | None, str]
#: A process that has had its time is given so many seconds more to say where it was.
GRACE = 3.0


class Worker:
    """A process that waits for a request. It runs one, and ends."""

    def __init__(self, folder: Path | None = None) -> None:
        """`folder` is the current one of the process."""
        code = f"import sys; sys.path[:] = {sys.path!r}; from nn_manual.exercises.running.hand_in import main; main()"
        self._mark = os.urandom(16).hex()
        own = {VARIABLE: self._mark}
        own |= {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
        self._process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=os.environ | own,
            bufsize=0,
            start_new_session=True,  # Ctrl-C is for the one who asked, who ends it
        )
        self._has_ended = False
        assert self._process.stdout is not None
        self._reader = _Reader(self._process.stdout, self.kill)

    def run(self, request: Request) -> tuple[Answer, Printed]:
        """The answer, and what the file printed."""
        process, reader = self._process, self._reader
        assert process.stdin is not None
        reader.most = request.printed
        with suppress(OSError):
            process.stdin.write(json.dumps(request._asdict()).encode() + b"\n")
            process.stdin.flush()
        try:
            with suppress(subprocess.TimeoutExpired):
                process.wait(request.seconds + GRACE)
        finally:
            self.end()
        return _answer(request, process.returncode, reader), _parts(reader.text)

    def end(self) -> None:
        """End the process, and those that it has started."""
        if self._has_ended:
            return
        self._has_ended = True
        self.kill()
        self._process.wait()
        self._reader.join(GRACE)  # one that has left the group may still hold the pipe
        for stream in (self._process.stdin, self._process.stdout if not self._reader.is_alive() else None):
            if stream is not None:
                with suppress(OSError):
                    stream.close()

    def kill(self) -> None:
        """Kill the process, and those that it has started."""
        with suppress(OSError):
            if sys.platform == "win32":
                self._process.kill()
            else:
                os.killpg(self._process.pid, signal.SIGKILL)
        kill_marked(self._mark)


class _Reader(threading.Thread):
    """Reads what a process prints, and kills it where that is far more than `most` bytes."""

    def __init__(self, stream: IO[bytes], kill: Callable[[], None]) -> None:
        super().__init__(daemon=True)
        self.most = 1 << 20
        self._stream, self._kill = stream, kill
        self._read = bytearray()
        self.start()

    @property
    def is_too_much(self) -> bool:
        """Whether the process has printed more than it may, past the stream that says so itself."""
        return len(self._read) > 2 * self.most

    @property
    def text(self) -> str:
        """All that was read."""
        return self._read.decode(errors="replace")

    def run(self) -> None:
        """Read until nobody can write any more."""
        while block := self._stream.read(1 << 16):
            if self.is_too_much:
                self._kill()
            else:
                self._read += block


def _answer(request: Request, status: int | None, reader: _Reader) -> Answer:
    """The answer that the process has left, or why there is none."""
    with suppress(OSError, ValueError):
        return Answer.from_bytes(request.answer.read_bytes())
    dumped = request.dump.read_text(errors="replace") if request.dump.exists() else ""
    found = re.search(rf'File "{re.escape(request.file)}", line (\d+)', dumped)
    line = int(found[1]) if found else 0
    if "Timeout (" in dumped or status is None:
        return Answer(problem=Failure(f"it takes longer than {request.seconds:g} s", line))
    if reader.is_too_much:
        return Answer(problem=Failure(f"it prints more than {request.printed:,} characters"))
    if status < 0 and dumped:
        return Answer(problem=Failure(f"it ends the process with signal {signal.Signals(-status).name}", line))
    if status:
        return Answer(problem=_of_status(request, status, reader.text))
    return Answer(problem=Failure("it ends the process before there is a result"))


def _of_status(request: Request, status: int, printed: str) -> Failure:
    """Why a process has ended with a status: the error that it printed last, if it did."""
    lines = re.findall(rf'File "{re.escape(request.file)}", line (\d+)', printed)
    line = int(lines[-1]) if lines else 0
    last = printed.rstrip().rpartition("\n")[2]
    if last.partition(":")[0].endswith("MemoryError"):
        return Failure(f"it takes more than {request.memory / 2**30:g} GiB of memory: MemoryError", line)
    error = f": {last}" if "Traceback (most recent call last)" in printed else ""
    return Failure(f"it ends the process, with status {status}{error}", line)


def _parts(printed: str) -> Printed:
    """What was printed, by the case that it was printed in."""
    first, *others = re.split(rf"{MARK}(\d+)\n", printed)
    parts: Printed = {None: first}
    parts |= {int(case): text for case, text in zip(others[::2], others[1::2], strict=True)}
    return {case: text for case, text in parts.items() if text.strip()}


def run_file(request: Request, worker: Worker | None = None) -> tuple[Answer, Printed]:
    """Run a file, in a folder for its answer that is removed behind it."""
    with tempfile.TemporaryDirectory() as folder:
        return (worker or Worker()).run(request._replace(folder=folder))


def file_of(path: Path) -> str:
    """A path as tracebacks have it."""
    return str(path.absolute())
