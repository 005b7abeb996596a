"""Processes that carry a mark: a reader's code may have started them, and they may have left its group and session."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

#: The variable of the environment with the mark: a process hands it on to all that it starts.
VARIABLE = "NN_MANUAL_EXERCISE_RUN"


def kill_marked(mark: str) -> None:
    """Kill every process with this mark. Linux alone shows the environments of all."""
    if sys.platform != "linux":
        return
    killed: set[int] = set()
    while found := {*_marked(mark)} - killed:  # one may have started another meanwhile
        for process in found:
            with suppress(OSError):
                os.kill(process, signal.SIGKILL)
        killed |= found


def _marked(mark: str) -> Iterator[int]:
    entry = f"{VARIABLE}={mark}".encode()
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # it is another user's, or has ended
            if entry in path.read_bytes().split(b"\0"):
                yield int(path.parent.name)
