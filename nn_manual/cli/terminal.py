"""Standard output and standard error, which may be closed, full, or a pipe without a reader."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import Any, BinaryIO, TextIO


class _Own(io.TextIOWrapper):
    """A standard stream with a descriptor of its own. Code that runs here can't close it: not with
    `sys.stdout.close()`, not with `os.close(1)`, and not with a stream around `sys.stdout.buffer`, which is closed when
    nobody holds it any more. Characters that the terminal lacks are written as escapes.
    """

    _lent: BinaryIO | None = None

    def __init__(self, stream: TextIO) -> None:
        is_unbuffered = getattr(stream, "write_through", False)
        super().__init__(
            os.fdopen(os.dup(stream.fileno()), "wb", buffering=0 if is_unbuffered else -1),
            encoding=stream.encoding,
            errors="backslashreplace",
            line_buffering=bool(stream.line_buffering),
            write_through=is_unbuffered,
        )

    @property
    def buffer(self) -> BinaryIO:
        """A stream for bytes, with another descriptor of the same file."""
        if self._lent is None or self._lent.closed:
            self._lent = os.fdopen(os.dup(self.fileno()), "wb")
        return self._lent

    def detach(self) -> BinaryIO:
        """The same as `buffer`: this stream can still be used."""
        return self.buffer

    def close(self) -> None:
        """Flush. Only the command closes the stream, with `end`."""
        self.flush()

    def end(self) -> None:
        """Write what waits, if that is possible, and close."""
        for write in (self._lent.close if self._lent else self.flush, self.flush, super().close):
            with suppress(OSError, ValueError):
                write()


@contextmanager
def own_streams() -> Iterator[TextIO]:
    """The context in which standard output and standard error stay usable, whatever code that runs here does to them.
    At its end, `sys.stdout` and `sys.stderr` are restored. Gives standard output.

    The null device takes the place of a standard stream that is closed (`>&-`). Otherwise the next file that is opened,
    a log or the weights, would get its number, and what a library prints would be written there.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
    before = sys.stdout, sys.stderr
    with ExitStack() as stack:
        sys.stdout, sys.stderr = (_own(stream, stack) for stream in before)
        out = sys.stdout
        try:
            yield out
        finally:
            sys.stdout, sys.stderr = before


def _own(stream: TextIO | None, stack: ExitStack) -> TextIO:
    """The stream with a descriptor of its own; the stream itself if it has none, as in a test or a notebook."""
    if stream is None:
        return stack.enter_context(open(os.devnull, "w", encoding="utf-8"))
    try:
        own = _Own(stream)
        stream.flush()
    except (OSError, ValueError, AttributeError):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
        return stream
    stack.callback(own.end)
    return own


def clear_line() -> None:
    """If standard error is a terminal, let the next text begin on an empty line: a process may have left a bar."""
    if sys.stderr.isatty():
        with going_on_without_a_reader():
            print("\r\x1b[K", end="", file=sys.stderr)


def is_closed(stream: TextIO) -> bool:
    """Whether the stream, or the one under it, is closed."""
    try:
        return stream.closed
    except ValueError:  # what is under it was taken away
        return True


class _Silenced:
    """A stream that writes nothing any more once it can't be written or somebody has closed it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def isatty(self) -> bool:
        """Whether it is a terminal: one that somebody has closed is none."""
        return not is_closed(self._stream) and self._stream.isatty()

    def write(self, text: str) -> int:
        """Write `text`, or nothing if that isn't possible."""
        with self._going_silent():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush, or do nothing if that isn't possible."""
        with self._going_silent():
            self._stream.flush()

    @contextmanager
    def _going_silent(self) -> Iterator[None]:
        try:
            yield
        except OSError:  # the descriptor is replaced: what waits in the stream's buffer is also written at exit
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self._stream.fileno())
            os.close(null)
        except ValueError:
            if not is_closed(self._stream):
                raise


@contextmanager
def going_on_without_a_reader() -> Iterator[None]:
    """The context in which the work goes on although nobody reads standard output or standard error any more."""
    streams: Any = [stream and _Silenced(stream) for stream in (sys.stdout, sys.stderr)]
    with redirect_stdout(streams[0]), redirect_stderr(streams[1]):
        try:
            yield
        finally:
            for stream in filter(None, streams):
                stream.flush()
