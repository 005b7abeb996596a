"""Two Jacobians side by side."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from nn_manual.errors import ConfigError
from nn_manual.plotting.axes import WRONG
from nn_manual.plotting.jacobians import MAXIMUM_NUMBERS, Jacobians, draw_jacobians, plot_jacobians

THEIRS = np.array([[1.0, 0.0, 3.0], [np.nan, -4.0, 0.0]])
TRUE = np.array([[1.0, 2.0, 3.0], [0.0, -4.0, 0.0]])
BOTH = Jacobians(THEIRS, TRUE, THEIRS != TRUE, "Own(2), $x$ input", "weight")


def test_wrong_entries_are_framed_and_the_colours_are_the_same() -> None:
    figure = draw_jacobians(BOTH)
    left, right, scale = figure.axes
    assert left.get_title() == "your backward: 2 of 6 entries wrong"
    frames = [patch for patch in left.patches if isinstance(patch, Rectangle)]
    assert [frame.get_xy() for frame in frames] == [(0.5, -0.5), (-0.5, 0.5)]
    assert {to_hex(frame.get_edgecolor()) for frame in frames} == {WRONG}
    assert not right.patches
    assert {axes.get_images()[0].get_clim() for axes in (left, right)} == {(-4, 4)}
    numbers = {text.get_position()[::-1]: text.get_text() for text in right.texts}
    assert numbers == {(0, 0): "1", (0, 1): "2", (0, 2): "3", (1, 1): "-4"}
    assert (right.get_xlabel(), right.get_ylabel(), scale.get_ylabel()) == ("weight", "output", "d output / d weight")
    assert figure.get_suptitle() == "Own(2), $x$ input"


def test_many_entries_have_no_numbers() -> None:
    size = MAXIMUM_NUMBERS + 1
    many = np.ones((2, size))
    figure = draw_jacobians(Jacobians(many, many, many == 0, "", "input"))
    assert not figure.axes[0].texts
    assert not figure.axes[0].patches


@pytest.mark.parametrize("rows", [1, 2, 20])
def test_ticks_stand_at_places_and_frames_have_room(rows: int) -> None:
    ones = np.ones((rows, 3))
    axes = draw_jacobians(Jacobians(ones, 2 * ones, ones == 1, "", "a")).axes[0]
    ticks = [tick for tick in axes.get_yticks() if -0.5 < tick < rows - 0.5]
    assert [*axes.get_xticks()] == [0, 1, 2]
    assert all(float(tick).is_integer() for tick in ticks)
    assert len({*ticks}) == len(ticks) >= min(rows, 2)
    assert not any(frame.get_clip_on() for frame in axes.patches)


def test_an_index_of_several_dimensions_marks_each_place() -> None:
    axes = draw_jacobians(BOTH._replace(output_shape=(2,), input_shape=(1, 3))).axes[0]
    assert axes.get_xlabel() == "weight, shape (1, 3)"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0, 0", "0, 1", "0, 2"]
    assert axes.get_ylabel() == "output"
    many = np.ones((2, 48))
    axes = draw_jacobians(Jacobians(many, many, many == 0, "", "input", (2, 1), (4, 12))).axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()][:4] == ["0, 0", "0, 4", "0, 8", "1, 0"]


def test_a_file_has_an_ending_of_a_figure(tmp_path: Path) -> None:
    assert plot_jacobians(BOTH, tmp_path / "a.svg").read_text().count("<svg") == 1
    with pytest.raises(ConfigError, match="must end in"):
        plot_jacobians(BOTH, tmp_path / "a.txt")
