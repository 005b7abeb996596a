"""Processes that measure: each is a new process, on the code of one tree."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")

SCRIPTS = Path(__file__).resolve().parents[1]
#: The tree that this file belongs to.
ROOT = SCRIPTS.parent


def run_module(
    module: str, tree: Path, *arguments: str, stdout: int | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a module to its end, with the nn_manual of `tree`; `stdout` is subprocess's.

    It starts without OPENBLAS_CORETYPE and similar variables: a preset older core halves numpy's speed.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OPENBLAS_")}
    environment["PYTHONPATH"] = os.pathsep.join([str(tree), str(SCRIPTS)])
    # -P: without it the current folder comes before PYTHONPATH, and with it perhaps another nn_manual.
    command = [sys.executable, "-P", "-m", module, *arguments]
    return subprocess.run(command, env=environment, stdout=stdout, text=True, check=False)


def on_all_cores(function: Callable[[T], U], items: Iterable[T]) -> Iterator[U]:
    """What a function of a module returns for each item, in the order of the items. Each core has a process with one
    thread.
    """
    context = multiprocessing.get_context("spawn")  # a fork of a process whose BLAS has threads can hang
    with ProcessPoolExecutor(mp_context=context, initializer=_one_thread) as pool:
        yield from pool.map(function, items)


def _one_thread() -> None:
    import torch  # not at the top: a benchmark that imports torch first sets up the threads that it times

    torch.set_num_threads(1)


def status_of(key: str) -> int:
    """Bytes of this process's memory, by the kernel's name for them. The peak of getrusage would begin with the
    parent's.
    """
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(key))
    return 1024 * int(line.split()[1])
