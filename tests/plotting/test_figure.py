"""The figure: the numbers that its lines, keys and labels show, and the files that it becomes."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import warnings
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from drawing import (
    ACCURACY,
    GRADIENTS,
    LEDGER,
    LOSS,
    key_of,
    ledger_of,
    lines_of,
    make_run,
    names_of,
    panel,
    points,
    titles,
    write_run,
)
from matplotlib.lines import Line2D
from slow_cases import slow

from nn_manual.errors import ConfigError, DataError
from nn_manual.plotting import figure as plotting_figure
from nn_manual.plotting.figure import curves_of, draw_runs, plot_runs
from nn_manual.plotting.saving import FORMATS, SETTINGS
from nn_manual.run_directory.ledger_table import MISMATCH, ROUNDING
from nn_manual.run_directory.metrics import Stop

# Axes and curves


def test_the_curves_are_the_run() -> None:
    run = make_run([2.0, 1.0, 0.5], [1e-7, 2e-7], validation_loss=[2.5, 1.5, 1.0], accuracy=[0.5, 0.75, 0.8])
    figure = draw_runs([run])
    assert titles(figure) == [LOSS, ACCURACY, GRADIENTS]
    (training,) = lines_of(panel(figure, LOSS), "train_loss")
    (validation,) = lines_of(panel(figure, LOSS), "validation_loss")
    (accuracy,) = lines_of(panel(figure, ACCURACY), "validation_accuracy")
    assert points(training) == [(1, 2.0), (2, 1.0), (3, 0.5)]
    assert points(validation) == [(1, 2.5), (2, 1.5), (3, 1.0)]
    assert points(accuracy) == [(1, 0.5), (2, 0.75), (3, 0.8)]
    assert (training.get_linestyle(), validation.get_linestyle()) == ("-", "--")
    assert training.get_color() == validation.get_color() == accuracy.get_color()
    assert key_of(panel(figure, LOSS)) == ["training", "validation"]
    assert names_of(figure) == ["digits/now"]


def test_the_labels_say_what_is_measured() -> None:
    figure = draw_runs([make_run([2.0, 1.0], [1e-7], accuracy=[0.5, 0.75])])
    figure.draw_without_rendering()
    assert panel(figure, ACCURACY).get_xlabel() == "epoch"
    assert panel(figure, LOSS).get_ylabel() == "loss"
    assert panel(figure, GRADIENTS).get_xlabel() == "step"
    assert panel(figure, GRADIENTS).get_ylabel() == "of the bound for rounding"
    assert [label.get_text() for label in panel(figure, GRADIENTS).get_yticklabels()][1:-1] == [
        "0.1%", "1%", "10%", "100%", "1,000%", "10,000%"
    ]  # fmt: skip
    assert "70.0%" in [label.get_text() for label in panel(figure, ACCURACY).get_yticklabels()]


def test_losses_that_are_sums_are_drawn_per_example() -> None:
    """Of 8 and 2 examples: else the validation loss would seem to be a quarter of the training loss."""
    summed = make_run([16.0, 8.0], [1e-7], validation_loss=[6.0, 3.0], num_examples=(8, 2))
    mean = make_run([5.0, 4.0], [1e-7])
    for runs, unit in (([summed], "loss per example"), ([mean, summed], "loss per example"), ([mean], "loss")):
        assert panel(draw_runs(runs), LOSS).get_ylabel() == unit
    axes = panel(draw_runs([mean, summed]), LOSS)
    assert [points(line) for line in lines_of(axes, "train_loss")] == [[(1, 5), (2, 4)], [(1, 2), (2, 1)]]
    assert [points(line) for line in lines_of(axes, "validation_loss")] == [[(1, 3), (2, 1.5)]]


def test_the_heat_map_is_for_a_single_run() -> None:
    run = make_run([2.0], [1e-7], ledger=ledger_of(np.ones((1, 1))))
    assert titles(draw_runs([run])) == [LOSS, GRADIENTS, LEDGER]
    assert titles(draw_runs([run, run])) == [LOSS, GRADIENTS]


def test_the_curves_for_a_notebook_are_a_png_without_the_heat_map() -> None:
    run = make_run([2.0, 1.0], [1e-7, 2e-7], ledger=ledger_of(np.array([[1.0, 2.0]] * 2), ("a", "b")))
    assert titles(draw_runs([run], heat_map=False)) == [LOSS, GRADIENTS]
    png = curves_of(run)
    assert png.startswith(b"\x89PNG\r\n")
    assert int.from_bytes(png[16:20]) == 8 * 150  # inches, dots in an inch; a heat map makes it wider


def test_only_what_a_run_has_gets_axes() -> None:
    figure = draw_runs([make_run([2.0, 1.0], [1e-7])])
    assert titles(figure) == [LOSS, GRADIENTS]
    assert key_of(panel(figure, LOSS)) == ["training"]


def test_epochs_share_an_axis_and_steps_span_the_same_time() -> None:
    # The run with an accuracy is the shorter one.
    figure = draw_runs([make_run([1.0] * 10, [1e-7] * 230), make_run([1.0] * 4, [1e-7] * 92, accuracy=[0.5] * 4)])
    for title in (LOSS, ACCURACY):
        axes = panel(figure, title)
        assert axes.get_xlim() == pytest.approx((-0.2, 10.2))
        assert [tick for tick in axes.get_xticks() if 0 <= tick <= 10] == [0, 2, 4, 6, 8, 10]
    assert panel(figure, GRADIENTS).get_xlim() == pytest.approx((-0.02 * 230, 1.02 * 230))


def looks_of(lines: list[Line2D]) -> list[tuple[str, str]]:
    return [(str(line.get_color()), str(line.get_marker())) for line in lines]


def test_each_run_has_a_look_and_its_name() -> None:
    runs = [make_run([1.0, 0.5], [1e-7, 1e-7], name=f"digits/{index}") for index in range(12)]
    figure = draw_runs(runs)
    looks = looks_of(lines_of(panel(figure, LOSS), "train_loss"))
    assert len(set(looks)) == 12
    assert looks_of(lines_of(panel(figure, GRADIENTS), "percent")) == looks
    assert looks_of(figure.legends[0].get_lines()) == looks
    assert names_of(figure) == [run.name for run in runs]


def test_a_single_epoch_shows_as_two_different_marks() -> None:
    figure = draw_runs([make_run([2.0], [1e-7], validation_loss=[2.5])])
    (training,) = lines_of(panel(figure, LOSS), "train_loss")
    (validation,) = lines_of(panel(figure, LOSS), "validation_loss")
    assert (training.get_marker(), validation.get_marker()) == ("o", "o")
    assert training.get_markevery() is None
    assert training.get_markerfacecolor() != validation.get_markerfacecolor()


def test_many_epochs_are_lines_without_marks() -> None:
    (training,) = lines_of(panel(draw_runs([make_run([1.0] * 51, [1e-7])]), LOSS), "train_loss")
    assert training.get_markevery() == []


# Names


def test_names_that_are_alike_are_numbered_and_long_ones_shortened() -> None:
    middle = "x" * 40
    names = [f"fashion_mnist_long/{middle}{end}" for end in ("T10", "T10", "T11")]
    figure = draw_runs([make_run([1.0], [1e-7], name=name) for name in names])
    shortened = "fashion_mnist_long…xxxxxxxxxxxxxx"
    assert names_of(figure) == [f"1: {shortened}T10", f"2: {shortened}T10", f"{shortened}T11"]
    assert {len(name.removeprefix("1: ").removeprefix("2: ")) for name in names_of(figure)} == {36}


def test_a_run_that_stopped_says_where_and_why() -> None:
    stop = Stop(10, 1000, "interrupted")
    assert names_of(draw_runs([make_run([1.0], [1e-7], stop=stop)])) == [
        "digits/now (stopped at epoch 10 of 1,000: interrupted)"
    ]
    runs = [make_run([1.0], [1e-7], stop=stop), make_run([], [1e-7], name="b", stop=Stop(1, 3, "a\nb" * 50))]
    figure = draw_runs(runs)
    assert names_of(figure)[1].startswith("b (stopped at epoch 1 of 3: a ba b")
    assert names_of(figure)[1].endswith("b; no epoch has ended)")
    assert len(names_of(figure)[1]) == 74
    assert figure.legends[0]._ncols == 1  # type: ignore[attr-defined]  # two such labels are wider than the figure


@pytest.mark.parametrize(("length", "num_columns"), [(62, 2), (63, 1)])
def test_two_columns_of_labels_fit_up_to_a_length(
    length: int, num_columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plotting_figure, "_labels", lambda runs: ["x" * length] + ["b"] * (len(runs) - 1))
    figure = draw_runs([make_run([1.0], [1e-7], name=name) for name in "ab"])
    assert figure.legends[0]._ncols == num_columns  # type: ignore[attr-defined]  # matplotlib has no other way


@pytest.mark.parametrize("name", [slow(r"_runs/$\bad$"), "$a$", slow("runs/実行")])
def test_a_name_is_shown_as_it_is(name: str, tmp_path: Path) -> None:
    path = write_run(tmp_path / name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        picture = plot_runs([path], tmp_path / "loss.png").read_bytes()
    assert int.from_bytes(picture[16:20]) == 1350  # pixels wide
    assert names_of(draw_runs([make_run([1.0], [1e-7], name=name)])) == [name]


def test_a_run_says_what_it_lacks() -> None:
    runs = [
        make_run([1.0], [1e-7], name="whole"),
        make_run([1.0], [], name="unchecked"),
        make_run([], [1e-7], name="begun"),
    ]
    assert names_of(draw_runs(runs)) == ["whole", "unchecked (gradients not checked)", "begun (no epoch has ended)"]
    assert titles(draw_runs(runs[1:2])) == [LOSS]
    assert titles(draw_runs(runs[2:])) == [GRADIENTS]
    with pytest.raises(DataError, match=r"empty: nothing to plot, no epoch has ended yet"):
        draw_runs([make_run([], [], name="empty")])


# Nothing covers a curve


@pytest.mark.parametrize("num_runs", [slow(1), slow(3), 12])
def test_no_key_covers_axes_and_nothing_leaves_the_figure(num_runs: int) -> None:
    tensors = tuple(f"{index}.a_tensor_of_a_very_long_name" for index in range(70))
    verdict = np.full((18_000, 70), ROUNDING, np.int8)  # more than get a row, and all of them beyond
    verdict[-1, 0] = MISMATCH
    ledger = ledger_of(np.full(verdict.shape, 150.0), tensors, verdict)
    runs = [
        make_run(
            [2.0, 0.0], [0.0, math.nan, 1e-7] * 6000, validation_loss=[2.5, math.nan], accuracy=[0.5, 0.6],
            name=f"fashion_mnist/2026-01-01T10-11-{index}", ledger=ledger, excused=range(1, 18_000),
            mismatch="0.a_tensor_of_a_very_long_name_of_which_the_key_has_a_part",
        )
        for index in range(num_runs)
    ]  # fmt: skip
    with matplotlib.rc_context(SETTINGS):
        figure = draw_runs(runs, log_y=True)
        figure.draw_without_rendering()
    keys = [axes.get_legend() for axes in figure.axes]
    boxes = [key.get_window_extent() for key in (*keys, *figure.legends) if key is not None]
    assert len(boxes) == (5 if num_runs == 1 else 4)
    for box in boxes:
        assert not any(box.overlaps(axes.bbox) for axes in figure.axes)
        assert not any(box.overlaps(axes._left_title.get_window_extent()) for axes in figure.axes)  # type: ignore[attr-defined]
        assert 0 <= box.x0 < box.x1 <= figure.bbox.width
        assert 0 <= box.y0 < box.y1 <= figure.bbox.height


# Files


SIGNATURES = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF", ".PNG": b"\x89PNG"}


@pytest.mark.slow
@pytest.mark.parametrize("ending", SIGNATURES)
def test_the_ending_is_the_format(tmp_path: Path, ending: str) -> None:
    """It alone writes each format."""
    output = tmp_path / f"loss{ending}"
    assert plot_runs([write_run(tmp_path / "run")], output) == output
    assert output.read_bytes().startswith(SIGNATURES[ending])
    assert sorted(os.listdir(tmp_path)) == [output.name, "run"]


@pytest.mark.slow
def test_the_same_run_gives_the_same_bytes_in_another_process(tmp_path: Path) -> None:
    """It alone draws in two processes."""
    run = write_run(tmp_path / "run")
    code = (
        "import sys; from pathlib import Path; from nn_manual.plotting import plot_runs;"
        "run, *outputs = map(Path, sys.argv[1:]);"
        "[plot_runs([run], output, smoothing=0.5) for output in outputs];"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    there = [tmp_path / f"there{ending}" for ending in FORMATS]
    environment = os.environ | {"PYTHONHASHSEED": "7", "SOURCE_DATE_EPOCH": "1000000000"}
    subprocess.run([sys.executable, "-c", code, str(run), *map(str, there)], check=True, env=environment)
    for path in there:
        here = plot_runs([run], tmp_path / f"here{path.suffix}", smoothing=0.5)
        assert here.read_bytes() == path.read_bytes(), path.suffix


def test_drawing_leaves_no_trace_in_matplotlib(tmp_path: Path) -> None:
    before = dict(matplotlib.rcParams)
    plot_runs([write_run(tmp_path / "run")], tmp_path / "loss.svg")
    assert dict(matplotlib.rcParams) == before


def test_an_unknown_ending_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        plot_runs([tmp_path / "missing"], Path("loss.jpg"))
    assert str(caught.value) == "loss.jpg: the name of a figure must end in .png, .svg, .pdf"


@pytest.mark.parametrize("smoothing", [-0.1, 1.0, math.nan])
def test_smoothing_out_of_range_is_refused(tmp_path: Path, smoothing: float) -> None:
    with pytest.raises(ConfigError, match=f"smoothing must be at least 0 and below 1, not {smoothing}"):
        plot_runs([tmp_path], tmp_path / "loss.png", smoothing=smoothing)


def test_no_run_at_all_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no run directory to plot"):
        plot_runs([], tmp_path / "loss.png")


def test_a_bad_run_is_named_and_nothing_written(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / "good"), write_run(tmp_path / "bad")]
    (runs[1] / "metrics.jsonl").write_text('{"epoch": 1}\n')
    with pytest.raises(DataError, match=r'bad/metrics.jsonl:1: "step" is missing'):
        plot_runs(runs, tmp_path / "loss.png")
    assert not (tmp_path / "loss.png").exists()


def test_a_place_that_can_not_be_written_is_named(tmp_path: Path) -> None:
    output = tmp_path / "missing" / "loss.png"
    with pytest.raises(DataError, match=f"{output}: can't be written: No such file or directory"):
        plot_runs([write_run(tmp_path / "run")], output)
