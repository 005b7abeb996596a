"""What all axes of a figure share: a run's colour and mark, the range, the labels, the key, marks off the scale."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from nn_manual.arrays import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The most points that a curve of gradient errors is drawn with: one for each pixel of its axes, which are about
#: 1000 wide.
MAXIMUM_POINTS = 1000

#: Colours of runs that people with any colour blindness can tell apart (Okabe and Ito's, without the yellow, which is
#: too pale for a line), then three more. None of them is the red of a mismatch.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#8c510a", "#333333", "#999999", "#5e3c99", "#a6d854")
#: Marks of runs: with more runs than colours, the same colour comes with another mark.
MARKS = ("o", "s", "^", "D", "v", "P", "X")

#: Only what is wrong is red. What is beyond its tolerance by rounding alone has a colour of its own.
WRONG, EXCUSED = "#d00000", "#e69f00"

#: Two curves coincide where their values differ by less than this: about a pixel.
COINCIDE = 5e-3

#: The most characters of a key that has one line beside the title; each handle counts as HANDLE characters.
MAXIMUM_KEY, HANDLE = 80, 6

#: Positions (n,), values (n,), the colour.
Curve: TypeAlias = tuple[Array, Array, str]
#: Keyword arguments of matplotlib's Line2D.
Style: TypeAlias = dict[str, Any]
#: What each style means.
Key: TypeAlias = list[tuple[str, Style]]


class Look(NamedTuple):
    """How a run is drawn in all axes."""

    colour: str
    mark: str


def looks(num_runs: int) -> list[Look]:
    """A look for each run. No two are the same for up to 70 runs."""
    return [Look(COLOURS[i % len(COLOURS)], MARKS[i % len(MARKS)]) for i in range(num_runs)]


def widths(curves: Sequence[Curve]) -> list[float]:
    """How many points wider than usual each curve is drawn: one that later curves cover shows on both sides of them."""
    covered = [0] * len(curves)
    for (below, (x, y, _)), (_, (other_x, other_y, _)) in combinations(enumerate(curves), 2):
        _, here, there = np.intersect1d(x, other_x, return_indices=True)
        near = np.isclose(y[here], other_y[there], rtol=COINCIDE, atol=0, equal_nan=True)
        covered[below] += bool(2 * np.count_nonzero(near) > near.size)
    return [min(2.5, 7 / max(covered)) * count if count else 0.0 for count in covered]


class Mark(NamedTuple):
    """How values that have no place on an axis are shown."""

    applies: Callable[[Array], Array]
    #: Fraction of the axes' height: at the foot for too low, at the top for too high.
    height: float
    style: Style


NOT_POSITIVE = Mark(lambda values: values <= 0, 0.04, {"linestyle": "", "marker": "v", "markersize": 4})
TOO_LARGE = Mark(np.isnan, 0.96, {"linestyle": "", "marker": "x", "markersize": 4})


def mark(axes: Axes, curves: Sequence[Curve], mark: Mark, meaning: str) -> Key:
    """Draw marks for the values that have no place on the axes' scale. Returns their entry in the key, if any."""
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


def finish(axes: Axes, title: str, unit: str, positions: Sequence[Array], key: Key) -> None:
    """Set the labels, the range that holds all `positions`, and the key to the styles.

    The key stands above the axes, where it covers no curve.
    """
    from matplotlib.lines import Line2D
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    axes.set_title(title, loc="left", fontsize="medium", fontweight="bold")
    axes.set_ylabel(unit)
    last = max(int(x.max(initial=1)) for x in positions)
    axes.set_xlim(-0.02 * last, 1.02 * last)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    num_columns = len(key) if sum(len(text) + HANDLE for text, _ in key) <= MAXIMUM_KEY else 2
    legend = axes.legend(
        [Line2D([], [], **{"color": "0.3", **style}) for _, style in key], [text for text, _ in key],
        loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0.2, ncols=num_columns, frameon=False,
        fontsize="small", handlelength=2.4, handletextpad=0.4, columnspacing=1.2,
    )  # fmt: skip
    for text in legend.get_texts():
        text.set_parse_math(False)  # a tensor's name may have a $
