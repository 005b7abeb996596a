"""The files of a run, written so that nobody ever finds half of one: replaced whole, or growing line by line.

A file may be read while it is written, or after its writer was killed. A file that is replaced is whole at every
instant, old or new; a file that grows lacks at most the end of its last line.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from nn_manual.errors import DataError, raise_if_out_of_memory
from nn_manual.opening import not_to_be_replaced
from nn_manual.run_directory.lock import LOCK_FILE


def check_exists(path: Path, kind: str = "run") -> None:
    """Raise DataError, naming `path`, if there is no directory to read a run, a checkpoint or a bundle from."""
    if not os.path.lexists(path):
        raise DataError(f"{path}: no such {kind}")
    if not path.is_dir():
        raise DataError(f"{path}: is no {kind} directory")


def check_run_directory(path: Path) -> None:
    """Raise DataError, naming `path`, if more than its lock is in it, or if it is no directory. It needn't exist."""
    try:
        contents = sorted({*os.listdir(path)} - {LOCK_FILE})
    except FileNotFoundError:
        return
    except OSError as error:
        raise DataError(f"{path}: the run directory can't be made: {error.strerror}") from error
    if contents:
        raise DataError(f"{path}: the run directory exists and isn't empty, it holds {contents[0]}")


def create_run_directory(path: Path) -> Path:
    """Make the directory `path`, with its parents, and return it. An empty one that exists is used.

    Raises DataError, naming `path`, if something is in it, if it is no directory or if it can't be made.
    """
    check_run_directory(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{path}: the run directory can't be made: {error.strerror}") from error
    return path


def write_atomically(path: Path, data: bytes) -> None:
    """Write `data` to the file `path`, so that whoever opens `path` finds all of it or what was there before.

    The bytes go to a temporary file in the same directory (a rename is atomic only within one file system), reach
    the disk, and then take the name. If anything stops this, KeyboardInterrupt included, the temporary file is
    removed. Raises DataError, naming `path`, where the system refuses, and where `path` is a device, a FIFO or a
    socket, which others use.
    """
    if not path.name:  # of "." and "/"
        raise DataError(f"{path}: can't be written: Is a directory")
    with suppress(OSError, ValueError):  # nothing is there, or writing will say what is wrong
        if problem := not_to_be_replaced(path):
            raise DataError(f"{path}: {problem}")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        try:
            temporary.unlink(missing_ok=True)  # it may be a link to another file
            with temporary.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync_directory(path.parent)
    except OSError as error:
        raise DataError(f"{path}: can't be written: {error.strerror}") from error


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write one JSON object, atomically; null stands for a float that isn't finite. Raises DataError as
    `write_atomically` does.
    """
    write_atomically(path, (json.dumps(_finite_or_none(content), indent=2, allow_nan=False) + "\n").encode())


def remove_temporary(folder: Path) -> None:
    """Remove the temporary files and folders that a killed process has left in `folder`. If one is a link, only the
    link is removed. Raises DataError, naming the path, where the system refuses.
    """
    for path in folder.glob(".*.tmp"):
        try:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
        except OSError as error:
            raise DataError(f"{path}: can't be removed: {error.strerror}") from error


def sync_directory(path: Path) -> None:
    """Bring a directory's entries to the disk: without that, a power cut can undo a rename. Windows doesn't open
    directories, and keeps a journal of their entries by itself.
    """
    if sys.platform == "win32":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# One encoder for all lines: json.dumps with options would build a new one for each.
_encode = json.JSONEncoder(allow_nan=False).encode


class JsonLines:
    """A file that grows by one JSON object a line: `with JsonLines(path) as lines: lines.append({"step": 1})`.

    Floats are written as their repr, so they read back to the same bits. JSON has no infinity and no NaN: both are
    written as null. Lines wait in memory until `flush` or `close`, or until there are BUFFERED_LINES of them. They
    reach the file whole: where the disk refuses, the part of a line that was written is cut off again.

    Without a `size`, the file is a new one: it is an error if `path` exists. With a `size`, the file is cut back to
    that many bytes, and grows from there. A file with hard links is copied first: after `cp -al`, it is also the file
    of another run. Opening, flushing and closing raise DataError, naming the file.

    A `listener` is called with each record that is appended.
    """

    #: A line takes about 150 bytes, so this is 600 KB: enough that system calls take no time, little enough to lose.
    BUFFERED_LINES = 4096

    def __init__(
        self, path: Path, size: int | None = None, listener: Callable[[dict[str, Any]], None] | None = None
    ) -> None:
        self.path, self._listener = path, listener
        self._lines: list[str | Callable[[], str]] = []
        try:
            if size is not None and path.stat().st_nlink > 1:
                write_atomically(path, read_file(path)[:size])
            self._file = path.open("xb" if size is None else "r+b", buffering=0)
            if size is not None:
                self._file.truncate(self._file.seek(size))
        except OSError as error:
            raise DataError(f"{path}: can't be written: {error.strerror}") from error

    def append(self, record: dict[str, Any]) -> None:
        """Add one line. Raises TypeError for a value that JSON can't hold."""
        self._append(self.encode(record))
        if self._listener is not None:
            self._listener(record)

    def append_later(self, line: Callable[[], str]) -> None:
        """Add one line. `line` is called when it is written, and returns its JSON text."""
        self._append(line)

    def _append(self, line: str | Callable[[], str]) -> None:
        self._lines.append(line)
        if len(self._lines) >= self.BUFFERED_LINES:
            self.flush()

    @staticmethod
    def encode(record: dict[str, Any]) -> str:
        """A record as JSON."""
        try:
            return _encode(record)
        except ValueError:  # an infinity or NaN: rare, so that looking for it costs the other lines nothing
            return _encode(_finite_or_none(record))

    def flush(self) -> None:
        """Write the lines that wait in memory."""
        # Taken out first, so that no line is written twice if something below fails.
        lines, self._lines = self._lines, []
        text = "".join(f"{line if isinstance(line, str) else line()}\n" for line in lines)
        remaining = memoryview(text.encode())
        size_before = self._file.tell()
        try:
            while remaining:
                remaining = remaining[self._file.write(remaining) :]
        except OSError as error:
            self._file.truncate(self._file.seek(size_before))
            raise DataError(f"{self.path}: can't be written: {error.strerror}") from error

    def sync(self) -> int:
        """Flush, and bring the file to the disk; returns its size in bytes."""
        self.flush()
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise DataError(f"{self.path}: can't be written: {error.strerror}") from error
        return self._file.tell()

    def close(self) -> None:
        """Flush, and close the file."""
        try:
            self.flush()
        finally:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _finite_or_none(value: Any) -> Any:
    """The value with None in the place of every infinity and NaN, which JSON can't hold."""
    if isinstance(value, Mapping):
        return {key: _finite_or_none(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite_or_none(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_file(path: Path) -> bytes:
    """The file's bytes. Raises DataError, naming `path`, where the system refuses."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise_if_out_of_memory(error)
        raise DataError(f"{path}: can't be read: {error.strerror}") from error


def sha256_of_file(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal. Raises DataError as `read_file` does."""
    return hashlib.sha256(read_file(path)).hexdigest()
