"""Slopes from values alone: as good as they say, at every scale, and honest where there is none."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from nn_manual.arrays import Array
from nn_manual.ops.differences import Directions, slope, slopes_of

UPSTREAM = np.array([1.0])


def by_value(function: Callable[[float], float]) -> Callable[[float], Array]:
    @np.errstate(invalid="ignore", divide="ignore")
    def values(entry: float) -> Array:
        return np.array([function(np.float64(entry))])

    return values


def between_kinks(x: float) -> float:
    """Further off, the chord from x - h to x + h has the slope 1.5 for every h."""
    return float(1e-4 + 3 * (x - 1e-4) if x > 1e-4 else max(x, -2e-4))


def normalized(x: float) -> float:
    """What an RMSNorm of one feature makes of it: it bends within 1e-3 of 0."""
    return float(x / np.sqrt(x * x + 1e-6))


SMOOTH: dict[str, tuple[Callable[[float], float], Callable[[float], float], float]] = {
    "sine": (np.sin, np.cos, 0.3),
    "fast sine": (lambda x: np.sin(300 * x), lambda x: 300 * np.cos(300 * x), 0.3),
    "cube": (lambda x: x**3, lambda x: 3 * x * x, -2.0),
    "large operand": (np.sin, np.cos, 1000.0),
    "logarithm near 0": (np.log, lambda x: 1 / x, 1e-7),
    "root near 0": (np.sqrt, lambda x: 0.5 / np.sqrt(x), 1e-7),
    "normalized": (normalized, lambda x: 1e-6 / (x * x + 1e-6) ** 1.5, 2e-4),
    "kink nearby": (lambda x: abs(x - 1e-7), lambda x: np.sign(x - 1e-7), 0.0),
    "between kinks": (between_kinks, lambda _: 1.0, 0.0),
    # In the middle of a stair the chords of x * x lie.
    "in the middle of a stair": (lambda x: np.round(8 * x) / 8 * x, lambda x: np.round(8 * x) / 8, 1304.00004),
    # Its second derivative jumps at 0: the central difference converges slowly, those of each side do not.
    "elu at 0": (lambda x: x if x > 0 else np.expm1(x), np.exp, 0.0),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_a_slope_is_as_good_as_it_says(name: str) -> None:
    function, derivative, at = SMOOTH[name]
    right = derivative(at)
    found = slope(by_value(function), at, UPSTREAM)
    assert abs(found.value - right) <= found.error + 4 * np.finfo(float).eps * abs(right)
    assert found.error <= 1e-8 * abs(right)
    assert found.jump == 0


@pytest.mark.parametrize(
    ("function", "value", "jump"),
    [(abs, 0.0, 2.0), (lambda x: max(x, 0.0), 0.5, 1.0), (lambda x: x if x > 0 else 2 * np.expm1(x), 1.5, 1.0)],
)
def test_a_kink_has_a_slope_on_each_side(function: Callable[[float], float], value: float, jump: float) -> None:
    found = slope(by_value(function), 0.0, UPSTREAM)
    assert found.value == pytest.approx(value, abs=1e-9)
    assert found.jump == pytest.approx(jump, abs=1e-9)


def test_values_that_jump_in_opposite_directions_leave_their_choice() -> None:
    """Of abs(x) - abs(x): each may have any slope from -1 to 1, independent of the other."""
    found = slope(lambda x: np.array([abs(x), abs(x), x]), 0.0, np.array([2.0, -1.0, 1.0]))
    assert found.value == pytest.approx(1.0)
    assert found.jump == pytest.approx(6.0)


@pytest.mark.parametrize(
    "function",
    [lambda x: float(x > 0), lambda x: np.sin(1e20 * x), lambda x: np.sqrt(x) if x >= 0 else np.nan],
    ids=["jump", "noise", "edge"],
)
def test_where_there_is_no_slope_the_error_says_so(function: Callable[[float], float]) -> None:
    assert slope(by_value(function), 0.0, UPSTREAM).error > 100


def test_each_entry_gets_a_slope_from_few_evaluations() -> None:
    evaluations = []

    def function(operand: Array) -> Array:
        evaluations.append(operand)
        answer: Array = np.tanh(operand) @ np.array([1.0, -2.0])
        return answer

    operand, upstream = np.array([[0.1, 0.2], [-0.3, 1.0], [3.0, 0.0]]), np.array([1.0, 2.0, 3.0])
    found = [entry.value for entry in slopes_of(function, operand, upstream)]
    right = upstream[:, None] * [1.0, -2.0] * (1 - np.tanh(operand) ** 2)
    np.testing.assert_allclose(np.reshape(found, (3, 2)), right, rtol=0, atol=1e-11)
    assert len(evaluations) <= 11 * operand.size


def test_slopes_along_directions() -> None:
    """Each is the sum of the slopes of its entries, with their signs; the smallest gradient that has them shares it."""
    directions = Directions(np.array([0, 1, 0, 0]), np.array([1.0, 1.0, -1.0, 1.0]), 2)
    operand = np.array([[1.0, 2.0], [3.0, 4.0]])
    found = [entry.value for entry in slopes_of(np.square, operand, np.ones((2, 2)), directions)]
    np.testing.assert_allclose(found, [2 - 6 + 8, 4], rtol=1e-10)
    np.testing.assert_array_equal(directions.along(np.array([2.0, 4.0, 6.0, 8.0])), [4, 4])
    np.testing.assert_array_equal(directions.spread(np.array([6.0, 5.0])), [2, 5, -2, 2])
