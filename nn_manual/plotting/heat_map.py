"""The ledger of one run: a row for each tensor, steps from left to right; the colour says how far off a tensor was."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from nn_manual.arrays import Array
from nn_manual.plotting.axes import EXCUSED, WRONG, Style, finish
from nn_manual.plotting.short_names import shorten
from nn_manual.run_directory.ledger_table import MISMATCH, ROUNDING, Ledger
from nn_manual.run_directory.metrics import RecordedRun

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

#: The most columns and rows that are drawn. A column is at least two pixels wide, so that none gets lost. A row is as
#: high as its name, and with this many rows the map is as high as the figure is wide.
MAXIMUM_COLUMNS, MAXIMUM_ROWS = 400, 50
#: Inches: a row, with text of 6 points; the title, the steps and their label; the names and the scale beside the map.
ROW_HEIGHT, FRAME_HEIGHT, FRAME_WIDTH = 0.13, 0.75, 1.0
#: Characters of a tensor's name, for which FRAME_WIDTH has room.
MAXIMUM_NAME = 24

#: The scale in percent of the tolerance. Correct float32 values lie near 1, float64 near 0.1 or 0.01. A value below the
#: lowest gets the colour of the lowest.
LOWEST, HIGHEST = 1e-2, 100
TICKS = (0.01, 0.1, 1, 10, HIGHEST)
#: The scale goes from light to dark blue. A value without a place on it has a colour of its own.
SCALE = "Blues"
EQUAL, NOT_COMPARED = "#e4e4e4", "#ffffff"


def rows_to_draw(ledger: Ledger) -> Array:
    """Indices, ascending, of the tensors that get a row: up to MAXIMUM_ROWS, those that are wrong, then the worst."""
    largest = np.fmax.reduce(ledger.percent, axis=0)  # ignores NaN where there is a number
    worst = np.lexsort((-largest, ledger.verdict.max(axis=0) != MISMATCH))
    return np.sort(worst[:MAXIMUM_ROWS])


def pool(values: Array, num_steps: Array) -> tuple[Array, Array, int]:
    """The largest value of each stretch of checked steps, (columns, tensors); in which line each stretch begins; and
    how many steps a stretch has. Line i of `values`, (lines, tensors), stands for the worst of num_steps[i] steps. A
    line that reaches into two stretches counts in both.
    """
    ends = np.cumsum(num_steps, dtype=np.float64)
    stretch = math.ceil(ends[-1] / MAXIMUM_COLUMNS)
    starts = np.arange(0, ends[-1], stretch)
    first = np.searchsorted(ends, starts, side="right")
    last = np.searchsorted(ends, np.minimum(starts + stretch, ends[-1]), side="left")
    columns = [np.fmax.reduce(values[i : j + 1], axis=0) for i, j in zip(first, last, strict=True)]
    return np.array(columns), first, stretch


def height_of(ledger: Ledger) -> float:
    """Inches that the map takes in a figure."""
    return FRAME_HEIGHT + ROW_HEIGHT * min(len(ledger.tensors), MAXIMUM_ROWS)


def draw_heat_map(axes: Axes, run: RecordedRun) -> None:
    """Draw the ledger of a run with at least one checked step and one tensor."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm, to_rgba

    ledger, num_steps = run.ledger, run.gradients["num_steps"]
    rows = rows_to_draw(ledger)
    percent, first, stretch = pool(ledger.percent[:, rows], num_steps)
    verdict, _, _ = pool(ledger.verdict[:, rows], num_steps)
    scale = ScalarMappable(LogNorm(LOWEST, HIGHEST, clip=True), _colours())
    cells = scale.to_rgba(np.where(percent > 0, percent, LOWEST))
    for where, colour in (
        (percent == 0, EQUAL), (np.isnan(percent), NOT_COMPARED), (verdict == ROUNDING, EXCUSED),
        (verdict == MISMATCH, WRONG),
    ):  # fmt: skip
        cells[where] = to_rgba(colour)
    edges = _edges(run, first, stretch)
    axes.pcolormesh(edges, np.arange(len(rows) + 1) - 0.5, cells.swapaxes(0, 1), rasterized=True)
    names = shorten(ledger.tensors, MAXIMUM_NAME)
    axes.set_yticks(range(len(rows)), [names[row] for row in rows], fontsize=6)
    for label in axes.get_yticklabels():
        label.set_parse_math(False)
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()

    key = [(f"all elements equal: {(ledger.percent == 0).mean():.1%}", _square(EQUAL))]
    for meaning, words, colour in ((ROUNDING, "beyond, by rounding alone", EXCUSED), (MISMATCH, "wrong", WRONG)):
        if count := np.count_nonzero(ledger.verdict == meaning):
            key.append((f"{words}: {count:,}", _square(colour)))
    left_out = f"the worst {len(rows)} of {len(ledger.tensors)} tensors" if len(rows) < len(ledger.tensors) else ""
    finish(axes, "Difference by tensor", left_out, [run.gradients["step"]], key)
    axes.grid(False)
    axes.set_xlim(right=max(axes.get_xlim()[1], edges[-1]))
    axes.set_xlabel("step" if stretch == 1 else f"step  (each column the worst of {stretch:,})")
    bar = axes.inset_axes((1.01, 0, 0.015, 1))
    axes.figure.colorbar(scale, cax=bar, ticks=TICKS, format="{x:.3g}%", extend="min").minorticks_off()
    bar.set_ylabel("of the bound", fontsize="small")
    bar.tick_params(labelsize="small")


def _edges(run: RecordedRun, first: Array, stretch: int) -> Array:
    """The steps at the edges of the columns."""
    first_step, last_step, num_steps = (run.gradients[key] for key in ("first_step", "last_step", "num_steps"))
    within_first = (last_step[0] - first_step[0]) / max(num_steps[0] - 1, 1)
    distance = within_first or np.ptp(first_step[:2]) or 1
    before = np.cumsum(num_steps, dtype=np.float64) - num_steps
    within_line = stretch * np.arange(len(first)) - before[first]
    edges: Array = np.append(first_step[first] + distance * within_line, last_step[-1] + distance) - distance / 2
    return edges


def _colours() -> Colormap:
    """The colours of the scale, without the lightest blues, which look white."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    return ListedColormap(colormaps[SCALE](np.linspace(0.18, 1, 256)))


def _square(colour: str) -> Style:
    return {"linestyle": "", "marker": "s", "markerfacecolor": colour, "markeredgecolor": "0.5", "markersize": 5}
