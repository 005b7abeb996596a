"""Two Jacobians side by side: the one of a reader's backward pass, whose wrong entries are framed, and the true one."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nn_manual.arrays import Array
from nn_manual.messages.text import one_line
from nn_manual.plotting.axes import WRONG
from nn_manual.plotting.saving import save

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Jacobians(NamedTuple):
    """Both Jacobians (outputs, inputs), which entries are wrong, the case in words, and what the inputs are called."""

    theirs: Array
    true: Array
    wrong: Array
    title: str
    of: str


#: Up to so many rows and columns, each square has room for its number.
MAXIMUM_NUMBERS = 12
#: Inches: the side of a square with few entries and with many, and the longest side that a Jacobian takes.
LARGE_SQUARE, SMALL_SQUARE, LONGEST_SIDE = 0.42, 0.16, 5.0
#: Inches around the squares: titles, labels, and the scale.
FRAME_WIDTH, FRAME_HEIGHT = 2.2, 1.3
#: Up to so many rows or columns, each has a tick.
FEW_TICKS = 3


def plot_jacobians(jacobians: Jacobians, output: Path) -> Path:
    """Draw two Jacobians into the file `output` (.png, .svg or .pdf) and return it: the
    reader's with a red frame around each wrong entry, and the true one, in the same colours. An entry that is not
    finite is grey.

    Raises ConfigError for another ending, and DataError for an `output` that can't be written.
    """
    return save(partial(draw_jacobians, jacobians), output)


def draw_jacobians(jacobians: Jacobians) -> Figure:
    """The figure of `plot_jacobians`."""
    from matplotlib.figure import Figure

    theirs, true, wrong, title, of = jacobians
    rows, columns = true.shape
    square = LARGE_SQUARE if max(rows, columns) <= MAXIMUM_NUMBERS else SMALL_SQUARE
    square = min(square, LONGEST_SIDE / max(rows, columns))
    size = 2 * max(columns * square, 1.5) + FRAME_WIDTH, max(rows * square, 1.5) + FRAME_HEIGHT
    figure = Figure(figsize=size, layout="constrained")
    figure.suptitle(one_line(title), fontsize="medium", fontweight="bold", parse_math=False)
    finite = np.concatenate([np.abs(each[np.isfinite(each)]) for each in (theirs, true)])
    largest = float(finite.max(initial=0)) or 1.0
    left, right = figure.subplots(1, 2)
    num_wrong = int(wrong.sum())
    _draw(left, theirs, largest, f"your backward: {num_wrong:,} of {wrong.size:,} entries wrong", of)
    image = _draw(right, true, largest, "the true Jacobian", of)
    for row, column in np.argwhere(wrong).tolist():
        _frame(left, row, column)
    scale = figure.colorbar(image, ax=[left, right], shrink=0.8)
    scale.set_label(f"d output / d {of}", fontsize="small")
    scale.ax.tick_params(labelsize="small")
    return figure


def _draw(axes: Axes, jacobian: Array, largest: float, title: str, of: str) -> Any:
    from matplotlib import colormaps
    from matplotlib.ticker import FixedLocator, MaxNLocator

    colours = colormaps["RdBu"].with_extremes(bad="0.7")
    shown = np.where(np.isfinite(jacobian), jacobian, np.nan)
    image = axes.imshow(shown, cmap=colours, vmin=-largest, vmax=largest, interpolation="nearest")
    axes.set_title(title, fontsize="small")
    axes.set_xlabel(of, fontsize="small")
    axes.set_ylabel("output", fontsize="small")
    axes.tick_params(labelsize="x-small")
    for axis, length in ((axes.xaxis, jacobian.shape[1]), (axes.yaxis, jacobian.shape[0])):
        # A locator of few places puts ticks between them, or several at one.
        axis.set_major_locator(FixedLocator([*range(length)]) if length <= FEW_TICKS else MaxNLocator(integer=True))
    for row, column in np.argwhere(jacobian != 0).tolist() if max(jacobian.shape) <= MAXIMUM_NUMBERS else []:
        value = float(jacobian[row, column])
        colour = "white" if abs(value) > 0.6 * largest else "black"
        axes.text(column, row, f"{value:.2g}", ha="center", va="center", color=colour, fontsize=6)
    return image


def _frame(axes: Axes, row: int, column: int) -> None:
    from matplotlib.patches import Rectangle

    corner = column - 0.5, row - 0.5
    axes.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor=WRONG, linewidth=1.5, clip_on=False))
