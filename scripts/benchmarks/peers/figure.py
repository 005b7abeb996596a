"""The table as a figure: for each net the time of each contestant's step over torch's, from fast to slow."""

from __future__ import annotations

import math
from collections.abc import Mapping
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

#: Inches: of the axes from left to right, of a mark with the space around it, and between two nets.
WIDTH, MARK, BETWEEN = 6.5, 0.16, 0.12
#: Inches around the axes, for the names of the nets, the end of a number, the key and the label of the axis.
LEFT, RIGHT, ABOVE, BELOW = 2.0, 0.2, 0.75, 0.55
#: How far the axis goes beyond the fastest and the slowest contestant.
BEYOND = 1.3


def draw(results: Mapping[str, Mapping[str, Times]], threads: int, path: Path) -> None:
    """Write the figure of the nets, by the names that the tables have for them, to `path`."""
    figure_of(results, threads).savefig(path, dpi=150)


def figure_of(results: Mapping[str, Mapping[str, Times]], threads: int) -> Figure:
    """The figure. A net has as many lines as its marks need, so that none lies on another."""
    nets = {
        net: {name: times[name].over(times["torch"]) for name in MARKS if name in times and not times[name].problem}
        for net, times in results.items()
    }
    every = [over for ratios in nets.values() for over in ratios.values()]
    least, most = min(every) / BEYOND, max(every) * BEYOND
    lines = {net: _lines(ratios, MARK / WIDTH * math.log(most / least)) for net, ratios in nets.items()}
    heights = {net: MARK * (1 + max(of_net.values())) + BETWEEN for net, of_net in lines.items()}
    height = sum(heights.values())
    whole = LEFT + WIDTH + RIGHT, BELOW + height + ABOVE
    figure = Figure(figsize=whole)
    axes = figure.add_axes((LEFT / whole[0], BELOW / whole[1], WIDTH / whole[0], height / whole[1]))
    middles, top = [], 0.0
    for i, (net, ratios) in enumerate(nets.items()):
        if i % 2 == 0:
            axes.axhspan(-top, -top - heights[net], color="#f1f3f5", zorder=0)
        middles.append(-top - heights[net] / 2)
        for name, over in ratios.items():
            color, mark = MARKS[name]
            face = color if name in ("compiled", "plain") else "white"
            y = -top - BETWEEN / 2 - MARK * (0.5 + lines[net][name])
            axes.scatter(over, y, s=55, c=face, marker=mark, edgecolors=color, zorder=3, gid=f"{net}: {name}")
        top += heights[net]
    for name in MARKS:
        if any(name in ratios for ratios in nets.values()):
            color, mark = MARKS[name]
            face = color if name in ("compiled", "plain") else "white"
            axes.scatter([], [], s=55, c=face, marker=mark, label=name, edgecolors=color)
    axes.set(xscale="log", xlim=(least, most), ylim=(-top, 0))
    axes.axvline(1, color="#1d3557", linewidth=0.8, zorder=1)
    axes.set_yticks(middles, list(nets))
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    plural = "s" if threads > 1 else ""
    axes.set_xlabel(f"time of a training step / torch eager's ({threads} thread{plural}); left is faster")
    axes.spines[["top", "right", "left"]].set_visible(False)
    figure.legend(loc="upper center", ncols=5, frameon=False)
    return figure


def _lines(ratios: Mapping[str, float], apart: float) -> dict[str, int]:
    """For each contestant the first line, from 0, in which no mark is nearer than `apart`, as a difference of logs."""
    lines: dict[str, int] = {}
    ends: list[float] = []
    for name, over in sorted(ratios.items(), key=lambda item: item[1]):
        place = math.log(over)
        line = next((line for line, end in enumerate(ends) if place - end >= apart), len(ends))
        ends[line : line + 1] = [place]
        lines[name] = line
    return lines
