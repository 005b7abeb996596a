"""Run directories to one figure: loss, accuracy, and the worst gradient error of each step under its tolerance.

The axes stand above each other: epochs for the first two, steps for the last, each from 0 to the longest run's end,
so that for one finished run they are one time. No pyplot: the figure is an object, and nothing of it stays behind.
"""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from nn_manual.arrays import Array
from nn_manual.errors import ConfigError, DataError
from nn_manual.files import write_atomically
from nn_manual.metrics import Run, read_run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: The endings of a figure's file, and what to leave out of each: the time of drawing, so that the same runs give
#: the same bytes.
FORMATS: dict[str, dict[str, Any]] = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}

#: matplotlib's settings: the size of text in points, and what the ids in an SVG are made from, random otherwise.
#: Any, as for matplotlib's type checker each key is a type of its own.
SETTINGS: Any = {"font.size": 9, "svg.hashsalt": "nn_manual"}

#: The most points that a curve of gradient errors is drawn with: one for each pixel of its axes, which are about
#: 1000 wide.
MAXIMUM_POINTS = 1000
#: Curves with at most this many points show each of them: a single one would be no line at all.
MAXIMUM_MARKERS = 50
#: Characters of a run's name in the legend: two columns of them fit the figure.
MAXIMUM_NAME = 36

Colour: TypeAlias = tuple[float, float, float, float]
#: Positions (n,), values (n,).
Curve: TypeAlias = tuple[Array, Array, Colour]
#: Keyword arguments of matplotlib's Line2D.
Style: TypeAlias = dict[str, Any]
#: What each style means.
Key: TypeAlias = list[tuple[str, Style]]

TRAINING: Style = {"linestyle": "-", "marker": "o", "markersize": 3}
VALIDATION: Style = {"linestyle": "--", "marker": "o", "markersize": 4, "markerfacecolor": "white"}


class Mark(NamedTuple):
    """How values are shown that have no place on an axis."""

    applies: Callable[[Array], Array]
    #: Fraction of the axes' height: at the foot for too low, at the top for too high.
    height: float
    style: Style


NOT_POSITIVE = Mark(lambda values: values <= 0, 0.04, {"linestyle": "", "marker": "v", "markersize": 4})
TOO_LARGE = Mark(np.isnan, 0.96, {"linestyle": "", "marker": "x", "markersize": 4})


def plot_runs(runs: Sequence[Path], output: Path, *, smoothing: float = 0.0, log_y: bool = False) -> Path:
    """Draw the run directories `runs` into the file `output` (.png, .svg or .pdf) and return it.

    `smoothing`, in [0, 1), is the factor of `smooth` for losses and accuracies; the raw curves stay behind, faint.
    Gradient errors are never smoothed. `log_y` makes the losses' axis logarithmic.

    Raises ConfigError for another ending, a `smoothing` out of range and no runs; DataError for a run that can't be
    read, runs that have recorded nothing, and an `output` that can't be written. The file is written atomically.
    """
    ending = output.suffix.lower()
    if ending not in FORMATS:
        raise ConfigError(f"{output}: the name of a figure must end in {', '.join(FORMATS)}")
    if not 0 <= smoothing < 1:
        raise ConfigError(f"smoothing must be at least 0 and below 1, not {smoothing}")
    if not runs:
        raise ConfigError("no run directory to plot")
    recorded = [read_run(path) for path in runs]

    import matplotlib

    buffer = io.BytesIO()
    with warnings.catch_warnings():
        # A run's name may have letters that the font lacks: the figure shows boxes.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        # All losses are 0: their marks say so.
        warnings.filterwarnings("ignore", "Data has no positive values")
        with matplotlib.rc_context(SETTINGS):
            figure = draw_runs(recorded, smoothing=smoothing, log_y=log_y)
            figure.savefig(buffer, format=ending[1:], metadata=FORMATS[ending], dpi=150)
    write_atomically(output, buffer.getvalue())
    return output


def draw_runs(runs: Sequence[Run], *, smoothing: float = 0.0, log_y: bool = False) -> Figure:
    """The figure of `plot_runs`: 8 inches wide, axes for whatever at least one run has recorded.

    A run has one colour in all axes; a line's label is the column that it shows. Raises DataError if no run has
    recorded anything.
    """
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    with_epochs = any(run.metrics["epoch"].size for run in runs)
    with_accuracy = any("validation_accuracy" in run.metrics for run in runs)
    with_gradients = any(run.gradients["step"].size for run in runs)
    heights = [2.4] * with_epochs + [1.6] * with_accuracy + [2.2] * with_gradients
    if not heights:
        raise DataError(f"{', '.join(run.name for run in runs)}: nothing to plot, no epoch has ended yet")

    # Inches: room for the key to the colours, which has two runs on a line.
    legend_height = 0.3 + 0.2 * ((len(runs) + 1) // 2)
    figure = Figure(figsize=(8, legend_height + sum(heights)), layout="constrained")
    panels = list(figure.subplots(len(heights), squeeze=False, height_ratios=heights)[:, 0])
    colours = [colormaps["tab10" if len(runs) <= 10 else "tab20"](index % 20) for index in range(len(runs))]

    if with_gradients:
        _draw_gradient_errors(panels.pop(), runs, colours)
    if with_epochs:
        _draw_losses(panels[0], runs, colours, smoothing, log_y)
        if with_accuracy:
            _draw_accuracies(panels[1], runs, colours, smoothing)
            panels[1].sharex(panels[0])
            panels[0].tick_params(labelbottom=False)
        panels[-1].set_xlabel(f"epoch  (smoothing {smoothing}, faint: without)" if smoothing else "epoch")
    _name_runs(figure, runs, colours)
    return figure


def smooth(values: Array, smoothing: float) -> Array:
    """Exponential moving average, weighted so that the first values count no more than later ones, shape (n,).

        output[n] = sum_k smoothing**(n - k) * values[k] / sum_k smoothing**(n - k),   k = 0 ... n

    Both sums follow from the ones before: times `smoothing`, plus values[n] and plus 1. At smoothing 0 the output is
    `values`. A value that isn't finite is left out of both sums and stays what it is.
    """
    output = np.array(values, np.float64)
    weighted_sum = sum_of_weights = 0.0
    for index in np.flatnonzero(np.isfinite(output)):
        weighted_sum = smoothing * weighted_sum + output[index]
        sum_of_weights = smoothing * sum_of_weights + 1
        output[index] = weighted_sum / sum_of_weights
    return output


def steps_to_draw(relative: Array, tolerance: Array) -> Array:
    """Indices, ascending, of the steps that a curve of gradient errors is drawn through.

    Up to MAXIMUM_POINTS steps: all. More: the worst of each of MAXIMUM_POINTS equal stretches, and every step whose
    error is not within its tolerance, so that the curve never looks better than the run was.
    """
    edges = np.linspace(0, relative.size, min(relative.size, MAXIMUM_POINTS) + 1).astype(np.int64)
    worst = [start + np.argmax(relative[start:stop]) for start, stop in pairwise(edges)]  # NaN counts as the maximum
    return np.union1d(worst, np.flatnonzero(~(relative <= tolerance))).astype(np.int64)


def _draw_losses(axes: Axes, runs: Sequence[Run], colours: Sequence[Colour], smoothing: float, log_y: bool) -> None:
    curves = _draw_epochs(axes, runs, colours, "train_loss", TRAINING, smoothing)
    key: Key = [("training", TRAINING)]
    if validated := _draw_epochs(axes, runs, colours, "validation_loss", VALIDATION, smoothing):
        key.append(("validation", VALIDATION))
    if log_y:
        axes.set_yscale("log", nonpositive="mask")
        key += _mark(axes, curves + validated, NOT_POSITIVE, "0 or below")
    key += _mark(axes, curves + validated, TOO_LARGE, "NaN or huge")
    _finish(axes, "Loss by epoch", "loss", curves, key)


def _draw_accuracies(axes: Axes, runs: Sequence[Run], colours: Sequence[Colour], smoothing: float) -> None:
    from matplotlib.ticker import PercentFormatter

    curves = _draw_epochs(axes, runs, colours, "validation_accuracy", VALIDATION, smoothing)
    axes.yaxis.set_major_formatter(PercentFormatter(xmax=1))
    _finish(axes, "Accuracy by epoch", "accuracy", curves, [("validation", VALIDATION)])


def _drawable(values: Array) -> Array:
    """NaN in place of what matplotlib's axes fail at: room around numbers near 1.8e308, float64's end, overflows."""
    return np.where(np.abs(values) < 1e300, values, np.nan)


def _draw_epochs(
    axes: Axes, runs: Sequence[Run], colours: Sequence[Colour], column: str, style: Style, smoothing: float
) -> list[Curve]:
    """Draw one column of metrics.jsonl over epochs, smoothed, and return the raw curves that there are."""
    curves = [
        (run.metrics["epoch"], _drawable(run.metrics[column]), colour)
        for run, colour in zip(runs, colours, strict=True)
        if column in run.metrics
    ]
    for epochs, values, colour in curves:
        line = style | {"color": colour, "markevery": [] if epochs.size > MAXIMUM_MARKERS else None}
        if smoothing:
            axes.plot(epochs, values, label=f"{column}, raw", alpha=0.25, **line)
        axes.plot(epochs, smooth(values, smoothing), label=column, **line)
    return curves


def _draw_gradient_errors(axes: Axes, runs: Sequence[Run], colours: Sequence[Colour]) -> None:
    """The worst relative error of each checked step, and the tolerance that it had to keep."""
    checked = [(run, colour) for run, colour in zip(runs, colours, strict=True) if run.gradients["step"].size]
    curves = []
    for index, (run, colour) in enumerate(checked):
        steps = run.gradients["step"]
        errors, tolerances = _drawable(run.gradients["relative"]), _drawable(run.gradients["tolerance"])
        curves.append((steps, errors, colour))
        shown = steps_to_draw(errors, tolerances)
        # With dots, because a step between two errors of zero would be no line.
        size = 2.5 if shown.size > MAXIMUM_MARKERS else 6
        axes.plot(steps[shown], errors[shown], ".-", label="relative", color=colour, markersize=size, linewidth=0.6)
        # Most runs have one tolerance: the dashes of each fall into the gaps of the others. Drawn from step 0, as
        # that of a single step would be no line.
        dashes = (4 * index, (4, 4 * max(len(checked) - 1, 1)))
        axes.step(
            np.append(0, steps[shown]), np.append(tolerances[0], tolerances[shown]),
            label="tolerance", color=colour, linestyle=dashes, linewidth=1.2,
        )  # fmt: skip
    axes.set_yscale("log", nonpositive="mask")
    key: Key = [("tolerance", {"linestyle": (0, (4, 4))})]
    key += _mark(axes, curves, NOT_POSITIVE, "exactly 0")
    key += _mark(axes, curves, TOO_LARGE, "NaN or huge")
    # RUF001: a minus sign, as on the axes' own numbers.
    _finish(axes, "Worst gradient error by step", "max|ours − torch|\n/ max|torch|", curves, key)  # noqa: RUF001
    stretch = max(math.ceil(steps.size / MAXIMUM_POINTS) for steps, _, _ in curves)
    axes.set_xlabel("step" if stretch == 1 else f"step  (each point the worst of {stretch})")


def _mark(axes: Axes, curves: Sequence[Curve], mark: Mark, meaning: str) -> Key:
    """Draw marks for the values that have no place on the axes' scale; returns their entry in the key, if any."""
    marked = [(x[mark.applies(y)], colour) for x, y, colour in curves]
    count = sum(x.size for x, _ in marked)
    if not count:
        return []
    for x, colour in marked:
        x = x[:: math.ceil(x.size / MAXIMUM_POINTS) or 1]  # so many marks overlap
        axes.plot(
            x, np.full(x.size, mark.height), label=meaning, color=colour, transform=axes.get_xaxis_transform(),
            **mark.style,
        )  # fmt: skip
    axes.margins(y=0.12)  # keeps the curves clear of the marks
    return [(f"{meaning}: {count:,} of {sum(x.size for x, _, _ in curves):,}", mark.style)]


def _finish(axes: Axes, title: str, unit: str, curves: Sequence[Curve], key: Key) -> None:
    """Labels, range, and the key to the styles, which stands above the axes, where it covers no curve."""
    from matplotlib.lines import Line2D
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    axes.set_title(title, loc="left", fontsize="medium", fontweight="bold")
    axes.set_ylabel(unit)
    last = max(int(x.max(initial=1)) for x, _, _ in curves)
    axes.set_xlim(-0.02 * last, 1.02 * last)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(
        [Line2D([], [], color="0.3", **style) for _, style in key], [text for text, _ in key],
        loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0.2, ncols=len(key), frameon=False,
        fontsize="small", handlelength=2.4, handletextpad=0.4, columnspacing=1.2,
    )  # fmt: skip


def _name_runs(figure: Figure, runs: Sequence[Run], colours: Sequence[Colour]) -> None:
    """The key to the colours, above all axes."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=colour, linewidth=3) for colour in colours]
    legend = figure.legend(
        handles, ["run"] * len(runs), loc="outside upper left", ncols=min(len(runs), 2), frameon=False
    )
    names = [_shorten(run.name) for run in runs]
    for number, (run, name, text) in enumerate(zip(runs, names, legend.get_texts(), strict=True), start=1):
        label = f"{number}: {name}" if names.count(name) > 1 else name
        if not run.metrics["epoch"].size:
            label += " (no epoch has ended)"
        elif not run.gradients["step"].size:
            label += " (gradients not checked)"
        # Only here, because legend() leaves out labels with a leading underscore; and a $ begins no formula.
        text.set(text=label, parse_math=False)


def _shorten(name: str) -> str:
    """A name that is too long loses its middle: at the end of it is the run's time."""
    half = MAXIMUM_NAME // 2
    return name if len(name) <= MAXIMUM_NAME else f"{name[:half]}…{name[-half:]}"
