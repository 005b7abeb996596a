"""A disk that refuses: the k-th write, fsync or rename of a run fails, for each k, in each of three ways.

The run must end with one line of error and the exit status 5. It must then go on from the last checkpoint, and end like
a run that never stopped.
"""

from __future__ import annotations

import errno
import io
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.processes import ROOT
from benchmarks.reliability.kills import end_of, forked, quick_runs
from nn_manual.cli import main as nn_manual
from nn_manual.errors import DataError
from nn_manual.run_directory.checkpoints import checkpoints_of, read_checkpoint

ERRORS = (errno.ENOSPC, errno.EIO, errno.EACCES)
RUN = [str(ROOT / "config" / "digits.yaml"), "epochs=2", "checkpoint.every=7 steps"]
#: What may stand below the line of error.
NOTES = ("stopped in epoch ", "to go on from step ", "to start it again: ")


class Disk:
    """Counts the requests to the disk, and refuses the `failing`-th; a write is refused when half of it is written."""

    def __init__(self, failing: int = 0, error: int = 0) -> None:
        self.num_requests, self.failing, self.error = 0, failing, error

    def request(self) -> bool:
        """Count a request. Returns whether it is to fail."""
        self.num_requests += 1
        return self.num_requests == self.failing

    def refuse(self) -> None:
        """Raise the error that the system would raise."""
        raise OSError(self.error, os.strerror(self.error))

    @contextmanager
    def watching(self) -> Iterator[None]:
        """The context in which every request is counted."""
        with ExitStack() as patches:
            for name in ("fsync", "rename", "replace"):
                patches.enter_context(patch.object(os, name, self._asking(getattr(os, name))))
            opened, disk = Path.open, self

            def watched(path: Path, mode: str = "r", *arguments: Any, **settings: Any) -> Any:
                file = opened(path, mode, *arguments, **settings)
                return file if mode in ("r", "rb") else _Watched(file, disk)

            patches.enter_context(patch.object(Path, "open", watched))
            yield

    def _asking(self, function: Any) -> Any:
        def asked(*arguments: Any, **settings: Any) -> Any:
            if self.request():
                self.refuse()
            return function(*arguments, **settings)

        return asked


class _Watched:
    """A file that is written."""

    def __init__(self, file: Any, disk: Disk) -> None:
        self._file, self._disk = file, disk

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> _Watched:
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()

    def write(self, data: Any) -> int:
        if self._disk.request():
            self._file.write(data[: len(data) // 2])
            self._disk.refuse()
        return int(self._file.write(data))


@dataclass(frozen=True)
class Outcome:
    """What is wrong with the end of a run; empty if nothing is."""

    request: int
    error: int
    problem: str


def problem_of(disk: Disk, folder: Path, expected: dict[str, str]) -> str:
    """Run with a disk that fails once, go on, and say what is wrong."""
    run, said = folder / "run", folder / "said"

    def failing() -> None:
        with said.open("w") as stream, redirect_stderr(stream):
            with disk.watching():
                status = nn_manual(["train", *RUN, "--run-dir", str(run)])
            stream.flush()
        os._exit(status)

    status = os.waitstatus_to_exitcode(forked(failing))
    first, *others = said.read_text().splitlines() or [""]
    if status != 5 or not first.startswith("nn-manual: ") or os.strerror(disk.error) not in first:
        return f"status {status}: {first}"
    if not all(line.startswith(NOTES) for line in others):
        return f"also said: {others}"
    if not (run / "config.yaml").exists():
        return ""  # it never began
    try:
        for checkpoint in checkpoints_of(run):
            read_checkpoint(checkpoint)
    except DataError as error:
        return f"a checkpoint doesn't load: {error}"
    resumed = os.waitstatus_to_exitcode(forked(lambda: os._exit(nn_manual(["train", "--resume", str(run)]))))
    if resumed != 0:
        return f"can't go on: status {resumed}"
    end = end_of(run)
    differs = [name for name in expected if end[name] != expected[name]]
    return f"ends otherwise: {', '.join(differs)}" if differs else ""


def campaign(folder: Path, every: int = 1) -> tuple[int, list[Outcome]]:
    """The number of requests of a run, and an outcome for each `every`-th of them, which fails."""
    disk = Disk()
    with disk.watching():
        assert nn_manual(["train", *RUN, "--run-dir", str(folder / "whole")]) == 0
    expected, outcomes = end_of(folder / "whole"), []
    for request in range(1, disk.num_requests + 1, every):
        for error in ERRORS:
            (folder / "one").mkdir()
            outcomes.append(Outcome(request, error, problem_of(Disk(request, error), folder / "one", expected)))
            shutil.rmtree(folder / "one")
    return disk.num_requests, outcomes


def main(every: int = 1) -> bool:
    """Print how many runs met a failing disk, and what was wrong with any. Returns whether nothing was."""
    with quick_runs(), tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()):
        num_requests, outcomes = campaign(Path(folder), every)
    wrong = [outcome for outcome in outcomes if outcome.problem]
    print(f"{num_requests} writes, fsyncs and renames in a run; {len(outcomes)} failed: ", end="")
    print(f"{len(outcomes) - len(wrong)} ended with one line and status 5, and went on to the same end")
    for outcome in wrong:
        print(f"request {outcome.request}, {errno.errorcode[outcome.error]}: {outcome.problem}")
    return not wrong
