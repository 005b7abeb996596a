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
    WRONG,
    Curve,
    Key,
    Look,
    Style,
    finish,
    mark,
    widths,
)
from nn_manual.plotting.short_names import shorten
from nn_manual.run_directory.metrics import COUNTS, RecordedRun

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: A curve with at most this many points has a mark at each of them: a single point would be no line at all.
MAXIMUM_MARKERS = 50
#: How many marks a longer curve has, to be told from those of other runs.
FEW_MARKERS = 8

TRAINING: Style = {"linestyle": "-", "linewidth": 1.5, "markersize": 3}
VALIDATION: Style = {"linestyle": "--", "linewidth": 1.5, "markersize": 4, "markerfacecolor": "white"}

#: The line of what is allowed, and what lies beyond.
ABOVE = "below 100%: rounding, every gradient right; above: a wrong formula, or rounding that float64 excuses"
TOLERANCE: Style = {"linestyle": "-", "linewidth": 1.2, "color": "0.3"}
BEYOND: Style = {"linestyle": "", "marker": "D", "markersize": 5, "markerfacecolor": "white"}
MISMATCH: Style = {"linestyle": "", "marker": "X", "markersize": 9, "color": WRONG}

#: Percent of the tolerance: the top of the axis is at least LEAST_TOP, as most mistakes in a formula lie above it, and
#: at most MOST_TOP. Its bottom is at least LEAST_BOTTOM.
LEAST_TOP, MOST_TOP = 1e4, 1e12
LEAST_BOTTOM = 1e-12

#: The most characters of a mismatch's name in the key.
MAXIMUM_NAME = 26


def draw_losses(axes: Axes, runs: Sequence[RecordedRun], looks: Sequence[Look], smoothing: float, log_y: bool) -> None:
    """Training and validation loss over epochs; `log_y` makes the axis logarithmic.

    Losses that are sums over the examples are drawn per example: the two parts of the data differ in size.
    """
    curves = _draw_epochs(axes, runs, looks, "train_loss", TRAINING, smoothing)
    key: Key = [("training", _in_key(TRAINING))]
    if validated := _draw_epochs(axes, runs, looks, "validation_loss", VALIDATION, smoothing):
        key.append(("validation", _in_key(VALIDATION)))
    if log_y:
        axes.set_yscale("log", nonpositive="mask")
        key += mark(axes, curves + validated, NOT_POSITIVE, "0 or below")
    key += mark(axes, curves + validated, TOO_LARGE, "NaN or huge")
    unit = "loss per example" if any(COUNTS["train_loss"] in run.metrics for run in runs) else "loss"
    finish(axes, "Loss by epoch", unit, [x for x, _, _ in curves], key)


def draw_accuracies(axes: Axes, runs: Sequence[RecordedRun], looks: Sequence[Look], smoothing: float) -> None:
    """Validation accuracy over epochs."""
    from matplotlib.ticker import PercentFormatter

    curves = _draw_epochs(axes, runs, looks, "validation_accuracy", VALIDATION, smoothing)
    bottom, top = axes.get_ylim()
    low, high = max(bottom, 0.0), min(top, 1.0)
    margin = 0.05 * (high - low)  # too narrow for a label beyond 0% or 100%
    axes.set_ylim(max(bottom, low - margin), min(top, high + margin))
    axes.yaxis.set_major_formatter(PercentFormatter(xmax=1))
    finish(axes, "Accuracy by epoch", "accuracy", [x for x, _, _ in curves], [("validation", _in_key(VALIDATION))])


def _in_key(style: Style) -> Style:
    return {"marker": "o", **style}


def _draw_epochs(
    axes: Axes, runs: Sequence[RecordedRun], looks: Sequence[Look], column: str, style: Style, smoothing: float
) -> list[Curve]:
    """Draw one column of metrics.jsonl over epochs, smoothed. Returns the raw curves of the runs that have it."""
    drawn = [(run, look) for run, look in zip(runs, looks, strict=True) if column in run.metrics]
    curves = [(run.metrics["epoch"], _drawable(_values(run, column)), look.colour) for run, look in drawn]
    for (epochs, values, colour), (run, look), wider in zip(curves, drawn, widths(curves), strict=True):
        markers = _marked(epochs.size, runs.index(run), len(runs))
        line = style | {"color": colour, "marker": look.mark, "markevery": markers}
        line |= {"linewidth": style["linewidth"] + wider, "markersize": style["markersize"] + wider}
        if smoothing:
            axes.plot(epochs, values, label=f"{column}, raw", alpha=0.25, **line)
        axes.plot(epochs, smooth(values, smoothing), label=column, **line)
    return curves


def _marked(num_points: int, index: int, num_runs: int) -> tuple[int, int] | list[int] | None:
    """Which points of a curve get a mark: all, none, or with several runs a few, at other places than in other runs."""
    if num_points <= MAXIMUM_MARKERS:
        return None
    distance = num_points // FEW_MARKERS
    return (index * distance // num_runs, distance) if num_runs > 1 else []


def _values(run: RecordedRun, column: str) -> Array:
    """A column of metrics.jsonl. A sum over examples is divided by their number."""
    values, count = run.metrics[column], COUNTS.get(column)
    return values / run.metrics[count] if count in run.metrics else values


def draw_gradient_errors(axes: Axes, runs: Sequence[RecordedRun], looks: Sequence[Look]) -> None:
    """The largest difference of each checked step, in percent of that tensor's tolerance, and a line at 100%. Those
    beyond are marked: those by rounding, which are excused, and the mismatch that ended a run.
    """
    checked = [(run, look) for run, look in zip(runs, looks, strict=True) if run.gradients["step"].size]
    curves = [(run.gradients["step"], percent_of_tolerance(run), look.colour) for run, look in checked]
    mismatches = [run.gradients["mismatch"] for run, _ in checked]
    axes.set_yscale("log", nonpositive="mask")
    _set_percent_range(axes, curves)
    axes.axhline(100, label="tolerance", **TOLERANCE)
    key: Key = [("100%: the bound for rounding", TOLERANCE)]
    num_excused, longest = 0, max(percent.size for _, percent, _ in curves)
    for (run, look), (steps, percent, colour), wider in zip(checked, curves, widths(curves), strict=True):
        # Of the longest run as many points as there may be, and of the others as many in a step.
        most = math.ceil(MAXIMUM_POINTS * percent.size / max(MAXIMUM_POINTS, longest))
        shown = steps_to_draw(percent, run.gradients["mismatch"] != "", most)
        # With dots, because a step between two errors of zero would be no line.
        size = (1.2 if shown.size > MAXIMUM_MARKERS else 4) + wider / 2
        axes.plot(
            steps[shown], percent[shown], label="percent", color=colour, marker=look.mark, markersize=size,
            linewidth=0.6 + wider / 2, markeredgewidth=0,
        )  # fmt: skip
        excused = run.gradients["rounding"] > 0
        num_excused += int(np.count_nonzero(excused))
        shown = shown[excused[shown]]
        if shown.size:
            size = 2.5 if shown.size > MAXIMUM_MARKERS else 5
            axes.plot(steps[shown], percent[shown], label="rounding", color=colour, **{**BEYOND, "markersize": size})
    if num_excused:
        num_steps = sum(run.gradients["num_steps"].sum() for run, _ in checked)
        key.append((f"beyond, by rounding alone: {num_excused:,} of {num_steps:,}", BEYOND))
    key += _mark_mismatches(axes, curves, mismatches)
    curves = [(x[m == ""], y[m == ""], colour) for (x, y, colour), m in zip(curves, mismatches, strict=True)]
    key += mark(axes, curves, NOT_POSITIVE, "exactly 0")
    key += mark(axes, curves, TOO_LARGE, "NaN or huge")
    steps_of_runs = [run.gradients["step"] for run, _ in checked]
    finish(axes, "Difference by step", "of the bound for rounding", steps_of_runs, key)
    stretch = max(_steps_in_a_point(run) for run, _ in checked)
    axes.set_xlabel("step" if stretch == 1 else f"step  (each point the worst of {stretch:,})")
    # Below the label, where it covers no point.
    axes.annotate(
        ABOVE, (0, 0), xytext=(0, -2), xycoords=("axes fraction", axes.xaxis.label), textcoords="offset points",
        fontsize="small", color="0.5", va="top",
    )  # fmt: skip


def percent_of_tolerance(run: RecordedRun) -> Array:
    """The worst error of each line of gradients.jsonl, in percent of what its tensor's tolerance allows; NaN for an
    error above MOST_TOP.
    """
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        percent = 100 * run.gradients["relative"] / run.gradients["tolerance"]
    return np.where(percent <= MOST_TOP, percent, np.nan)


def _mark_mismatches(axes: Axes, curves: Sequence[Curve], mismatches: Sequence[Array]) -> Key:
    """Mark the mismatches. A run has at most one, at its end."""
    wrong = []
    for (steps, percent, _), names in zip(curves, mismatches, strict=True):
        for line in np.flatnonzero(names != ""):
            # A step that can't be compared has no percent: its mark stands at the top.
            known = np.isfinite(percent[line])
            axes.plot(
                steps[line], percent[line] if known else TOO_LARGE.height, label="mismatch",
                transform=axes.transData if known else axes.get_xaxis_transform(), **MISMATCH,
            )  # fmt: skip
            wrong.append((steps[line], names[line]))
    if len(wrong) > 1:
        return [(f"wrong: the last step of {len(wrong)} runs", MISMATCH)]
    return [(f"wrong at step {step:,}: {shorten([name], MAXIMUM_NAME)[0]}", MISMATCH) for step, name in wrong]


def _steps_in_a_point(run: RecordedRun) -> int:
    num_steps = run.gradients["num_steps"]
    return math.ceil(int(num_steps.sum()) / min(num_steps.size, MAXIMUM_POINTS))


def _set_percent_range(axes: Axes, curves: Sequence[Curve]) -> None:
    """Set the range from the smallest to the largest error, and at least up to LEAST_TOP, with room for the marks."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    values = np.concatenate([values for _, values, _ in curves])
    drawn = np.clip(values[values > 0], LEAST_BOTTOM, MOST_TOP)
    low = math.floor(math.log10(drawn.min(initial=1)))
    high = math.ceil(math.log10(drawn.max(initial=LEAST_TOP)))
    room = 0.1 * (high - low)
    axes.set_ylim(10 ** (low - room), 10 ** (high + room))
    axes.yaxis.set_major_locator(LogLocator(numticks=8))
    written = _percent if low > -4 and high < 5 else _power  # for all labels alike
    axes.yaxis.set_major_formatter(FuncFormatter(written))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _percent(value: float, _: int) -> str:
    return f"{value:,.6g}%"


def _power(value: float, _: int) -> str:
    return f"$10^{{{round(math.log10(value))}}}$%"


def smooth(values: Array, smoothing: float) -> Array:
    """The exponential moving average, weighted so that the first values don't count more than later ones, shape (n,).

        output[n] = sum_k smoothing**(n - k) * values[k] / sum_k smoothing**(n - k),   k = 0 ... n

    Both sums follow from the sums before, times `smoothing`: the first one plus values[n], the second one plus 1. With
    smoothing 0, the output is `values`. A value that isn't finite is left out of both sums and stays as it is.
    """
    output = np.array(values, np.float64)
    weighted_sum = sum_of_weights = 0.0
    for index in np.flatnonzero(np.isfinite(output)):
        weighted_sum = smoothing * weighted_sum + output[index]
        sum_of_weights = smoothing * sum_of_weights + 1
        output[index] = weighted_sum / sum_of_weights
    return output


def steps_to_draw(percent: Array, is_mismatch: Array, most: int) -> Array:
    """Indices, ascending, of the lines that a curve of gradient errors is drawn through.

    Of up to `most` lines, these are all. Of more, they are the worst of each of `most` equal stretches, and each
    mismatch, so that the curve never looks better than the run was.
    """
    edges = np.linspace(0, percent.size, min(percent.size, most) + 1).astype(np.int64)
    worst = [start + np.argmax(percent[start:stop]) for start, stop in pairwise(edges)]  # NaN counts as the maximum
    return np.union1d(worst, np.flatnonzero(is_mismatch)).astype(np.int64)


def _drawable(values: Array) -> Array:
    """The values, with NaN for those from 1e300 on: near float64's largest number, matplotlib's margins overflow."""
    return np.where(np.abs(values) < 1e300, values, np.nan)
