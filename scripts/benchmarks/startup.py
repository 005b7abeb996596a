"""How long a training takes from the start of its process: `python scripts/benchmark.py startup`.

Plain, compiled with an empty cache, compiled with a full cache, and torch eager: each start is a process of its own,
one after the other, in rounds. A user waits for the end of the first step, with all imports, the data, tracing,
compiling and the choice of a BLAS, and then for the end of the 100th.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.processes import ROOT, SCRIPTS

NUM_ROUNDS, NUM_STEPS = 5, 100

#: By file of config/: the most seconds that compiling may take, and that a plan from the cache may.
LIMITS = {"digits": (5.0, 2.0), "gpt": (30.0, 2.0)}

#: In the order of the table: who trains, and whether compiled code is kept from start to start.
STARTS = {
    "plain": ("plain", True),
    "compiled, cold": ("compiled", False),
    "compiled, warm": ("compiled", True),
    "torch": ("torch", True),
}


class Start(NamedTuple):
    """Seconds from the start of a process to the end of its first step, and of its last."""

    first: float
    last: float


def main(names: Sequence[str]) -> int:
    """Print the tables. Returns 0, or 1 if a start takes longer than it may, or 2 if there is no such net."""
    unknown = [name for name in names if name not in LIMITS]
    if unknown:
        print(f"there is no {unknown[0]}; there are {', '.join(LIMITS)}", file=sys.stderr)
        return 2
    print("seconds from the start of the process to the end of the first step and of the ", end="")
    print(f"{NUM_STEPS}th, medians (least to most) of {NUM_ROUNDS} rounds")
    results = {name: measured(name) for name in names or LIMITS}
    for name, starts in results.items():
        print(f"\n{name}.yaml")
        for label, rounds in starts.items():
            print(f"  {label:15} {_figures([start.first for start in rounds])}  ", end="")
            print(_figures([start.last for start in rounds]))
        for line in missed(name, starts)[0]:
            print(f"  {line}")
    return int(any(missed(name, starts)[1] for name, starts in results.items()))


def missed(name: str, starts: dict[str, list[Start]]) -> tuple[list[str], bool]:
    """A line for each limit, and whether one is missed: medians of the differences of each round, at the first step."""
    lines, is_missed = [], False
    for label, limit in zip(("compiled, cold", "compiled, warm"), LIMITS[name], strict=True):
        pairs = zip(starts[label], starts["plain"], strict=True)
        later = statistics.median(start.first - plain.first for start, plain in pairs)
        verdict = ": MISSED" if later > limit else ""
        is_missed |= later > limit
        lines.append(f"{label}: {later:.2f} s later than plain, at most {limit:g}{verdict}")
    return lines, is_missed


def measured(name: str) -> dict[str, list[Start]]:
    """The rounds of each start."""
    starts: dict[str, list[Start]] = {label: [] for label in STARTS}
    with tempfile.TemporaryDirectory() as kept:
        _start("compiled", name, Path(kept))
        for _ in range(NUM_ROUNDS):
            for label, (who, is_kept) in STARTS.items():
                with tempfile.TemporaryDirectory() as empty:
                    starts[label].append(_start(who, name, Path(kept if is_kept else empty)))
    return starts


def _start(who: str, name: str, cache: Path) -> Start:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("OPENBLAS_")}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(SCRIPTS)])
    # numba keeps the package's own compiled functions beside their sources, unless it is told where.
    environment |= {"NN_MANUAL_CACHE": str(cache / "kernels"), "NUMBA_CACHE_DIR": str(cache / "numba")}
    started = time.monotonic()
    command = [sys.executable, "-P", "-m", "benchmarks.one_start", who, name, str(started), str(NUM_STEPS)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return Start(*json.loads(done.stdout))


def _figures(seconds: Sequence[float]) -> str:
    return f"{statistics.median(seconds):7.2f} ({min(seconds):.2f} to {max(seconds):.2f})"
