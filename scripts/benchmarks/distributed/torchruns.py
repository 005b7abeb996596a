"""Processes that torchrun starts on this machine, of one thread each."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import IO

from benchmarks.processes import ROOT, SCRIPTS


def torchrun(
    size: int, module: str, *arguments: str, restarts: int = 0, output: IO[str] | None = None
) -> subprocess.Popen[str]:
    """`size` processes that run a module of this tree."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(SCRIPTS)]), "OMP_NUM_THREADS": "1"}
    options = ["--standalone", f"--nproc-per-node={size}", f"--max-restarts={restarts}", "-m", module]
    command = [sys.executable, "-m", "torch.distributed.run", *options, *arguments]
    return subprocess.Popen(command, env=environment, stdout=output, stderr=output and subprocess.STDOUT, text=True)


def train(size: int, directory: Path, *arguments: str) -> int:
    """The exit status of a training by so many processes; what it prints goes into a file beside its directory."""
    with Path(f"{directory}.log").open("w") as log:
        return torchrun(size, "nn_manual", "train", *arguments, "--run-dir", str(directory), output=log).wait()
