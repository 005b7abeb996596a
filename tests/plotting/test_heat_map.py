"""The heat map: every cell's place and colour, and that nothing bad is lost between columns and rows."""

from __future__ import annotations

import io

import matplotlib.image
import numpy as np
import pytest
from drawing import LEDGER, key_of, make_run, panel
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from nn_manual.arrays import Array
from nn_manual.plotting.figure import draw_runs
from nn_manual.plotting.heat_map import BEYOND, EXACT, MAXIMUM_COLUMNS, MAXIMUM_ROWS, pool, rows_to_draw
from nn_manual.run_directory.ledger_table import Ledger
from nn_manual.run_directory.metrics import Run


def run_of(percent: Array, *, every: int = 1, names: tuple[str, ...] = ()) -> Run:
    num_steps, num_tensors = percent.shape
    names = names or tuple(f"{index}.output" for index in range(num_tensors))
    run = make_run([1.0], [1e-7] * num_steps, ledger=Ledger(names, percent, percent, np.zeros(percent.shape, np.int8)))
    run.gradients["step"] *= every
    return run


def heat_map(percent: Array, *, every: int = 1, names: tuple[str, ...] = ()) -> tuple[Axes, QuadMesh]:
    axes = panel(draw_runs([run_of(percent, every=every, names=names)]), LEDGER)
    (mesh,) = axes.collections
    assert isinstance(mesh, QuadMesh)
    return axes, mesh


def values(mesh: QuadMesh) -> Array:
    """Percent, (tensors, columns)."""
    array = mesh.get_array()
    assert array is not None
    return np.asarray(array)


def colours(percent: list[float]) -> Array:
    """The colours (tensors, 4) of one step."""
    _, mesh = heat_map(np.array([percent]))
    mesh.update_scalarmappable()
    return np.asarray(mesh.get_facecolor()).reshape(-1, 4)


def test_a_cell_is_a_tensor_at_a_step() -> None:
    percent = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])  # (steps, tensors)
    axes, mesh = heat_map(percent, names=("0.output", "loss"))
    assert np.array_equal(values(mesh), percent.T)
    coordinates = np.asarray(mesh.get_coordinates())
    assert coordinates[0, :, 0].tolist() == [0.5, 1.5, 2.5, 3.5]
    assert coordinates[:, 0, 1].tolist() == [-0.5, 0.5, 1.5]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["0.output", "loss"]
    assert axes.yaxis_inverted()
    assert axes.get_xlabel() == "step"


@pytest.mark.parametrize(
    ("num_steps", "every", "edges"), [(1, 1, [0.5, 1.5]), (1, 10, [9.5, 10.5]), (3, 10, [5, 15, 25, 35])]
)
def test_cells_lie_around_the_checked_steps(num_steps: int, every: int, edges: list[float]) -> None:
    figure = draw_runs([run_of(np.ones((num_steps, 2)), every=every)])
    axes = panel(figure, LEDGER)
    (mesh,) = axes.collections
    assert isinstance(mesh, QuadMesh)
    assert np.asarray(mesh.get_coordinates())[0, :, 0].tolist() == edges
    assert axes.get_xlim()[0] <= 0
    assert axes.get_xlim()[1] >= edges[-1]
    assert {other.get_xlim() for other in figure.axes[-2:]} == {axes.get_xlim()}  # one time for both


def test_the_colour_is_the_error_on_a_logarithmic_scale() -> None:
    exact, lowest, lower, middle, within, at, beyond, infinite = colours([0, 0.01, 1e-9, 1, 99.9, 100, 101, 1e99])
    assert tuple(exact) == to_rgba(EXACT)
    assert np.array_equal(lower, lowest)
    # On the way from 0.01 to 99.9, 1 is half-way.
    assert middle == pytest.approx(matplotlib.colormaps["viridis_r"](0.5), abs=0.01)
    assert tuple(within) == matplotlib.colormaps["viridis_r"](1.0)
    # What three digits call 100 may have been 100.4.
    assert [tuple(colour) for colour in (at, beyond, infinite)] == [to_rgba(BEYOND)] * 3


def test_the_key_says_what_the_two_special_colours_mean_and_how_many_there_are() -> None:
    axes, _ = heat_map(np.array([[0.0, 1.0], [0.0, 150.0], [2.0, 0.0], [3.0, 4.0]]))
    assert key_of(axes) == ["all elements equal: 37.5%", "beyond, by rounding: 1"]
    squares = panel(draw_runs([run_of(np.array([[0.0, 150.0]]))]), LEDGER).get_legend()
    assert squares is not None
    assert [line.get_markerfacecolor() for line in squares.get_lines()] == [EXACT, BEYOND]
    assert key_of(heat_map(np.ones((3, 2)))[0]) == ["all elements equal: 0.0%"]


def test_up_to_the_number_of_columns_every_step_has_its_own() -> None:
    percent = np.random.default_rng(0).uniform(0, 90, (MAXIMUM_COLUMNS, 3))
    pooled, stretch = pool(percent)
    assert stretch == 1
    assert np.array_equal(pooled, percent)


@pytest.mark.parametrize("num_steps", [401, 1999, 200_000])
def test_of_more_steps_a_column_shows_the_worst(num_steps: int) -> None:
    percent = np.random.default_rng(0).uniform(0, 90, (num_steps, 2))
    pooled, stretch = pool(percent)
    assert len(pooled) <= MAXIMUM_COLUMNS
    assert [column.tolist() for column in pooled] == [
        percent[start : start + stretch].max(axis=0).tolist() for start in range(0, num_steps, stretch)
    ]
    axes, mesh = heat_map(percent)
    assert axes.get_xlabel() == f"step  (each column the worst of {stretch})"
    assert np.asarray(mesh.get_coordinates())[0, [0, 1, -1], 0].tolist() == [0.5, stretch + 0.5, num_steps + 0.5]


def test_of_more_tensors_the_worst_get_rows_in_their_order() -> None:
    percent = np.ones((5, MAXIMUM_ROWS + 20))
    percent[2, 10:30] = 0.5  # large nowhere else, either
    percent[:, 10:30] *= 0.5
    percent[4, 15] = 80
    expected = [*range(10), 15, *range(30, MAXIMUM_ROWS + 20)][:MAXIMUM_ROWS]
    assert rows_to_draw(percent).tolist() == expected
    axes, mesh = heat_map(percent)
    assert [label.get_text() for label in axes.get_yticklabels()] == [f"{index}.output" for index in expected]
    assert axes.get_ylabel() == "the worst 50 of 70 tensors"
    assert values(mesh).max() == 80


def pixels(figure: Figure) -> Array:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150)
    buffer.seek(0)
    return matplotlib.image.imread(buffer)


@pytest.mark.parametrize(("step", "tensor"), [(0, 0), (123_456, 21), (199_999, 39)])
def test_one_bad_cell_of_eight_million_is_seen(step: int, tensor: int) -> None:
    percent = np.ones((200_000, 40))
    percent[step, tensor] = 150.0
    figure = draw_runs([run_of(percent)])
    axes = panel(figure, LEDGER)
    picture = pixels(figure)
    box = axes.bbox.transformed(figure.dpi_scale_trans.inverted()).extents * 150
    left, bottom, right, top = (round(edge) for edge in box)
    inside = picture[len(picture) - top : len(picture) - bottom, left:right, :3]
    red = np.all(inside == to_rgba(BEYOND)[:3], axis=2)
    assert red.any(axis=0).sum() >= 2  # pixels wide
    assert red.any(axis=1).sum() >= 15  # and a row high


@pytest.mark.parametrize("name", [r"_runs/$\bad$", "$a$"])
def test_a_tensor_has_its_name_as_it_is(name: str) -> None:
    axes, _ = heat_map(np.ones((3, 1)), names=(name,))
    axes.figure.draw_without_rendering()  # type: ignore[union-attr]  # axes.figure is a Figure
    assert [label.get_text() for label in axes.get_yticklabels()] == [name]


def test_a_long_name_loses_its_middle() -> None:
    axes, _ = heat_map(np.ones((3, 1)), names=("encoder.layers.12.attention.grad_weight",))
    assert [label.get_text() for label in axes.get_yticklabels()] == ["encoder.laye….grad_weight"]
