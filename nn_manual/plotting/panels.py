"""The curves: losses, accuracies, and the worst gradient error of each step under its tolerance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from nn_manual.arrays import Array
from nn_manual.plotting.axes import (
    MAXIMUM_POINTS,
    NOT_POSITIVE,
    TOO_LARGE,
    Colour,
    Curve,
    Key,
    Style,
    finish,
    mark,
)
from nn_manual.run_directory.metrics import COUNTS, Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Curves with at most this many points show each of them: a single one would be no line at all.
MAXIMUM_MARKERS = 50

TRAINING: Style = {"linestyle": "-", "marker": "o", "markersize": 3}
VALIDATION: Style = {"linestyle": "--", "marker": "o", "markersize": 4, "markerfacecolor": "white"}


def draw_losses(axes: Axes, runs: Sequence[Run], colours: Sequence[Colour], smoothing: float, log_y: bool) -> None:
    """Training and validation loss over epochs; `log_y` makes the axis logarithmic.

    Losses that are sums over the examples are drawn per example: the two parts of the data differ in size.
    """
    curves = _draw_epochs(axes, runs, colours, "train_loss", TRAINING, smoothing)
    key: Key = [("training", TRAINING)]
    if validated := _draw_epochs(axes, runs, colours, "validation_loss", VALIDATION, smoothing):
        key.append(("validation", VALIDATION))
    if log_y:
        axes.set_yscale("log", nonpositive="mask")
        key += mark(axes, curves + validated, NOT_POSITIVE, "0 or below")
    key += mark(axes, curves + validated, TOO_LARGE, "NaN or huge")
    unit = "loss per example" if any(COUNTS["train_loss"] in run.metrics for run in runs) else "loss"
    finish(axes, "Loss by epoch", unit, [x for x, _, _ in curves], key)


def draw_accuracies(axes: Axes, runs: Sequence[Run], colours: Sequence[Colour], smoothing: float) -> None:
    """Validation accuracy over epochs."""
    from matplotlib.ticker import PercentFormatter

    curves = _draw_epochs(axes, runs, colours, "validation_accuracy", VALIDATION, smoothing)
    axes.yaxis.set_major_formatter(PercentFormatter(xmax=1))
    finish(axes, "Accuracy by epoch", "accuracy", [x for x, _, _ in curves], [("validation", VALIDATION)])


def _draw_epochs(
    axes: Axes, runs: Sequence[Run], colours: Sequence[Colour], column: str, style: Style, smoothing: float
) -> list[Curve]:
    """Draw one column of metrics.jsonl over epochs, smoothed, and return the raw curves that there are."""
    curves = [
        (run.metrics["epoch"], _drawable(_values(run, column)), colour)
        for run, colour in zip(runs, colours, strict=True)
        if column in run.metrics
    ]
    for epochs, values, colour in curves:
        line = style | {"color": colour, "markevery": [] if epochs.size > MAXIMUM_MARKERS else None}
        if smoothing:
            axes.plot(epochs, values, label=f"{column}, raw", alpha=0.25, **line)
        axes.plot(epochs, smooth(values, smoothing), label=column, **line)
    return curves


def _values(run: Run, column: str) -> Array:
    """A column of metrics.jsonl; per example where it is a sum over examples."""
    values, count = run.metrics[column], COUNTS.get(column)
    return values / run.metrics[count] if count in run.metrics else values


def draw_gradient_errors(axes: Axes, runs: Sequence[Run], colours: Sequence[Colour]) -> None:
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
    key += mark(axes, curves, NOT_POSITIVE, "exactly 0")
    key += mark(axes, curves, TOO_LARGE, "NaN or huge")
    # RUF001: a minus sign, as on the axes' own numbers.
    finish(axes, "Worst gradient error by step", "max|ours − torch|\n/ max|torch|", [x for x, _, _ in curves], key)  # noqa: RUF001
    stretch = max(math.ceil(steps.size / MAXIMUM_POINTS) for steps, _, _ in curves)
    axes.set_xlabel("step" if stretch == 1 else f"step  (each point the worst of {stretch})")


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


def _drawable(values: Array) -> Array:
    """NaN in place of what matplotlib's axes fail at: room around numbers near 1.8e308, float64's end, overflows."""
    return np.where(np.abs(values) < 1e300, values, np.nan)
