"""Large GPTs: the time and the memory of a step, plain, checked and compiled: `python scripts/benchmark.py large`.

Each contestant is a process of its own. The largest net takes 8 GB and some minutes.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from benchmarks.processes import ROOT, run_module

WHO = "torch", "plain", "checked", "compiled"
#: How many steps are timed after the first.
NUM_STEPS = 6


class Net(NamedTuple):
    """The sizes of a GPT, and of its batch."""

    width: int
    depth: int
    num_heads: int
    num_tokens: int = 50_257
    context: int = 64
    batch_size: int = 4


NETS = {"45M": Net(512, 6, 8), "gpt2": Net(768, 12, 12)}

#: What is wanted of a contestant: a figure, the one that it is measured by, and the most that their ratio may be.
WANTED = (
    ("plain", "step", "torch", "step", 1.0),
    ("compiled", "step", "torch", "step", 0.9),
    ("checked", "step", "torch", "step", 2.4),
    ("checked", "first", "checked", "step", 3.0),
    ("checked", "GB", "plain", "GB", 2.5),
    ("compiled", "GB", "torch", "GB", 1.2),
)
#: The most seconds until the first compiled step has ended.
READY = 60.0


def main(names: Sequence[str], threads: int) -> int:
    """Print a table for each net. Returns 0, 1 if a figure is missed, or 2 if there is no such net."""
    unknown = [name for name in names if name not in NETS]
    if unknown:
        print(f"there is no {unknown[0]}; there are {', '.join(NETS)}", file=sys.stderr)
        return 2
    missed = False
    for name in names or NETS:
        print(f"{name}, {threads} thread{'s' * (threads > 1)}")
        print(f"  {'':10} {'first step, s':>14} {'median step, s':>15} {'GB at most':>11} {'GB, later steps':>16}")
        figures = {}
        for who in WHO:
            done = run_module("benchmarks.one_large", ROOT, who, name, str(threads), stdout=subprocess.PIPE)
            done.check_returncode()
            figures[who] = figures_of(json.loads(done.stdout))
            first, step, most, later = figures[who].values()
            print(f"  {who:10} {first:14.2f} {step:15.3f} {most:11.2f} {later:16.2f}", flush=True)
        lines, is_missed = judged(figures)
        print("\n".join(f"  {line}" for line in lines), flush=True)
        missed |= is_missed
    return int(missed)


def figures_of(measured: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """The figures of one process, by their names in WANTED."""
    first, *others = measured["seconds"]
    most = max(measured["bytes"]) / 1e9
    return {"first": first, "step": statistics.median(others), "GB": most, "GB later": measured["bytes"][1] / 1e9}


def judged(figures: Mapping[str, Mapping[str, float]]) -> tuple[list[str], bool]:
    """A line for each figure that is wanted, and whether one is missed."""
    lines, missed = [], False
    for who, figure, other, its, most in WANTED:
        ratio = figures[who][figure] / figures[other][its]
        missed |= ratio > most
        mark = ": MISSED" if ratio > most else ""
        lines.append(f"{who} {figure} / {other} {its}: {ratio:.2f}, at most {most}{mark}")
    ready = figures["compiled"]["first"]
    lines.append(f"compiled, ready after {ready:.1f} s, at most {READY:.0f}{': MISSED' if ready > READY else ''}")
    return lines, missed or ready > READY
