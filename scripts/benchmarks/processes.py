"""Processes that measure: each starts afresh, on the code of one tree."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[1]
#: The tree that this file belongs to.
ROOT = SCRIPTS.parent


def run_module(module: str, tree: Path, *, stdout: int | None = None) -> subprocess.CompletedProcess[str]:
    """Run a module to its end, with the nn_manual of `tree`; `stdout` is subprocess's.

    It starts without OPENBLAS_CORETYPE and the like: a preset older core halves numpy's speed.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OPENBLAS_")}
    environment["PYTHONPATH"] = os.pathsep.join([str(tree), str(SCRIPTS)])
    # -P: without it the current folder comes before PYTHONPATH, and with it perhaps another nn_manual.
    return subprocess.run([sys.executable, "-P", "-m", module], env=environment, stdout=stdout, text=True, check=False)
