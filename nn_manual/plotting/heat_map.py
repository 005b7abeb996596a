"""The ledger of one run: a row for each tensor, time from left to right, the colour how far off the tensor was."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from nn_manual.arrays import Array
from nn_manual.plotting.axes import Style, finish, shorten
from nn_manual.run_directory.ledger_table import Ledger

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The most columns and rows that are drawn. A column is two pixels wide or more, so that none gets lost; a row has the
#: height of its name, and with this many the map is as high as the figure is wide.
MAXIMUM_COLUMNS, MAXIMUM_ROWS = 400, 50
#: Inches: a row, with text of 6 points; the title, the steps and their label; the names and the scale beside the map.
ROW_HEIGHT, FRAME_HEIGHT, FRAME_WIDTH = 0.13, 0.75, 1.0
#: Characters of a tensor's name, for which FRAME_WIDTH has room.
MAXIMUM_NAME = 24

#: Percent of the tolerance. Correct float32 values lie near 1, float64 near 0.1 or 0.01; what is less gets the colour
#: of the lowest. The ledger has three digits: of those that it has, 99.9 is the last that is surely within.
LOWEST, HIGHEST = 1e-2, 99.9
TICKS = (0.01, 0.1, 1, 10, HIGHEST)
#: Light, dark and red: readers who are colour-blind can tell them apart, too.
EXACT, WITHIN, BEYOND = "0.9", "viridis_r", "red"


def rows_to_draw(percent: Array) -> Array:
    """Indices, ascending, of the tensors that get a row: of (steps, tensors), up to MAXIMUM_ROWS, the worst ones."""
    worst = np.argsort(-percent.max(axis=0), kind="stable")
    return np.sort(worst[:MAXIMUM_ROWS])


def pool(percent: Array) -> tuple[Array, int]:
    """The largest value of each stretch of steps, (columns, tensors), and how many steps make a stretch."""
    stretch = math.ceil(len(percent) / MAXIMUM_COLUMNS)
    return np.maximum.reduceat(percent, np.arange(0, len(percent), stretch), axis=0), stretch


def height_of(ledger: Ledger) -> float:
    """Inches that the map takes in a figure."""
    return FRAME_HEIGHT + ROW_HEIGHT * min(len(ledger.tensors), MAXIMUM_ROWS)


def draw_heat_map(axes: Axes, steps: Array, ledger: Ledger) -> None:
    """Draw the ledger of the `steps` (steps,), which are evenly spaced and at least one."""
    from matplotlib import colormaps
    from matplotlib.colors import LogNorm

    rows = rows_to_draw(ledger.percent)
    pooled, stretch = pool(ledger.percent[:, rows])
    half = np.ptp(steps[:2]) / 2 or 0.5  # of the distance between two steps
    edges = np.append(steps[::stretch], steps[-1] + 2 * half) - half
    mesh = axes.pcolormesh(
        edges, np.arange(len(rows) + 1) - 0.5, np.ma.masked_equal(pooled.T, 0),
        cmap=colormaps[WITHIN].with_extremes(bad=EXACT, over=BEYOND), norm=LogNorm(LOWEST, HIGHEST), rasterized=True,
    )  # fmt: skip
    axes.set_yticks(range(len(rows)), [shorten(ledger.tensors[row], MAXIMUM_NAME) for row in rows], fontsize=6)
    for label in axes.get_yticklabels():
        label.set_parse_math(False)
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()

    key = [(f"all elements equal: {(ledger.percent == 0).mean():.1%}", _square(EXACT))]
    if num_beyond := np.count_nonzero(ledger.percent > HIGHEST):
        key.append((f"beyond, by rounding: {num_beyond:,}", _square(BEYOND)))
    left_out = f"the worst {len(rows)} of {len(ledger.tensors)} tensors" if len(rows) < len(ledger.tensors) else ""
    finish(axes, "Gradient error by tensor", left_out, [steps], key)
    axes.grid(False)
    axes.set_xlim(right=max(axes.get_xlim()[1], edges[-1]))
    axes.set_xlabel("step" if stretch == 1 else f"step  (each column the worst of {stretch})")
    scale = axes.inset_axes((1.01, 0, 0.015, 1))
    axes.figure.colorbar(mesh, cax=scale, ticks=TICKS, format="{x:.3g}", extend="min").minorticks_off()
    scale.set_ylabel("% of the tolerance", fontsize="small")
    scale.tick_params(labelsize="small")


def _square(colour: str) -> Style:
    return {"linestyle": "", "marker": "s", "markerfacecolor": colour, "markeredgecolor": "0.5", "markersize": 5}
