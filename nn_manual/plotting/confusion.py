"""Which class a model takes for which: a square for each pair of classes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nn_manual.arrays import Array
from nn_manual.messages.text import one_line, quoted
from nn_manual.plotting.saving import save
from nn_manual.plotting.short_names import shorten

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: With more classes than this, a square has no room for its number, or the axes none for the names.
MAXIMUM_NUMBERS, MAXIMUM_NAMES = 20, 130
#: Characters of a class's name.
MAXIMUM_NAME = 16
#: Inches: the side of a square with few classes, and with many; the names, the title and the scale beside them.
LARGE_SQUARE, SMALL_SQUARE, FRAME = 0.5, 0.085, 2.0
#: The fewest inches that the squares take: with two classes, the labels beside them need as much.
SMALLEST_SIDE = 2.0


def plot_confusion(confusion: Array, classes: Sequence[str], output: Path, title: str = "") -> Path:
    """Draw `confusion` (classes, classes), counts of targets by their class and by the predicted one, into the file
    `output` (.png, .svg or .pdf) and return it.

    A row is a class; a colour says which part of its targets got the predicted class. Raises ConfigError for another
    ending, and DataError for an `output` that can't be written.
    """
    return save(partial(draw_confusion, confusion, classes, title), output)


def draw_confusion(confusion: Array, classes: Sequence[str], title: str = "") -> Figure:
    """The figure of `plot_confusion`."""
    from matplotlib.figure import Figure

    num_classes = len(classes)
    square = LARGE_SQUARE if num_classes <= MAXIMUM_NUMBERS else SMALL_SQUARE
    side = max(SMALLEST_SIDE, square * min(num_classes, MAXIMUM_NAMES))
    figure = Figure(figsize=(side + FRAME, side + FRAME - 0.4), layout="constrained")
    axes = figure.subplots()
    parts = confusion / np.maximum(confusion.sum(axis=1, keepdims=True), 1)
    image = axes.imshow(parts, cmap="Blues", vmin=0, vmax=1, interpolation="nearest")
    axes.set_title(one_line(title), loc="left", fontsize="medium", fontweight="bold", parse_math=False)
    axes.set_xlabel("predicted class")
    axes.set_ylabel("class")
    if num_classes <= MAXIMUM_NAMES:
        names = shorten([_printable(name) for name in classes], MAXIMUM_NAME)
        size = "small" if num_classes <= MAXIMUM_NUMBERS else 4
        # Short names stand upright; longer ones would run into each other.
        rotation = 0 if max(map(len, names)) <= 4 else 90
        axes.set_xticks(range(num_classes), names, fontsize=size, rotation=rotation)
        axes.set_yticks(range(num_classes), names, fontsize=size)
        for label in (*axes.get_xticklabels(), *axes.get_yticklabels()):
            label.set_parse_math(False)
        axes.tick_params(length=0)
    if num_classes <= MAXIMUM_NUMBERS:
        for row, column in np.argwhere(confusion).tolist():
            colour = "white" if parts[row, column] > 0.5 else "black"
            axes.text(
                column, row, f"{confusion[row, column]:,}", ha="center", va="center", color=colour, fontsize="small"
            )
    scale = figure.colorbar(image, ax=axes, shrink=0.7)
    scale.set_label("part of the class's targets", fontsize="small")
    scale.ax.tick_params(labelsize="small")
    return figure


def _printable(name: str) -> str:
    """A name; as Python writes it if it has only blanks, or has control characters, such as a line's end."""
    return name if name.isprintable() and name.strip() else quoted(name)
