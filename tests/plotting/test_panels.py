"""The curves: smoothing, what has no place on an axis, and the worst error of each step."""

from __future__ import annotations

import math
import warnings
from pathlib import Path

import numpy as np
import pytest
from drawing import ACCURACY, GRADIENTS, LOSS, key_of, lines_of, make_run, panel, points
from slow_cases import slow

from nn_manual.plotting.axes import COLOURS, MAXIMUM_POINTS, WRONG
from nn_manual.plotting.figure import draw_runs, plot_runs
from nn_manual.plotting.panels import percent_of_tolerance, smooth, steps_to_draw

ALLOWED = "100%: the bound for rounding"

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
    (errors,) = lines_of(panel(figure, GRADIENTS), "percent")
    assert np.array(points(errors)) == pytest.approx(np.array([(1, 1), (2, 4)]))


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


@pytest.mark.parametrize("log_y", [slow(False), True])
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
    (errors,) = lines_of(axes, "percent")
    (tolerance,) = lines_of(axes, "tolerance")
    assert np.array(points(errors)) == pytest.approx(np.array([(1, 1), (2, 3), (3, 2)]))
    assert points(tolerance) == [(0, 100), (1, 100)]  # from the left to the right end of the axes
    assert key_of(axes) == [ALLOWED]


def test_an_error_is_a_part_of_its_own_tolerance() -> None:
    """9.2e-6 of 1e-5 is as far from it as 9.2e-7 of 1e-6."""
    run = make_run([1.0], [9.2e-6, 9.2e-7])
    run.gradients["tolerance"][1] = 1e-6
    assert percent_of_tolerance(run) == pytest.approx([92, 92])


def test_several_runs_have_one_line_of_what_is_allowed() -> None:
    axes = panel(draw_runs([make_run([1.0], [1e-7] * 9, tolerance=10.0**-index) for index in range(3, 13)]), GRADIENTS)
    assert len(lines_of(axes, "tolerance")) == 1
    assert key_of(axes) == [ALLOWED]


@pytest.mark.parametrize(
    ("errors", "limits"),
    [([3e-7], (0, 4)), ([2e-12, 9e-6], (-5, 4)), ([0.0], (0, 4)), ([1.0], (0, 7)), ([math.nan], (0, 4))],
)
def test_the_axis_reaches_from_the_least_error_to_where_mistakes_lie(
    errors: list[float], limits: tuple[int, int]
) -> None:
    bottom, top = panel(draw_runs([make_run([1.0], errors)]), GRADIENTS).get_ylim()
    room = 0.1 * (limits[1] - limits[0])
    assert np.log10([bottom, top]) == pytest.approx([limits[0] - room, limits[1] + room])


@pytest.mark.parametrize(
    ("errors", "shown"),
    [
        ([3e-7], ["1%", "10%", "100%", "1,000%", "10,000%"]),
        ([2e-5, 9e-3], [f"$10^{{{exponent}}}$%" for exponent in (0, 1, 2, 3, 4, 5)]),
        ([3e-9, 0.9], [f"$10^{{{exponent}}}$%" for exponent in (-2, 0, 2, 4, 6)]),
        ([3e-12], [f"$10^{{{exponent}}}$%" for exponent in (-4, -2, 0, 2, 4)]),
    ],
)
def test_an_axis_writes_all_its_percents_in_one_way(errors: list[float], shown: list[str]) -> None:
    axes = panel(draw_runs([make_run([1.0], errors)]), GRADIENTS)
    axes.figure.draw_without_rendering()  # type: ignore[union-attr]  # axes.figure is a Figure
    bottom, top = axes.get_ylim()
    labels = zip(axes.get_yticks(), axes.get_yticklabels(), strict=True)
    assert [label.get_text() for tick, label in labels if bottom <= tick <= top] == shown


@pytest.mark.parametrize("errors", [[1e-7, 2e-5, 9e-2, 3e-7], [0.9, 0.9], [math.nan, math.nan]])
def test_what_the_line_parts_is_said_outside_of_the_axes(errors: list[float]) -> None:
    figure = draw_runs([make_run([1.0], errors)])
    figure.draw_without_rendering()
    axes = panel(figure, GRADIENTS)
    (said,) = axes.texts
    box = said.get_window_extent()
    assert said.get_text().startswith("below 100%: rounding, every gradient right; above: a wrong formula")
    assert not any(box.overlaps(other.bbox) for other in figure.axes)
    assert not box.overlaps(axes.xaxis.label.get_window_extent())
    assert 0 <= box.x0 < box.x1 <= figure.bbox.width
    assert box.y0 >= 0


@pytest.mark.parametrize(
    ("accuracies", "limits"),
    [
        ([1.0, 1.0], (0.945, 1.00275)),
        ([0.0], (-0.00275, 0.055)),
        ([0.0, 1.0], (-0.05, 1.05)),
        ([0.6, 0.99], (0.5805, 1.0095)),
        ([0.5, 0.9], (0.48, 0.92)),
    ],
)
def test_no_accuracy_is_above_100_percent(accuracies: list[float], limits: tuple[float, float]) -> None:
    axes = panel(draw_runs([make_run([1.0] * len(accuracies), [], accuracy=accuracies)]), ACCURACY)
    axes.figure.draw_without_rendering()  # type: ignore[union-attr]  # axes.figure is a Figure
    assert axes.get_ylim() == pytest.approx(limits)
    shown = [tick for tick in axes.get_yticks() if limits[0] <= tick <= limits[1]]
    assert len(shown) > 1
    assert min(shown) >= 0
    assert max(shown) <= 1


def test_rounding_that_was_excused_has_a_mark_that_is_not_red() -> None:
    axes = panel(draw_runs([make_run([1.0], [1e-7, 2e-5, 3e-7, 4e-3], excused=[2, 4])]), GRADIENTS)
    (marks,) = lines_of(axes, "rounding")
    assert np.array(points(marks)) == pytest.approx(np.array([(2, 200), (4, 4e4)]))
    assert (marks.get_color(), marks.get_markerfacecolor()) == (COLOURS[0], "white")
    assert key_of(axes) == [ALLOWED, "beyond, by rounding alone: 2 of 4"]


def test_a_mismatch_is_marked_in_red_and_named() -> None:
    axes = panel(draw_runs([make_run([1.0], [1e-7, 0.5], mismatch="0.grad_weight")]), GRADIENTS)
    (marked,) = lines_of(axes, "mismatch")
    assert np.array(points(marked)) == pytest.approx(np.array([(2, 5e6)]))
    assert marked.get_color() == WRONG
    assert key_of(axes) == [ALLOWED, "wrong at step 2: 0.grad_weight"]
    assert axes.get_ylim()[1] > 5e6


def test_a_step_that_could_not_be_compared_is_marked_at_the_top() -> None:
    run = make_run([1.0], [1e-7, math.nan], mismatch="1 (Tanh): $a$ was never run at all")
    axes = panel(draw_runs([run]), GRADIENTS)
    (marked,) = lines_of(axes, "mismatch")
    assert points(marked) == [(2, 0.96)]
    assert key_of(axes) == [ALLOWED, "wrong at step 2: 1 (Tanh): $a$…r run at all"]
    axes.figure.draw_without_rendering()  # type: ignore[union-attr]  # axes.figure is a Figure


def test_mismatches_of_several_runs_are_counted() -> None:
    axes = panel(draw_runs([make_run([1.0], [0.5], mismatch="loss") for _ in range(3)]), GRADIENTS)
    assert key_of(axes) == [ALLOWED, "wrong: the last step of 3 runs"]


def test_errors_of_exactly_zero_are_marked_at_the_foot() -> None:
    axes = panel(draw_runs([make_run([1.0], [0.0, 3e-7, 0.0])]), GRADIENTS)
    (marks,) = lines_of(axes, "exactly 0")
    assert points(marks) == [(1, 0.04), (3, 0.04)]
    assert marks.get_marker() == "v"
    assert key_of(axes) == [ALLOWED, "exactly 0: 2 of 3"]
    assert not np.isfinite(axes.transScale.transform((1, 0.0))[1])
    # The marks' height is a fraction of the axes: below every error.
    marks_at = axes.get_xaxis_transform().transform((0, 0.04))[1]
    assert marks_at + 5 < axes.transData.transform((0, 3))[1]


def test_an_error_that_is_not_a_number_is_marked_at_the_top() -> None:
    axes = panel(draw_runs([make_run([1.0], [1e-7, math.nan])]), GRADIENTS)
    (marks,) = lines_of(axes, "NaN or huge")
    assert points(marks) == [(2, 0.96)]
    assert key_of(axes) == [ALLOWED, "NaN or huge: 1 of 2"]


def test_up_to_the_axes_width_every_step_is_drawn() -> None:
    errors = np.random.default_rng(0).uniform(1e-8, 1e-6, MAXIMUM_POINTS)
    assert steps_to_draw(errors, np.full(MAXIMUM_POINTS, False), MAXIMUM_POINTS).tolist() == list(range(MAXIMUM_POINTS))


def test_of_more_steps_the_worst_of_each_stretch_is_drawn() -> None:
    errors = np.random.default_rng(0).uniform(1e-8, 1e-6, (MAXIMUM_POINTS, 37))
    shown = steps_to_draw(errors.ravel(), np.full(errors.size, False), MAXIMUM_POINTS)
    assert errors.ravel()[shown].tolist() == errors.max(axis=1).tolist()
    assert (shown // 37).tolist() == list(range(MAXIMUM_POINTS))


def test_a_shorter_run_is_drawn_as_densely_as_a_longer_one() -> None:
    runs = [make_run([1.0], [1e-7] * (size * MAXIMUM_POINTS)) for size in (4, 2)]
    lines = lines_of(panel(draw_runs(runs), GRADIENTS), "percent")
    assert [len(points(line)) for line in lines] == [MAXIMUM_POINTS, MAXIMUM_POINTS // 2]


@pytest.mark.parametrize("num_steps", [1001, 1999, 200_000])
def test_no_step_beyond_its_tolerance_is_passed_over(num_steps: int) -> None:
    generator = np.random.default_rng(0)
    percent = generator.uniform(0.1, 99, num_steps)
    is_mismatch = np.full(num_steps, False)
    is_mismatch[-1] = True  # less than the one beside it
    bad = np.linspace(10, num_steps - 300, 5).astype(int)
    percent[bad] = [200, math.nan, 300, 1e4, math.inf]
    percent[-2:] = [500, 400]
    shown = steps_to_draw(percent, is_mismatch, MAXIMUM_POINTS)
    assert {*bad, num_steps - 2, num_steps - 1} <= set(shown)
    assert shown.size <= MAXIMUM_POINTS + 1
    assert np.all(np.diff(shown) > 0)


def test_points_of_windows_say_how_many_steps_they_stand_for() -> None:
    run = make_run([1.0], [1e-7] * 4000)
    run.gradients["num_steps"][:] = 250
    assert panel(draw_runs([run]), GRADIENTS).get_xlabel() == "step  (each point the worst of 1,000)"


def test_a_long_run_keeps_its_worst_step_and_says_that_it_is_thinned_out() -> None:
    errors = np.full(200_000, 1e-7)
    errors[123_456] = 9e-6
    errors[::2] = 0
    errors[123_456] = 9e-6
    axes = panel(draw_runs([make_run([1.0], errors.tolist())]), GRADIENTS)
    (line,) = lines_of(axes, "percent")
    assert np.array(max(points(line), key=lambda point: point[1])) == pytest.approx(np.array([123_457, 90]))
    assert len(points(line)) == MAXIMUM_POINTS
    assert axes.get_xlabel() == "step  (each point the worst of 200)"
    assert key_of(axes) == [ALLOWED, "exactly 0: 99,999 of 200,000"]
    (marks,) = lines_of(axes, "exactly 0")
    assert len(points(marks)) == MAXIMUM_POINTS


# Several runs


def test_curves_that_coincide_show_at_both_sides_of_each_other() -> None:
    runs = [make_run([2.0, 1.0, 0.5], [1e-7] * 9, accuracy=[0.5, 0.6, 0.7]) for _ in range(3)]
    runs.append(make_run([3.0, 2.0, 1.0], [2e-7] * 9, accuracy=[0.5, 0.6, 0.7]))
    figure = draw_runs(runs)
    losses = lines_of(panel(figure, LOSS), "train_loss")
    assert [line.get_linewidth() for line in losses] == [1.5 + 5, 1.5 + 2.5, 1.5, 1.5]
    assert [line.get_markersize() for line in losses] == [3 + 5, 3 + 2.5, 3, 3]
    accuracies = lines_of(panel(figure, ACCURACY), "validation_accuracy")
    assert [line.get_linewidth() for line in accuracies] == pytest.approx([1.5 + 7 * n / 3 for n in (3, 2, 1, 0)])
    errors = lines_of(panel(figure, GRADIENTS), "percent")
    assert [line.get_linewidth() for line in errors] == pytest.approx([0.6 + 2.5, 0.6 + 1.25, 0.6, 0.6])


@pytest.mark.parametrize(("apart", "width"), [(1.004, 4), (1.006, 1.5)])
def test_curves_that_are_a_pixel_apart_coincide(apart: float, width: float) -> None:
    runs = [make_run([2.0, 1.0], [1e-7]), make_run([2.0 * apart, apart], [1e-7])]
    assert lines_of(panel(draw_runs(runs), LOSS), "train_loss")[0].get_linewidth() == width


def test_curves_of_different_lengths_coincide_where_both_are() -> None:
    """As those of a run that went on for more epochs."""
    longer, shorter = make_run([2.0, 1.0, 0.5, 0.25], [1e-7]), make_run([2.0, 1.0], [1e-7])
    losses = lines_of(panel(draw_runs([longer, shorter]), LOSS), "train_loss")
    assert [line.get_linewidth() for line in losses] == [4, 1.5]


def test_long_curves_of_several_runs_have_marks_in_different_places() -> None:
    losses = lines_of(panel(draw_runs([make_run([1.0] * 100, [1e-7]) for _ in range(3)]), LOSS), "train_loss")
    assert [line.get_markevery() for line in losses] == [(0, 12), (4, 12), (8, 12)]
