"""Says which tests run which of the faults' lines, and how long each test takes. It is a plugin of pytest, and a module
that the changed files import.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

#: The folder of what is found.
FOLDER = "NN_MANUAL_PLANTED"

_seen: set[tuple[str, int]] = set()


def _append(kind: str, line: str) -> None:
    with (Path(os.environ[FOLDER]) / f"{kind}-{os.getpid()}").open("a", encoding="utf-8") as file:
        file.write(line + "\n")


def hit(number: int) -> None:
    """The line of the fault `number` is about to run."""
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    if test and (test, number) not in _seen:
        _seen.add((test, number))
        _append("hit", json.dumps([number, test]))


def pytest_runtest_logreport(report: Any) -> None:
    """Note how long a test took, and whether it is slow by its mark."""
    if "PYTEST_XDIST_WORKER" not in os.environ and report.when == "call":
        _append("test", json.dumps([report.nodeid, report.duration, "slow" in report.keywords]))
