"""The figure of predictions against targets: what is drawn, where and of how many."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nn_manual.errors import ConfigError
from nn_manual.plotting.predictions import draw_predictions, plot_predictions


def test_each_target_has_a_square_with_equal_axes() -> None:
    target = np.array([[1.0, 10.0], [2.0, 30.0], [4.0, 20.0]])
    prediction = target + np.array([0, 5])
    figure = draw_predictions(prediction, target, ["$u$", "v" * 100], "3 examples")
    one, other = figure.axes
    assert np.asarray(one.collections[0].get_offsets()).tolist() == [[1, 1], [2, 2], [4, 4]]
    assert np.asarray(other.collections[0].get_offsets()).tolist() == [[10, 15], [30, 35], [20, 25]]
    assert one.get_xlim() == one.get_ylim() == (0.85, 4.15)
    assert other.get_xlim() == other.get_ylim() == (8.75, 36.25)
    assert (one.get_title(), len(other.get_title())) == ("$u$", 30)
    assert not one.title.get_parse_math()
    assert figure.get_suptitle() == "3 examples"


def test_many_targets_and_many_examples() -> None:
    figure = draw_predictions(np.zeros((600, 14)), np.ones((600, 14)), [str(i) for i in range(14)], "600 examples")
    assert len(figure.axes) == 12
    assert figure.get_suptitle() == "600 examples, the first 12 of 14 targets"
    assert figure.axes[0].collections[0].get_rasterized()
    assert figure.axes[0].get_xlim() == (-0.05, 1.05)
    assert not draw_predictions(np.zeros((6, 1)), np.zeros((6, 1)), ["a"]).axes[0].collections[0].get_rasterized()


def test_equal_numbers_have_a_width() -> None:
    figure = draw_predictions(np.full((1, 1), 3.0), np.full((1, 1), 3.0), ["a"])
    assert figure.axes[0].get_xlim() == (2, 4)


def test_the_file(tmp_path: Path) -> None:
    output = plot_predictions(np.zeros((2, 1)), np.ones((2, 1)), ["a"], tmp_path / "a.svg", "2 examples")
    assert output.read_text().startswith("<?xml")
    with pytest.raises(ConfigError, match=r"must end in \.png, \.svg, \.pdf"):
        plot_predictions(np.zeros((2, 1)), np.ones((2, 1)), ["a"], tmp_path / "a.txt")
