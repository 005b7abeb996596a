"""Standard output and standard error that may be closed, full, or a pipe without a reader."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any, TextIO


def open_standard_streams() -> None:
    """Put the null device where a standard stream is closed (`>&-`): otherwise the next file that is opened, a log or
    the weights, would take its number, and what a library prints would land there. Characters that the terminal lacks
    are written as escapes.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - for the rest of the process
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - for the rest of the process
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def clear_line() -> None:
    """Where standard error is a terminal, have the next text begin on an empty line: what drew a bar may have ended."""
    if sys.stderr.isatty():
        with going_on_without_a_reader():
            print("\r\x1b[K", end="", file=sys.stderr)


class _Silenced:
    """A stream that goes silent, and stays so, once it can't be written."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write `text`, or nothing."""
        try:
            return self._stream.write(text)
        except OSError:
            self._silence()
        return len(text)

    def flush(self) -> None:
        """Flush, or go silent."""
        try:
            self._stream.flush()
        except OSError:
            self._silence()

    def _silence(self) -> None:
        # Under the stream: what waits in its buffer is written at exit, too.
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, self._stream.fileno())
        os.close(null)


@contextmanager
def going_on_without_a_reader() -> Iterator[None]:
    """The context in which nothing is reported as failed because nobody can be told."""
    streams: Any = [stream and _Silenced(stream) for stream in (sys.stdout, sys.stderr)]
    with redirect_stdout(streams[0]), redirect_stderr(streams[1]):
        try:
            yield
        finally:
            for stream in filter(None, streams):
                stream.flush()
