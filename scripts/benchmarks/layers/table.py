"""Each class of layers and losses beside torch's: `python scripts/benchmark.py layers`. On one thread.

Each class has a process of its own. In a round each contestant makes steps for the same time, one after the other, so
that a slow moment of the machine meets all of them. Ratios are medians of the ratios of the rounds.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from benchmarks.layers.sizes import SUBJECTS
from benchmarks.models import median_ratio
from benchmarks.processes import ROOT, run_module
from nn_manual.layers import Layer
from nn_manual.losses import Loss
from nn_manual.registry import components

#: torch's time over that of the compiled form: the geometric mean of all, and each, at least.
WANTED, LEAST = 1.3, 0.5
#: Why a class may be slower than that.
VIEW = "torch's is a view that moves nothing; ours adds up output times upstream gradient, too"
SORTED = "ours sorts the scores, however few labels there are; torch looks at all classes for each label, here two"
REASONS: dict[str, str] = {"Flatten": VIEW, "Unflatten": VIEW, "MultiLabelMarginLoss": SORTED}


class Row(NamedTuple):
    """One class in one size: torch's microseconds; torch's time over those of the formulas and of the compiled form;
    their memory over torch's, which is None where torch takes less than a few pages.
    """

    name: str
    shape: tuple[int, ...]
    torch: float
    numpy: float
    compiled: float
    memory: tuple[float, float] | None

    def __str__(self) -> str:
        shape = " x ".join(map(str, self.shape))
        memory = ("", "") if self.memory is None else tuple(f"{ratio:.2f}" for ratio in self.memory)
        cells = (self.name, shape, f"{self.torch:,.0f}", *map(_ratio, (self.numpy, self.compiled)), *memory)
        return f"| {' | '.join(cells)} |"


def _ratio(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"


#: The least MiB of torch's to compare with: in less, pages are counted rather than arrays.
SEEN = 0.5

HEAD = """| class | input | torch | torch / NumPy | torch / compiled | memory, NumPy | memory, compiled |
|---|---|---|---|---|---|---|"""


def main(names: Sequence[str]) -> int:
    """Print the table of these classes, by default all, in the form of docs/layers.md. Returns 0, 1 if a figure is
    missed, or 2 if a class isn't measured.
    """
    unknown = [name for name in names if name not in subjects()]
    if unknown:
        print(f"{unknown[0]} isn't measured; there are {', '.join(subjects())}", file=sys.stderr)
        return 2
    print(HEAD)
    rows = []
    for name in names or subjects():
        for row in _measured(name):
            rows.append(row)
            print(row, flush=True)
    for line in summary_of(rows):
        print(line)
    return 0 if is_as_wanted(rows) else 1


def subjects() -> list[str]:
    """The classes that are measured, by name."""
    owners = components(Layer) | components(Loss)
    return [name for name in SUBJECTS if name in owners]


def is_as_wanted(rows: Sequence[Row]) -> bool:
    """Whether the mean of all is as wanted, and each class that is slower than LEAST has its reason."""
    return _mean(rows) >= WANTED and all(row.compiled >= LEAST or row.name in REASONS for row in rows)


def summary_of(rows: Sequence[Row]) -> Iterator[str]:
    """The geometric mean, and the classes that are slower than LEAST."""
    yield f"\ntorch / compiled, geometric mean of {len(rows)}: {_mean(rows):.2f} (>= {WANTED})"
    numpy = statistics.geometric_mean(row.numpy for row in rows)
    yield f"torch / NumPy, geometric mean: {numpy:.2f}"
    for row in sorted(rows, key=lambda row: row.compiled):
        if row.compiled < LEAST:
            yield f"below {LEAST}: {row.name} {row.compiled:.2f}, {REASONS.get(row.name, 'WITHOUT A REASON')}"


def _mean(rows: Sequence[Row]) -> float:
    return statistics.geometric_mean(row.compiled for row in rows)


def _measured(name: str) -> Iterator[Row]:
    """What one process says, in both sizes."""
    done = run_module("benchmarks.layers.one_class", ROOT, name, stdout=subprocess.PIPE)
    done.check_returncode()
    for size in json.loads(done.stdout):
        yield row_of(name, size)


def row_of(name: str, measured: dict[str, Any]) -> Row:
    """The row of what was measured in one size."""
    times, memory = measured["microseconds"], measured["MiB"]
    numpy, compiled = (median_ratio(times["torch"], times[ours]) for ours in ("numpy", "compiled"))
    of_torch = memory["torch"]
    seen = (memory["numpy"] / of_torch, memory["compiled"] / of_torch) if of_torch >= SEEN else None
    return Row(name, tuple(measured["shape"]), statistics.median(times["torch"]), numpy, compiled, seen)
