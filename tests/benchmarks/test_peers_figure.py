"""The figure of the peers: the tables' names, and marks that don't lie on each other."""

from __future__ import annotations

import itertools

from benchmarks.peers.figure import MARKS, figure_of
from benchmarks.peers.subjects import SUBJECTS
from benchmarks.peers.times import Times
from matplotlib.collections import PathCollection

#: Microseconds of a step: all nearly equal, far apart, and as in a table, where some contestants are missing.
STEPS: dict[str, list[float]] = {
    "784-2048-2048-10 (256)": [91_080, 92_313, 93_580, 93_730, 88_330, 91_040, 104_900, 181_100, 84_540],
    "2-16-16-2 (32)": [4.5, 76, 266, 325, 50, 9.5, 98, 136, 1.4],
    "gpt.yaml (12)": [44_730, 60_000, 61_120, 59_500, 86_040, 69_250],
}


def test_no_mark_lies_on_another() -> None:
    results = {
        net: {name: Times([step]) for name, step in zip(MARKS, steps, strict=False)} for net, steps in STEPS.items()
    }
    results["gpt.yaml (12)"]["thinc"] = Times([], "it can't")
    figure = figure_of(results, threads=1)
    figure.draw_without_rendering()
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == list(STEPS)
    marks = {found.get_gid(): found for found in axes.findobj(PathCollection) if found.get_gid()}
    assert len(marks) == 9 + 9 + 6
    places = {name: axes.transData.transform(mark.get_offsets())[0] / figure.dpi for name, mark in marks.items()}
    largest = 0.15  # inches: the diamond, which stands on its corner
    near = [
        pair for pair in itertools.combinations(places, 2)
        if max(abs(places[pair[0]] - places[pair[1]])) < largest
    ]  # fmt: skip
    assert near == []
    assert all(label.get_window_extent().x0 >= 0 for label in axes.get_yticklabels())


def test_nets_have_the_names_of_the_tables() -> None:
    assert [SUBJECTS[name]().name for name in ("2-16-16-2", "deep", "gpt")] == [
        "2-16-16-2 (32)", "ten layers (64)", "gpt.yaml (12)"
    ]  # fmt: skip
