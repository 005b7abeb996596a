"""The lock of a run directory: one process at a time trains a run."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from nn_manual.errors import DataError

#: The file in the directory whose lock stands for the directory's own where the system has none for directories.
LOCK_FILE = ".lock"


@contextmanager
def lock(directory: Path) -> Iterator[None]:
    """The context in which no other process has the directory's lock. Raises DataError where one has it already."""
    with ExitStack() as held:
        try:
            _take(directory, held)
        except BlockingIOError as error:
            raise DataError(f"{directory}: another process is training this run") from error
        except OSError as error:
            raise DataError(f"{directory}: can't be locked: {error.strerror}") from error
        yield


def _take(directory: Path, held: ExitStack) -> None:
    """Take the lock, and let `held` give it back. Raises BlockingIOError where another process has it."""
    if sys.platform == "win32":  # it doesn't open directories
        from filelock import FileLock, Timeout

        try:
            held.enter_context(FileLock(directory / LOCK_FILE, blocking=False))
        except Timeout as error:
            raise BlockingIOError from error
        return
    import fcntl  # Windows has none

    descriptor = os.open(directory, os.O_RDONLY)
    held.callback(os.close, descriptor)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
