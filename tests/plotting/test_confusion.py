"""Which class is taken for which, as a figure."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from nn_manual.errors import ConfigError, DataError
from nn_manual.plotting import plot_confusion
from nn_manual.plotting.confusion import MAXIMUM_NAMES, MAXIMUM_NUMBERS, draw_confusion

CONFUSION = np.array([[1000, 0, 1000], [0, 0, 0], [1, 0, 3]])
CLASSES = ["cat", "a name of a good many letters", "\n"]


def numbers(figure: Figure) -> dict[tuple[float, float], str]:
    """The text in each square, by row and column."""
    return {text.get_position()[::-1]: text.get_text() for text in figure.axes[0].texts}


def test_the_parts_of_each_class() -> None:
    figure = draw_confusion(CONFUSION, CLASSES, "2,004 examples")
    axes = figure.axes[0]
    (image,) = axes.get_images()
    assert np.asarray(image.get_array()).tolist() == [[0.5, 0, 0.5], [0, 0, 0], [0.25, 0, 0.75]]
    assert image.get_clim() == (0, 1)
    assert numbers(figure) == {(0, 0): "1,000", (0, 2): "1,000", (2, 0): "1", (2, 2): "3"}
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("predicted class", "class")
    assert axes.get_title(loc="left") == "2,004 examples"


def test_names_are_cut_and_printable() -> None:
    axes = draw_confusion(CONFUSION, CLASSES).axes[0]
    for labels in (axes.get_xticklabels(), axes.get_yticklabels()):
        assert [label.get_text() for label in labels] == ["cat", "a name o…letters", r"'\n'"]
    assert [label.get_rotation() for label in axes.get_xticklabels()] == [90] * 3
    short = draw_confusion(CONFUSION, "abc").axes[0]
    assert [label.get_rotation() for label in short.get_xticklabels()] == [0] * 3


@pytest.mark.parametrize(
    ("num_classes", "num_numbers", "num_names"),
    [
        (MAXIMUM_NUMBERS, MAXIMUM_NUMBERS, MAXIMUM_NUMBERS),
        (MAXIMUM_NUMBERS + 1, 0, MAXIMUM_NUMBERS + 1),
        (MAXIMUM_NAMES, 0, MAXIMUM_NAMES),
    ],
)
def test_many_classes(num_classes: int, num_numbers: int, num_names: int) -> None:
    figure = draw_confusion(np.eye(num_classes, dtype=np.int64), [str(n) for n in range(num_classes)])
    assert len(numbers(figure)) == num_numbers
    assert len(figure.axes[0].get_xticklabels()) == num_names


def test_more_classes_than_names_fit() -> None:
    classes = [f"class {n}" for n in range(MAXIMUM_NAMES + 1)]
    axes = draw_confusion(np.eye(len(classes), dtype=np.int64), classes).axes[0]
    assert not any("class" in label.get_text() for label in axes.get_xticklabels())


def test_the_file(tmp_path: Path) -> None:
    output = tmp_path / "confusion.png"
    assert plot_confusion(CONFUSION, ["$x", "日", "_c"], output, "100% of $1") == output
    assert output.read_bytes().startswith(b"\x89PNG")
    first = plot_confusion(CONFUSION, CLASSES, tmp_path / "1.svg").read_bytes()
    assert plot_confusion(CONFUSION, CLASSES, tmp_path / "2.svg").read_bytes() == first


def test_wrong_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"confusion.txt: the name of a figure must end in .png, .svg, .pdf$"):
        plot_confusion(CONFUSION, CLASSES, tmp_path / "confusion.txt")
    with pytest.raises(DataError, match=r"nowhere/confusion.png: can't be written: No such file or directory$"):
        plot_confusion(CONFUSION, CLASSES, tmp_path / "nowhere" / "confusion.png")
