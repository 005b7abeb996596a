"""One figure of run directories: loss, accuracy, and how far the gradients of each step were from torch's.

The axes stand above each other, over epochs for the first two and over steps for the others. Each goes from 0 to the
end of the longest run, so for one finished run they cover the same time. pyplot isn't used: it would keep each figure
in memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from nn_manual.errors import ConfigError, DataError
from nn_manual.plotting.axes import Look, looks
from nn_manual.plotting.heat_map import FRAME_WIDTH, draw_heat_map, height_of
from nn_manual.plotting.panels import draw_accuracies, draw_gradient_errors, draw_losses
from nn_manual.plotting.saving import check_ending, rendered, save
from nn_manual.plotting.short_names import shorten
from nn_manual.run_directory.metrics import RecordedRun, read_run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The most characters of a run's name in the legend, and of a label if two columns are to fit the figure.
MAXIMUM_NAME, MAXIMUM_LABEL = 36, 62
#: The most characters of the note about a run.
MAXIMUM_NOTE = 70


def plot_runs(runs: Sequence[Path], output: Path, *, smoothing: float = 0.0, log_y: bool = False) -> Path:
    """Draw the run directories `runs` into the file `output` (.png, .svg or .pdf) and return it.

    `smoothing`, in [0, 1), is the factor of `smooth` for losses and accuracies; the raw curves stay behind, faint.
    Gradient errors are never smoothed. `log_y` makes the losses' axis logarithmic.

    Raises ConfigError for another ending, a `smoothing` out of range and no runs; DataError for a run that can't be
    read, runs that have recorded nothing, and an `output` that can't be written. The file is written atomically.
    """
    check_ending(output)
    if not 0 <= smoothing < 1:
        raise ConfigError(f"smoothing must be at least 0 and below 1, not {smoothing}")
    if not runs:
        raise ConfigError("no run directory to plot")
    recorded = [read_run(path) for path in runs]
    return save(partial(draw_runs, recorded, smoothing=smoothing, log_y=log_y), output)


def curves_of(run: RecordedRun) -> bytes:
    """The curves of a run as a PNG, without the heat map, which has a row for each tensor. Raises DataError if the run
    has recorded nothing.
    """
    return rendered(partial(draw_runs, [run], heat_map=False), ".png")


def draw_runs(
    runs: Sequence[RecordedRun], *, smoothing: float = 0.0, log_y: bool = False, heat_map: bool = True
) -> Figure:
    """The figure of `plot_runs`: axes for all that at least one run has recorded, and a heat map for a single run,
    unless `heat_map` is false.

    A run has one colour in all axes; a line's label is the column that it shows. Raises DataError if no run has
    recorded anything.
    """
    from matplotlib.figure import Figure

    with_epochs = any(run.metrics["epoch"].size for run in runs)
    with_accuracy = any("validation_accuracy" in run.metrics for run in runs)
    with_gradients = any(run.gradients["step"].size for run in runs)
    heights = [2.4] * with_epochs + [1.6] * with_accuracy + [2.2] * with_gradients
    if not heights:
        raise DataError(f"{', '.join(run.name for run in runs)}: nothing to plot, no epoch has ended yet")
    with_heat_map = heat_map and len(runs) == 1 and bool(runs[0].ledger.tensors)
    width = 8.0
    if with_heat_map:
        heights.append(height_of(runs[0].ledger))
        width += FRAME_WIDTH

    labels = _labels(runs)
    num_columns = 2 if len(runs) > 1 and max(map(len, labels)) <= MAXIMUM_LABEL else 1
    # Inches: room for the key to the colours.
    legend_height = 0.3 + 0.2 * math.ceil(len(runs) / num_columns)
    figure = Figure(figsize=(width, legend_height + sum(heights)), layout="constrained")
    panels = iter(figure.subplots(len(heights), squeeze=False, height_ratios=heights)[:, 0])
    looks_of_runs = looks(len(runs))

    if with_epochs:
        by_epoch = next(panels)
        draw_losses(by_epoch, runs, looks_of_runs, smoothing, log_y)
        if with_accuracy:
            by_epoch.tick_params(labelbottom=False)
            accuracies = next(panels)
            draw_accuracies(accuracies, runs, looks_of_runs, smoothing)
            accuracies.sharex(by_epoch)
            by_epoch = accuracies
        by_epoch.set_xlabel(f"epoch  (smoothing {smoothing}, faint: without)" if smoothing else "epoch")
    if with_gradients:
        by_step = next(panels)
        draw_gradient_errors(by_step, runs, looks_of_runs)
        if with_heat_map:
            by_tensor = next(panels)
            by_tensor.sharex(by_step)
            draw_heat_map(by_tensor, runs[0])
    _name_runs(figure, labels, looks_of_runs, num_columns)
    return figure


def _labels(runs: Sequence[RecordedRun]) -> list[str]:
    """The name of each run, with a note about it if there is one."""
    names = shorten([run.name for run in runs], MAXIMUM_NAME)
    labels = []
    for number, (run, name) in enumerate(zip(runs, names, strict=True), start=1):
        notes = []
        if run.stop is not None:
            reason = " ".join(run.stop.reason.split())
            notes.append(f"stopped at epoch {run.stop.epoch:,} of {run.stop.num_epochs:,}: {reason}")
        if not run.metrics["epoch"].size:
            notes.append("no epoch has ended")
        elif not run.gradients["step"].size:
            notes.append("gradients not checked")
        (note,) = shorten(["; ".join(notes)], MAXIMUM_NOTE)
        label = f"{number}: {name}" if names.count(name) > 1 else name
        labels.append(f"{label} ({note})" if note else label)
    return labels


def _name_runs(figure: Figure, labels: Sequence[str], looks: Sequence[Look], num_columns: int) -> None:
    """The key to the colours, above all axes."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=look.colour, marker=look.mark, linewidth=3) for look in looks]
    legend = figure.legend(
        handles, ["run"] * len(labels), loc="outside upper left", ncols=num_columns, frameon=False
    )
    # The texts are set here, because legend() leaves out labels with a leading underscore; a $ must begin no formula.
    for label, text in zip(labels, legend.get_texts(), strict=True):
        text.set(text=label, parse_math=False)
