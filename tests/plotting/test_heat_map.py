"""The heat map: every cell's place and colour, and that nothing bad is lost between columns and rows."""

from __future__ import annotations

import io

import matplotlib.image
import numpy as np
import pytest
from drawing import LEDGER, key_of, ledger_of, make_run, panel
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import to_hex, to_rgba
from matplotlib.figure import Figure

from nn_manual.arrays import Array
from nn_manual.plotting.axes import EXCUSED, WRONG
from nn_manual.plotting.figure import draw_runs
from nn_manual.plotting.heat_map import EQUAL, MAXIMUM_COLUMNS, MAXIMUM_ROWS, NOT_COMPARED, pool, rows_to_draw
from nn_manual.run_directory.ledger_table import MISMATCH, ROUNDING
from nn_manual.run_directory.metrics import RecordedRun


def run_of(percent: Array, *, every: int = 1, names: tuple[str, ...] = (), verdict: Array | None = None) -> RecordedRun:
    run = make_run([1.0], [1e-7] * len(percent), ledger=ledger_of(percent, names, verdict))
    for key in ("step", "first_step", "last_step"):
        run.gradients[key] *= every
    return run


def mesh_of(axes: Axes) -> QuadMesh:
    (mesh,) = axes.collections
    assert isinstance(mesh, QuadMesh)
    return mesh


def heat_map(
    percent: Array, *, every: int = 1, names: tuple[str, ...] = (), verdict: Array | None = None
) -> tuple[Axes, Array]:
    """The axes, and the colours (tensors, columns, 4) of the cells."""
    axes = panel(draw_runs([run_of(percent, every=every, names=names, verdict=verdict)]), LEDGER)
    cells = mesh_of(axes).get_array()
    assert cells is not None
    return axes, np.asarray(cells)


def edges_of(axes: Axes) -> list[float]:
    edges: list[float] = np.asarray(mesh_of(axes).get_coordinates())[0, :, 0].tolist()
    return edges


def colour_of(percent: float) -> tuple[float, ...]:
    """On a logarithmic scale from 0.01% to 100%, without the lightest blues."""
    place = np.clip((np.log10(percent) + 2) / 4, 0, 1)
    colour: tuple[float, ...] = matplotlib.colormaps["Blues"](0.18 + 0.82 * place)
    return colour


def test_a_cell_is_a_tensor_at_a_step() -> None:
    percent = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])  # (steps, tensors)
    axes, cells = heat_map(percent, names=("0.output", "loss"))
    assert cells == pytest.approx(np.array([[colour_of(value) for value in row] for row in percent.T]), abs=0.01)
    assert edges_of(axes) == [0.5, 1.5, 2.5, 3.5]
    assert np.asarray(mesh_of(axes).get_coordinates())[:, 0, 1].tolist() == [-0.5, 0.5, 1.5]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["0.output", "loss"]
    assert axes.yaxis_inverted()
    assert axes.get_xlabel() == "step"


@pytest.mark.parametrize(
    ("num_steps", "every", "edges"), [(1, 1, [0.5, 1.5]), (1, 10, [9.5, 10.5]), (3, 10, [5, 15, 25, 35])]
)
def test_cells_lie_around_the_checked_steps(num_steps: int, every: int, edges: list[float]) -> None:
    figure = draw_runs([run_of(np.ones((num_steps, 2)), every=every)])
    axes = panel(figure, LEDGER)
    assert edges_of(axes) == edges
    assert axes.get_xlim()[0] <= 0
    assert axes.get_xlim()[1] >= edges[-1]
    assert {other.get_xlim() for other in figure.axes[-2:]} == {axes.get_xlim()}  # one time for both


def test_the_colour_is_the_error_on_a_logarithmic_scale() -> None:
    _, cells = heat_map(np.array([[0.01, 1e-9, 1, 99.9, 100]]))
    lowest, lower, middle, within, at = cells[:, 0]
    assert lower.tolist() == lowest.tolist() == pytest.approx(list(colour_of(0.01)))
    assert middle == pytest.approx(np.array(colour_of(1)), abs=0.01)
    assert within.tolist() == at.tolist() == pytest.approx(list(colour_of(100)))


def test_what_has_no_place_on_the_scale_has_a_colour_of_its_own() -> None:
    """Only what is wrong is red: rounding that was excused is not."""
    percent = np.array([[0.0, 150.0, 1e99, 150.0, 5.0, np.nan]])
    verdict = np.array([[0, ROUNDING, ROUNDING, MISMATCH, MISMATCH, 0]])
    axes, cells = heat_map(percent, verdict=verdict)
    assert [to_hex(colour) for colour in cells[:, 0]] == [EQUAL, EXCUSED, EXCUSED, WRONG, WRONG, NOT_COMPARED]
    assert key_of(axes) == ["all elements equal: 16.7%", "beyond, by rounding alone: 2", "wrong: 2"]
    squares = axes.get_legend()
    assert squares is not None
    assert [line.get_markerfacecolor() for line in squares.get_lines()] == [EQUAL, EXCUSED, WRONG]
    assert key_of(heat_map(np.ones((3, 2)))[0]) == ["all elements equal: 0.0%"]


def test_up_to_the_number_of_columns_every_step_has_its_own() -> None:
    percent = np.random.default_rng(0).uniform(0, 90, (MAXIMUM_COLUMNS, 3))
    pooled, first, stretch = pool(percent, np.ones(MAXIMUM_COLUMNS))
    assert stretch == 1
    assert first.tolist() == list(range(MAXIMUM_COLUMNS))
    assert np.array_equal(pooled, percent)


@pytest.mark.parametrize("num_steps", [401, 1999, 200_000])
def test_of_more_steps_a_column_shows_the_worst(num_steps: int) -> None:
    percent = np.random.default_rng(0).uniform(0, 90, (num_steps, 2))
    pooled, _, stretch = pool(percent, np.ones(num_steps))
    assert len(pooled) <= MAXIMUM_COLUMNS
    assert [column.tolist() for column in pooled] == [
        percent[start : start + stretch].max(axis=0).tolist() for start in range(0, num_steps, stretch)
    ]
    axes, _ = heat_map(percent)
    assert axes.get_xlabel() == f"step  (each column the worst of {stretch:,})"
    edges = edges_of(axes)
    assert [edges[0], edges[1], edges[-1]] == [0.5, stretch + 0.5, num_steps + 0.5]


def test_a_line_of_several_steps_counts_in_each_column_that_it_reaches_into() -> None:
    percent = np.array([[1.0], [2.0], [3.0]])
    pooled, first, stretch = pool(percent, np.array([300, 1, 699]))
    assert stretch == 3
    assert len(pooled) == 334
    assert first[[0, 99, 100, 101, 333]].tolist() == [0, 0, 1, 2, 2]
    assert pooled[[0, 99, 100, 101, 333], 0].tolist() == [1, 1, 3, 3, 3]  # column 100 has the steps 301, 302, 303


@pytest.mark.parametrize("every", [1, 10])
def test_cells_of_windows_lie_around_their_steps(every: int) -> None:
    """A window of four checked steps, a step alone, and a window of three."""
    run = run_of(np.array([[1.0], [2.0], [3.0]]))
    for key, steps in (("first_step", [1, 5, 6]), ("last_step", [4, 5, 8]), ("num_steps", [4, 1, 3])):
        run.gradients[key][:] = steps
    for key in ("step", "first_step", "last_step"):
        run.gradients[key] *= every
    axes = panel(draw_runs([run]), LEDGER)
    run.gradients["step"][:] = run.gradients["first_step"]
    assert edges_of(axes) == [(step - 0.5) * every for step in range(1, 10)]


def test_a_mismatch_in_the_step_of_another_line_has_cells_of_its_own() -> None:
    """It was found in an evaluation after the step."""
    run = run_of(np.ones((4, 2)))
    for key in ("step", "first_step", "last_step"):
        run.gradients[key][:] = [1, 2, 3, 3]
    assert edges_of(panel(draw_runs([run]), LEDGER)) == [0.5, 1.5, 2.5, 2.5, 3.5]


def test_of_more_tensors_the_worst_get_rows_in_their_order() -> None:
    percent = np.ones((5, MAXIMUM_ROWS + 20))
    percent[2, 10:30] = 0.5  # large nowhere else, either
    percent[:, 10:30] *= 0.5
    percent[4, 15] = 80
    percent[3, 40] = np.nan  # not compared there
    expected = [*range(10), 15, *range(30, MAXIMUM_ROWS + 20)][:MAXIMUM_ROWS]
    assert rows_to_draw(ledger_of(percent)).tolist() == expected
    axes, _ = heat_map(percent)
    assert [label.get_text() for label in axes.get_yticklabels()] == [f"{index}.output" for index in expected]
    assert axes.get_ylabel() == "the worst 50 of 70 tensors"


def test_what_is_wrong_has_a_row_however_bad_the_others_are() -> None:
    """A mistake that float64 found may be small in float32."""
    percent, verdict = np.full((5, MAXIMUM_ROWS + 20), 50.0), np.zeros((5, MAXIMUM_ROWS + 20), np.int8)
    percent[:, -1], verdict[4, -1] = 0.1, MISMATCH
    assert rows_to_draw(ledger_of(percent, verdict=verdict)).tolist() == [*range(MAXIMUM_ROWS - 1), MAXIMUM_ROWS + 19]


def pixels(figure: Figure) -> Array:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150)
    buffer.seek(0)
    return matplotlib.image.imread(buffer)


@pytest.mark.slow
@pytest.mark.parametrize(("step", "tensor"), [(0, 0), (123_456, 21), (199_999, 39)])
def test_one_bad_cell_of_eight_million_is_seen(step: int, tensor: int) -> None:
    """It alone draws so large a map."""
    percent = np.ones((200_000, 40))
    verdict = np.zeros(percent.shape, np.int8)
    percent[step, tensor], verdict[step, tensor] = 150.0, MISMATCH
    figure = draw_runs([run_of(percent, verdict=verdict)])
    axes = panel(figure, LEDGER)
    picture = pixels(figure)
    box = axes.bbox.transformed(figure.dpi_scale_trans.inverted()).extents * 150
    left, bottom, right, top = (round(edge) for edge in box)
    inside = picture[len(picture) - top : len(picture) - bottom, left:right, :3]
    red = np.all(inside == np.array(to_rgba(WRONG)[:3], np.float32), axis=2)
    assert red.any(axis=0).sum() >= 2  # pixels wide
    assert red.any(axis=1).sum() >= 15  # and a row high


@pytest.mark.parametrize("name", [r"_runs/$\bad$", "$a$"])
def test_a_tensor_has_its_name_as_it_is(name: str) -> None:
    axes, _ = heat_map(np.ones((3, 1)), names=(name,))
    axes.figure.draw_without_rendering()  # type: ignore[union-attr]  # axes.figure is a Figure
    assert [label.get_text() for label in axes.get_yticklabels()] == [name]


def test_a_long_name_loses_its_middle() -> None:
    axes, _ = heat_map(np.ones((3, 1)), names=("encoder.layers.12.attention.grad_weight",))
    assert [label.get_text() for label in axes.get_yticklabels()] == ["encoder.laye…grad_weight"]
