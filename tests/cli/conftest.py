"""The command in a process of its own, and a folder with a small config."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest
from runs import write_config

from nn_manual.errors import SIGNALS

COMMAND = Path(sysconfig.get_path("scripts")) / "nn-manual"

#: More epochs than a test waits for.
ENDLESS = "epochs=1000000"
UNCHECKED = "gradient_check.every=0"

#: A process that hasn't ended after so many seconds never will, on the slowest machine too.
HANGING = 600


@pytest.fixture(autouse=True)
def _restore_signal_handler() -> Iterator[None]:
    """main() is made to own its process."""
    before = {signum: signal.getsignal(signum) for signum in SIGNALS}
    yield
    for signum, handler in before.items():
        signal.signal(signum, handler)


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with small.yaml in it."""
    monkeypatch.chdir(tmp_path)
    write_config(tmp_path)
    return tmp_path


def take_signals() -> None:
    """Let a new process meet its signals as one does that a terminal has started. Whoever runs the tests may ignore
    some: nohup ignores SIGHUP, a shell that starts them with & SIGINT and SIGQUIT. What they start takes that over.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for signum in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(signum, signal.SIG_DFL)


def start(
    *arguments: str,
    stdin: int | None = None,
    stdout: int | IO[str] = subprocess.PIPE,
    stderr: int = subprocess.PIPE,
    file_limit: int = resource.RLIM_INFINITY,
) -> subprocess.Popen[str]:
    """nn-manual in a process of its own, in which no file grows beyond `file_limit` bytes."""

    def prepare() -> None:
        take_signals()
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, resource.RLIM_INFINITY))

    # Unbuffered, nothing would be left to write, and to fail, at exit.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    if file_limit != resource.RLIM_INFINITY:  # Python would leave cut-off files of compiled modules in the checkout
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
    return subprocess.Popen(
        [COMMAND, *arguments],
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        preexec_fn=prepare,
        env=environment,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Exit status, standard output, standard error."""
    out, err = process.communicate(timeout=HANGING)
    return process.returncode, out, err
