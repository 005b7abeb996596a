"""What all axes of a figure share: the range, the labels, the key, and marks for what has no place on the scale."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from nn_manual.arrays import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The most points that a curve of gradient errors is drawn with: one for each pixel of its axes, which are about
#: 1000 wide.
MAXIMUM_POINTS = 1000

Colour: TypeAlias = tuple[float, float, float, float]
#: Positions (n,), values (n,).
Curve: TypeAlias = tuple[Array, Array, Colour]
#: Keyword arguments of matplotlib's Line2D.
Style: TypeAlias = dict[str, Any]
#: What each style means.
Key: TypeAlias = list[tuple[str, Style]]


class Mark(NamedTuple):
    """How values are shown that have no place on an axis."""

    applies: Callable[[Array], Array]
    #: Fraction of the axes' height: at the foot for too low, at the top for too high.
    height: float
    style: Style


NOT_POSITIVE = Mark(lambda values: values <= 0, 0.04, {"linestyle": "", "marker": "v", "markersize": 4})
TOO_LARGE = Mark(np.isnan, 0.96, {"linestyle": "", "marker": "x", "markersize": 4})


def mark(axes: Axes, curves: Sequence[Curve], mark: Mark, meaning: str) -> Key:
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


def finish(axes: Axes, title: str, unit: str, positions: Sequence[Array], key: Key) -> None:
    """Labels, the range that holds all `positions`, and the key to the styles.

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
    axes.legend(
        [Line2D([], [], color="0.3", **style) for _, style in key], [text for text, _ in key],
        loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0.2, ncols=len(key), frameon=False,
        fontsize="small", handlelength=2.4, handletextpad=0.4, columnspacing=1.2,
    )  # fmt: skip


def shorten(name: str, length: int) -> str:
    """A name that is longer than `length` loses its middle: names mostly differ at their ends."""
    half = length // 2
    return name if len(name) <= length else f"{name[:half]}…{name[-half:]}"
