"""The predictions of a regression against its targets: a square for each target."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nn_manual.arrays import Array
from nn_manual.messages.text import one_line
from nn_manual.plotting.saving import save
from nn_manual.plotting.short_names import shorten

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The most targets that are drawn: more squares are too small to read, or the figure is too large.
MAXIMUM_TARGETS = 12
#: Squares side by side, the inches of a square with its labels, and characters of a target's name above it.
COLUMNS, SQUARE, MAXIMUM_NAME = 4, 2.8, 30
#: Examples of which a mark hides nothing; of more, marks are smaller and lighter, so that dense places show.
FEW = 500


def plot_predictions(prediction: Array, target: Array, names: Sequence[str], output: Path, title: str = "") -> Path:
    """Draw `prediction` against `target`, both (examples, targets), into the file `output` (.png, .svg or .pdf) and
    return it. Of many targets, the first ones are drawn. Raises ConfigError for another ending, and DataError for an
    `output` that can't be written.
    """
    return save(partial(draw_predictions, prediction, target, names, title), output)


def draw_predictions(prediction: Array, target: Array, names: Sequence[str], title: str = "") -> Figure:
    """The figure of `plot_predictions`."""
    from matplotlib.figure import Figure

    count = min(len(names), MAXIMUM_TARGETS)
    columns = min(count, COLUMNS)
    rows = math.ceil(count / columns)
    figure = Figure(figsize=(SQUARE * columns + 0.4, SQUARE * rows + 0.4), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    more = f", the first {count} of {len(names)} targets" if count < len(names) else ""
    text = figure.suptitle(one_line(title + more), x=0.02, ha="left", fontsize="medium", fontweight="bold")
    text.set_parse_math(False)
    size, alpha = (12.0, 0.6) if len(target) <= FEW else (4.0, 0.25)
    for place, name, x, y in zip(axes, shorten(names, MAXIMUM_NAME), target.T, prediction.T, strict=False):
        # An SVG or a PDF with a shape for each of many examples would take megabytes and long to show.
        place.scatter(x, y, s=size, alpha=alpha, linewidths=0, rasterized=len(target) > FEW)
        low, high = float(np.minimum(x, y).min()), float(np.maximum(x, y).max())
        place.axline((low, low), slope=1, color="grey", linewidth=0.8, zorder=0)
        margin = 0.05 * (high - low) or 1.0
        place.set_xlim(low - margin, high + margin)
        place.set_ylim(low - margin, high + margin)
        place.set_aspect("equal")
        place.locator_params(nbins=5)
        place.set_title(name, fontsize="small", parse_math=False)
        place.set_xlabel("target", fontsize="small")
        place.set_ylabel("prediction", fontsize="small")
        place.tick_params(labelsize="small")
    for place in axes[count:]:
        place.set_axis_off()
    return figure
