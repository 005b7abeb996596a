"""Two Jacobians side by side: the one of a reader's backward pass, whose wrong entries are framed, and the true one."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.messages.text import one_line
from nn_manual.plotting.axes import WRONG
from nn_manual.plotting.saving import save

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure


class Jacobians(NamedTuple):
    """Both Jacobians (outputs, inputs), which entries are wrong, the case in words, and what the inputs are called;
    and the shapes of the outputs and of the inputs: with several dimensions, ticks are marked by indices.
    """

    theirs: Array
    true: Array
    wrong: Array
    title: str
    of: str
    output_shape: Shape = ()
    input_shape: Shape = ()


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

    theirs, true, wrong, title, of, *_ = jacobians
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
    _draw(left, theirs, largest, f"your backward: {num_wrong:,} of {wrong.size:,} entries wrong")
    image = _draw(right, true, largest, "the true Jacobian")
    for axes in (left, right):
        _mark(axes.xaxis, columns, of, jacobians.input_shape, "vertical")
        _mark(axes.yaxis, rows, "output", jacobians.output_shape, "horizontal")
        axes.tick_params(labelsize="x-small")
    for row, column in np.argwhere(wrong).tolist():
        _frame(left, row, column)
    scale = figure.colorbar(image, ax=[left, right], shrink=0.8)
    scale.set_label(f"d output / d {of}", fontsize="small")
    scale.ax.tick_params(labelsize="small")
    return figure


def _mark(axis: Axis, length: int, name: str, shape: Shape, rotation: str) -> None:
    """Put ticks on an axis: where the tensor has several dimensions, with the index of each place."""
    from matplotlib.ticker import FixedLocator, MaxNLocator

    if len(shape) < 2:
        axis.set_label_text(name, fontsize="small")
        # A locator of few places puts ticks between them, or several at one.
        axis.set_major_locator(FixedLocator([*range(length)]) if length <= FEW_TICKS else MaxNLocator(integer=True))
        return
    axis.set_label_text(f"{name}, shape {shape}", fontsize="small")
    places = range(0, length, math.ceil(length / MAXIMUM_NUMBERS))
    indices = [", ".join(map(str, np.unravel_index(place, shape))) for place in places]
    axis.set_ticks(places, indices, rotation=rotation)


def _draw(axes: Axes, jacobian: Array, largest: float, title: str) -> Any:
    from matplotlib import colormaps

    colours = colormaps["RdBu"].with_extremes(bad="0.7")
    shown = np.where(np.isfinite(jacobian), jacobian, np.nan)
    image = axes.imshow(shown, cmap=colours, vmin=-largest, vmax=largest, interpolation="nearest")
    axes.set_title(title, fontsize="small")
    for row, column in np.argwhere(jacobian != 0).tolist() if max(jacobian.shape) <= MAXIMUM_NUMBERS else []:
        value = float(jacobian[row, column])
        colour = "white" if abs(value) > 0.6 * largest else "black"
        axes.text(column, row, f"{value:.2g}", ha="center", va="center", color=colour, fontsize=6)
    return image


def _frame(axes: Axes, row: int, column: int) -> None:
    from matplotlib.patches import Rectangle

    corner = column - 0.5, row - 0.5
    axes.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor=WRONG, linewidth=1.5, clip_on=False))
