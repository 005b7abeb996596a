"""All contestants on all nets, a round at a time.

In a round each contestant trains one epoch, one after the other, while the others wait: a slow moment of the machine
meets all of them. Ratios are medians over the rounds' own ratios.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers.contestants import CONTESTANTS
from benchmarks.peers.subjects import SUBJECTS
from benchmarks.peers.times import Times
from benchmarks.processes import ROOT, SCRIPTS

#: Enough rounds for a median that one stall doesn't move; a round of all contestants takes up to about ten seconds.
NUM_ROUNDS = 11
#: What the others are compared with in the table.
MEASURE = "torch"


class _Contestant:
    """A process that trains an epoch when it is asked to."""

    def __init__(self, name: str, subject: str, threads: int) -> None:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("OPENBLAS_")}
        environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(SCRIPTS)])
        environment |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(threads))
        command = [sys.executable, "-P", "-m", "benchmarks.peers.process", name, subject, str(threads)]
        self._process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.rounds: list[float] = []
        first = self._line()
        said = json.loads(first) if first else {"problem": "it ended without a word"}
        self.problem, self.blas = said.get("problem", ""), said.get("blas", "")

    def train(self) -> None:
        """One epoch, whose time is noted."""
        if self.problem:
            return
        assert self._process.stdin is not None  # a pipe
        print(file=self._process.stdin, flush=True)
        line = self._line()
        if line:
            self.rounds.append(float(line))
        else:
            self.problem = "it ended in a round"

    def end(self) -> Times:
        """End the process."""
        assert self._process.stdin is not None  # a pipe
        self._process.stdin.close()
        self._process.wait()
        return Times(self.rounds, self.problem, self.blas)

    def _line(self) -> str:
        assert self._process.stdout is not None  # a pipe
        return self._process.stdout.readline()


def main(subjects: Sequence[str], threads: int, figure: Path | None) -> int:
    """Print the table, and write the figure. Returns 0, or 2 if there is no such net."""
    unknown = [name for name in subjects if name not in SUBJECTS]
    if unknown:
        print(f"there is no net {unknown[0]}; there are {', '.join(SUBJECTS)}", file=sys.stderr)
        return 2
    print(f"{_processor()}, {threads} thread{'s' if threads > 1 else ''}; microseconds of a training step, ", end="")
    print(f"median (least to most) of {NUM_ROUNDS} rounds; the ratio to {MEASURE}'s, the median of those of the rounds")
    results = {}
    for name in subjects or SUBJECTS:
        net = SUBJECTS[name]().name
        results[net] = _measured(name, threads)
        _print_table(net, results[net])
    if figure is not None:
        from benchmarks.peers.figure import draw

        draw(results, threads, figure)
        print(f"wrote {figure}")
    return 0


def _measured(subject: str, threads: int) -> dict[str, Times]:
    contestants = {name: _Contestant(name, subject, threads) for name in CONTESTANTS}
    for _ in range(NUM_ROUNDS):
        for contestant in contestants.values():
            contestant.train()
    return {name: contestant.end() for name, contestant in contestants.items()}


def _print_table(subject: str, results: dict[str, Times]) -> None:
    measure = results[MEASURE]
    print(f"\n{subject}")
    for name, times in results.items():
        if times.problem:
            print(f"  {name:14} {times.problem}")
            continue
        spread = f"({min(times.rounds):.4g} to {max(times.rounds):.4g})"
        ratio = "" if measure.problem else f"{times.over(measure):6.2f}"
        print(f"  {name:14} {times.median:9.4g}  {spread:24} {ratio}  {times.blas}", flush=True)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.processor())
