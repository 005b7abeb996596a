"""The time of a training step of this tree against that of another commit, and of that commit against itself.

In each round three processes measure one after the other: one on this tree, two on the commit; each order of the three
is equally frequent. A ratio compares two times of the same round, so a slow moment of the machine meets both. The
commit against itself shows how different two equal trees can look.
"""

from __future__ import annotations

import itertools
import json
import math
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tqdm import tqdm

from benchmarks.processes import ROOT, run_module

#: The bound that is wanted for each kind of step: time on this tree over time on the commit, at most.
WANTED = {"plain": 1.03, "checked": 1.12, "compiled": 1.03}

#: Fewer values than this have no 95% interval of their median: even their whole range contains it less often.
LEAST_ROUNDS = 6

#: One process's times: for each kind of step, the microseconds of each net, by its name.
Times = dict[str, dict[str, float]]


class MeasuringError(Exception):
    """There is nothing to compare; the message says why."""


class Round(NamedTuple):
    """The times of the three processes of a round."""

    new: Times
    old: Times
    old_again: Times


class Ratio(NamedTuple):
    """The median of paired ratios, and its 95% interval."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.3f} [{self.low:.3f}, {self.high:.3f}]"


def main(commit: str, num_rounds: int) -> int:
    """Measure and print. Returns 0, or 2 if that can't be done."""
    try:
        if num_rounds < LEAST_ROUNDS:
            raise MeasuringError(f"--rounds must be at least {LEAST_ROUNDS}, not {num_rounds}")
        with worktree(commit) as tree:
            rounds = measure(ROOT, tree, num_rounds)
    except MeasuringError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print("\n".join(table(commit, rounds)))
    return 0


@contextmanager
def worktree(commit: str) -> Iterator[Path]:
    """The files of a commit in a temporary folder, which is removed afterwards. Raises MeasuringError."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        _git("worktree", "add", "--detach", str(tree), commit)
        try:
            yield tree
        finally:
            _git("worktree", "remove", "--force", str(tree))


def _git(*arguments: str) -> None:
    try:
        subprocess.run(["git", "-C", str(ROOT), *arguments], check=True, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise MeasuringError("git is not installed") from error
    except subprocess.CalledProcessError as error:
        raise MeasuringError(f"git {' '.join(arguments)}: {error.stderr.strip()}") from error


def measure(new: Path, old: Path, num_rounds: int) -> list[Round]:
    """The times of each round."""
    orders = itertools.cycle(itertools.permutations(range(3)))
    trees, rounds = (new, old, old), []
    for order in tqdm(itertools.islice(orders, num_rounds), total=num_rounds, disable=None):
        times = {process: _times(trees[process]) for process in order}
        rounds.append(Round(*(times[process] for process in range(3))))
    return rounds


def _times(tree: Path) -> Times:
    process = run_module("benchmarks.one_round", tree, stdout=subprocess.PIPE)
    if process.returncode != 0:
        raise MeasuringError(f"the process that measures {tree} ended with status {process.returncode}")
    times: Times = json.loads(process.stdout)
    return times


def table(commit: str, rounds: Sequence[Round]) -> list[str]:
    """The ratios of every net, as lines."""
    lines = [f"{'net (batch)':24} {'step':8} {f'this tree / {commit}':24} {f'{commit} / itself':24} wanted"]
    for net in rounds[0].new["plain"]:
        for kind, wanted in WANTED.items():
            ratio = ratio_of([(r.new[kind][net], r.old[kind][net]) for r in rounds])
            noise = ratio_of([(r.old_again[kind][net], r.old[kind][net]) for r in rounds])
            missed = "  missed" if ratio.low > wanted else ""
            lines.append(f"{net:24} {kind:8} {ratio!s:24} {noise!s:24} <= {wanted}{missed}")
    lines += ["", f"The median of the ratios of {len(rounds)} rounds, and its 95% interval."]
    return [*lines, "missed: the whole interval lies above the bound that is wanted."]


def ratio_of(pairs: Sequence[tuple[float, float]]) -> Ratio:
    """The median of the first over the second, and its interval from one order statistic to another.

    Each value lies below the true median with probability 1/2. So the number of values below it is binomial, for any
    distribution. The interval from the `rank`-th smallest to the `rank`-th largest value is the narrowest that misses
    the median at most one time in 20, one time in 40 on each side.
    """
    ratios, num_ratios = sorted(first / second for first, second in pairs), len(pairs)
    rank, at_most = 0, 0.0
    while (at_most := at_most + math.comb(num_ratios, rank) / 2**num_ratios) <= 1 / 40:
        rank += 1
    if rank == 0:
        raise ValueError(f"{num_ratios} values have no 95% interval of their median, {LEAST_ROUNDS} have")
    return Ratio(statistics.median(ratios), ratios[rank - 1], ratios[-rank])
