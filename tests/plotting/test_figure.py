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
    lines_of,
    make_run,
    names_of,
    panel,
    points,
    titles,
    write_run,
)

from nn_manual.errors import ConfigError, DataError
from nn_manual.plotting.axes import MAXIMUM_POINTS
from nn_manual.plotting.figure import FORMATS, SETTINGS, draw_runs, plot_runs
from nn_manual.plotting.panels import smooth, steps_to_draw
from nn_manual.run_directory.ledger import Ledger

# Curves over epochs


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
    assert panel(figure, GRADIENTS).get_ylabel() == "max|ours \N{MINUS SIGN} torch|\n/ max|torch|"
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
    run = make_run([2.0], [1e-7], ledger=Ledger(("loss",), *np.ones((2, 1, 1))))
    assert titles(draw_runs([run])) == [LOSS, GRADIENTS, LEDGER]
    assert titles(draw_runs([run, run])) == [LOSS, GRADIENTS]


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


def test_each_run_has_a_colour_and_its_name() -> None:
    runs = [make_run([1.0, 0.5], [1e-7, 1e-7], name=f"digits/{index}") for index in range(12)]
    figure = draw_runs(runs)
    colours = [line.get_color() for line in lines_of(panel(figure, LOSS), "train_loss")]
    assert len(set(map(str, colours))) == 12
    assert [line.get_color() for line in lines_of(panel(figure, GRADIENTS), "relative")] == colours
    assert [line.get_color() for line in figure.legends[0].get_lines()] == colours
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
    shortened = "fashion_mnist_long…xxxxxxxxxxxxxxx"
    assert names_of(figure) == [f"1: {shortened}T10", f"2: {shortened}T10", f"{shortened}T11"]


@pytest.mark.parametrize("name", [r"_runs/$\bad$", "$a$", "runs/実行"])
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


# Smoothing


@pytest.mark.parametrize("smoothing", [0.0, 0.6, 0.99])
def test_smoothing_is_the_weighted_mean_of_its_docstring(smoothing: float) -> None:
    values = np.random.default_rng(0).normal(size=20)
    for n, smoothed in enumerate(smooth(values, smoothing)):
        weights = smoothing ** (n - np.arange(n + 1.0))
        # A recurrence of 20 steps rounds 20 times.
        assert smoothed == pytest.approx(np.sum(weights * values[: n + 1]) / np.sum(weights), rel=1e-13)


def test_smoothing_leaves_a_constant_and_steps_over_nan() -> None:
    assert smooth(np.full(5, 3.0), 0.9) == pytest.approx(np.full(5, 3.0), rel=1e-15)
    smoothed = smooth(np.array([1.0, math.nan, 2.0]), 0.5)
    assert np.isnan(smoothed[1])
    assert smoothed[[0, 2]] == pytest.approx([1.0, (0.5 * 1 + 2) / 1.5], rel=1e-15)


def test_the_raw_curve_stays_behind_the_smoothed_one() -> None:
    figure = draw_runs([make_run([4.0, 1.0], [1e-7, 4e-7])], smoothing=0.5)
    (raw,) = lines_of(panel(figure, LOSS), "train_loss, raw")
    (smoothed,) = lines_of(panel(figure, LOSS), "train_loss")
    assert points(raw) == [(1, 4.0), (2, 1.0)]
    assert points(smoothed) == [(1, 4.0), (2, 2.0)]
    assert raw.get_alpha() == 0.25
    assert panel(figure, LOSS).get_xlabel() == "epoch  (smoothing 0.5, faint: without)"
    (errors,) = lines_of(panel(figure, GRADIENTS), "relative")
    assert points(errors) == [(1, 1e-7), (2, 4e-7)]


# Logarithmic axes and what has no place on them


def test_log_y_is_for_the_losses() -> None:
    run = make_run([1.0, 0.5], [1e-7], accuracy=[0.5, 0.6])
    assert [axes.get_yscale() for axes in draw_runs([run]).axes] == ["linear", "linear", "log"]
    assert [axes.get_yscale() for axes in draw_runs([run], log_y=True).axes] == ["log", "linear", "log"]


def test_a_loss_that_is_not_positive_is_marked_on_a_logarithmic_axis() -> None:
    run = make_run([1.0, 0.0, -1.0], [1e-7], validation_loss=[1.0, 0.5, 0.0])
    axes = panel(draw_runs([run], log_y=True), LOSS)
    assert [points(line) for line in lines_of(axes, "0 or below")] == [[(2, 0.04), (3, 0.04)], [(3, 0.04)]]
    assert key_of(axes) == ["training", "validation", "0 or below: 3 of 6"]
    # The lines have a gap there: clipped to a finite height, they would plunge to the axis.
    assert not np.isfinite(axes.transScale.transform((2, 0.0))[1])
    assert key_of(panel(draw_runs([run]), LOSS)) == ["training", "validation"]


@pytest.mark.parametrize("value", [math.nan, math.inf, 1.7e308, -1e300])
def test_a_loss_that_no_axis_holds_is_marked(value: float) -> None:
    axes = panel(draw_runs([make_run([1.0, value, 0.5], [1e-7])]), LOSS)
    (marks,) = lines_of(axes, "NaN or huge")
    assert points(marks) == [(2, 0.96)]
    assert key_of(axes) == ["training", "NaN or huge: 1 of 3"]


@pytest.mark.parametrize("log_y", [False, True])
@pytest.mark.parametrize(
    ("losses", "errors"),
    [
        ([0.0, 0.0], [0.0]),
        ([math.nan], [math.nan]),
        ([1e308, -1.7e308], [1e308]),
        ([5e-324], [5e-324]),
        ([-1.0], [0.0]),
    ],
)
def test_extreme_values_draw_without_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, losses: list[float], errors: list[float], log_y: bool
) -> None:
    monkeypatch.setattr("nn_manual.plotting.figure.read_run", lambda _: make_run(losses, errors))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plot_runs([tmp_path], tmp_path / "loss.svg", log_y=log_y)


# Gradient errors


def test_errors_and_tolerance_are_drawn_at_their_steps() -> None:
    axes = panel(draw_runs([make_run([1.0], [1e-7, 3e-7, 2e-7])]), GRADIENTS)
    (errors,) = lines_of(axes, "relative")
    (tolerance,) = lines_of(axes, "tolerance")
    assert points(errors) == [(1, 1e-7), (2, 3e-7), (3, 2e-7)]
    assert points(tolerance) == [(0, 1e-5), (1, 1e-5), (2, 1e-5), (3, 1e-5)]
    assert key_of(axes) == ["tolerance"]


def test_errors_of_exactly_zero_are_marked_at_the_foot() -> None:
    axes = panel(draw_runs([make_run([1.0], [0.0, 3e-7, 0.0])]), GRADIENTS)
    (marks,) = lines_of(axes, "exactly 0")
    assert points(marks) == [(1, 0.04), (3, 0.04)]
    assert marks.get_marker() == "v"
    assert key_of(axes) == ["tolerance", "exactly 0: 2 of 3"]
    assert not np.isfinite(axes.transScale.transform((1, 0.0))[1])
    # The marks' height is a fraction of the axes: below every error.
    marks_at = axes.get_xaxis_transform().transform((0, 0.04))[1]
    assert marks_at + 5 < axes.transData.transform((0, 3e-7))[1]


def test_an_error_that_is_not_a_number_is_marked_at_the_top() -> None:
    axes = panel(draw_runs([make_run([1.0], [1e-7, math.nan])]), GRADIENTS)
    (marks,) = lines_of(axes, "NaN or huge")
    assert points(marks) == [(2, 0.96)]
    assert key_of(axes) == ["tolerance", "NaN or huge: 1 of 2"]


def test_up_to_the_axes_width_every_step_is_drawn() -> None:
    errors = np.random.default_rng(0).uniform(1e-8, 1e-6, MAXIMUM_POINTS)
    assert steps_to_draw(errors, np.full(MAXIMUM_POINTS, 1e-5)).tolist() == list(range(MAXIMUM_POINTS))


def test_of_more_steps_the_worst_of_each_stretch_is_drawn() -> None:
    errors = np.random.default_rng(0).uniform(1e-8, 1e-6, (MAXIMUM_POINTS, 37))
    tolerance = np.full(errors.size, 1e-5)
    shown = steps_to_draw(errors.ravel(), tolerance)
    assert errors.ravel()[shown].tolist() == errors.max(axis=1).tolist()
    assert (shown // 37).tolist() == list(range(MAXIMUM_POINTS))


@pytest.mark.parametrize("num_steps", [1001, 1999, 200_000])
def test_no_step_out_of_tolerance_is_passed_over(num_steps: int) -> None:
    generator = np.random.default_rng(0)
    errors = generator.uniform(1e-8, 1e-6, num_steps)
    tolerance = np.full(num_steps, 1e-5)
    bad = 10 + generator.choice(num_steps - 20, 5, replace=False)
    errors[bad] = [2e-5, math.nan, 3e-5, 1e-4, math.inf]
    # Beside a larger error that its own tolerance allows, and two that are not numbers.
    errors[-2:], tolerance[-2:] = [5e-5, 4e-5], [1e-4, 1e-5]
    errors[:2] = math.nan
    shown = steps_to_draw(errors, tolerance)
    assert {0, 1, *bad, num_steps - 1} <= set(shown)
    assert shown.size <= MAXIMUM_POINTS + 8
    assert np.all(np.diff(shown) > 0)


def test_a_long_run_keeps_its_worst_step_and_says_that_it_is_thinned_out() -> None:
    errors = np.full(200_000, 1e-7)
    errors[123_456] = 9e-6
    errors[::2] = 0
    errors[123_456] = 9e-6
    axes = panel(draw_runs([make_run([1.0], errors.tolist())]), GRADIENTS)
    (line,) = lines_of(axes, "relative")
    assert (123_457, 9e-6) in points(line)
    assert len(points(line)) == MAXIMUM_POINTS
    assert axes.get_xlabel() == "step  (each point the worst of 200)"
    assert key_of(axes) == ["tolerance", "exactly 0: 99,999 of 200,000"]
    (marks,) = lines_of(axes, "exactly 0")
    assert len(points(marks)) == MAXIMUM_POINTS


def test_equal_tolerances_of_several_runs_interleave() -> None:
    axes = panel(draw_runs([make_run([1.0], [1e-7] * 9) for _ in range(3)]), GRADIENTS)
    # Line2D scales the pattern by the width 1.2 of the line.
    patterns = [line._unscaled_dash_pattern for line in lines_of(axes, "tolerance")]  # type: ignore[attr-defined]
    assert patterns == [(0, (4, 8)), (4, (4, 8)), (8, (4, 8))]


# Nothing covers a curve


@pytest.mark.parametrize("num_runs", [1, 3, 12])
def test_no_key_covers_axes_and_nothing_leaves_the_figure(num_runs: int) -> None:
    tensors = tuple(f"{index}.a_tensor_of_a_very_long_name" for index in range(70))
    ledger = Ledger(tensors, *np.full((2, 18_000, 70), 150.0))  # more than get a row, and all of them beyond
    runs = [
        make_run(
            [2.0, 0.0], [0.0, math.nan, 1e-7] * 6000, validation_loss=[2.5, math.nan], accuracy=[0.5, 0.6],
            name=f"fashion_mnist/2026-01-01T10-11-{index}", ledger=ledger,
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


@pytest.mark.parametrize("ending", SIGNATURES)
def test_the_ending_is_the_format(tmp_path: Path, ending: str) -> None:
    output = tmp_path / f"loss{ending}"
    assert plot_runs([write_run(tmp_path / "run")], output) == output
    assert output.read_bytes().startswith(SIGNATURES[ending])
    assert sorted(os.listdir(tmp_path)) == [output.name, "run"]


def test_the_same_run_gives_the_same_bytes_in_another_process(tmp_path: Path) -> None:
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
