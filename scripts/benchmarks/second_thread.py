"""What a second thread gains: `python scripts/benchmark.py threads`. Compiled steps beside torch's.

All contestants of a net measure in one process, in rounds, one after the other. What 8 and 16 cores would give follows
from the two times: what a second thread doesn't shorten stays as it is on any number of threads.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from benchmarks.models import median_ratio
from benchmarks.processes import ROOT, run_module

#: By file of config/: our time over torch's, each on its faster number of threads, at most.
WANTED = {"gpt": 0.8, "lstm": 0.7, "convnet": 0.4}
#: Numbers of threads for which the time follows from the two that are measured.
MORE = 8, 16


class Gain(NamedTuple):
    """Milliseconds of a step on one thread and on two, medians, and the median of their ratios."""

    one: float
    two: float
    ratio: float

    def on(self, threads: int) -> float:
        """The milliseconds on so many threads: those of the part that isn't shared, and a share of the rest."""
        shared = max(0.0, 2 * (self.one - self.two))
        return self.one - shared + shared / threads


def main(names: Sequence[str]) -> int:
    """Print a line for each net. Returns 0, 1 if a figure is missed, or 2 if there is no such net."""
    unknown = [name for name in names if name not in WANTED]
    if unknown:
        print(f"there is no {unknown[0]}; there are {', '.join(WANTED)}", file=sys.stderr)
        return 2
    print("milliseconds a step on 1 and 2 threads, and their ratio; on more, as it follows from these")
    missed = False
    for name in names or WANTED:
        done = run_module("benchmarks.one_second_thread", ROOT, name, stdout=subprocess.PIPE)
        done.check_returncode()
        lines, is_missed = judged(name, json.loads(done.stdout))
        print("\n".join(lines), flush=True)
        missed |= is_missed
    return int(missed)


def judged(name: str, times: Mapping[str, Sequence[float]]) -> tuple[list[str], bool]:
    """The lines of a net, and whether a figure is missed: a second thread gains less than torch's does, or ours takes
    more of torch's time than is wanted.
    """
    gains = {side: _gain(times, side) for side in ("ours", "torch")}
    lines = [f"\n{name}.yaml"]
    for side, gain in gains.items():
        more = ", ".join(f"{gain.on(threads):.2f} on {threads}" for threads in MORE)
        lines.append(f"  {side:6} {gain.one:8.2f} {gain.two:8.2f}   {gain.ratio:.2f}   {more}")
    is_slower = gains["ours"].ratio > gains["torch"].ratio
    faster = {side: min(("1", "2"), key=lambda n: statistics.median(times[f"{side} {n}"])) for side in gains}
    ratio = median_ratio(*(times[f"{side} {faster[side]}"] for side in ("ours", "torch")))
    lines.append(f"  a second thread gains as much as torch's{': MISSED' if is_slower else ''}")
    is_missed = ratio > WANTED[name]
    lines.append(f"  {ratio:.2f} of torch's time, at most {WANTED[name]}{': MISSED' if is_missed else ''}")
    return lines, is_slower or is_missed


def _gain(times: Mapping[str, Sequence[float]], side: str) -> Gain:
    one, two = times[f"{side} 1"], times[f"{side} 2"]
    return Gain(statistics.median(one), statistics.median(two), median_ratio(two, one))
