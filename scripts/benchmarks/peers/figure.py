"""The table as a figure: for each net the time of each contestant's step over torch's, from fast to slow."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from benchmarks.peers.times import Times

#: One colour and mark for each contestant, in the order of the table; this package's are filled, the others' are not.
MARKS = {
    "compiled": ("#c1121f", "o"),
    "plain": ("#f4a261", "o"),
    "torch": ("#1d3557", "s"),
    "torch.compile": ("#457b9d", "D"),
    "JAX jit": ("#2a9d8f", "^"),
    "JAX scan": ("#74c69d", "v"),
    "scikit-learn": ("#8338ec", "P"),
    "thinc": ("#9d8189", "X"),
    "products": ("#adb5bd", "d"),
}


def draw(results: dict[str, dict[str, Times]], threads: int, path: Path) -> None:
    """Write the figure to `path`."""
    figure = Figure(figsize=(8, 0.55 * len(results) + 1.6), layout="constrained")
    axes = figure.add_subplot()
    names = list(results)
    for name, (color, mark) in MARKS.items():
        points = [
            (times[name].over(times["torch"]), -row)
            for row, times in enumerate(results.values())
            if name in times and not times[name].problem
        ]
        if points:
            own = name in ("compiled", "plain")
            face = color if own else "white"
            size, order = (90, 4) if own else (60, 3)
            over, rows = zip(*points, strict=True)
            axes.scatter(over, rows, s=size, c=face, marker=mark, label=name, edgecolors=color, zorder=order)
    axes.set_xscale("log")
    axes.axvline(1, color="#1d3557", linewidth=0.8, zorder=1)
    axes.set_yticks([-row for row in range(len(names))], names)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(axis="y", color="#e9ecef", linewidth=0.8)
    axes.set_axisbelow(True)
    plural = "s" if threads > 1 else ""
    axes.set_xlabel(f"time of a training step / torch eager's ({threads} thread{plural}); left is faster")
    axes.spines[["top", "right", "left"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=5, frameon=False)
    figure.savefig(path, dpi=150)
