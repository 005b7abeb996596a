"""The curves: smoothing, what has no place on an axis, and the worst error of each step."""

from __future__ import annotations

import math
import warnings
from pathlib import Path

import numpy as np
import pytest
from drawing import GRADIENTS, LOSS, key_of, lines_of, make_run, panel, points

from nn_manual.plotting.axes import MAXIMUM_POINTS
from nn_manual.plotting.figure import draw_runs, plot_runs
from nn_manual.plotting.panels import smooth, steps_to_draw

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
