"""Slopes of a forward are measured once for each operands, upstream gradient and plain argument."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from nn_manual.arrays import Array
from nn_manual.functions.check_function import check_function
from nn_manual.functions.forward_slopes import MOST_OPERANDS, KnownSlopes, MovedValues, directions_through


class Counted:
    """The square of the first operand times the second, and how often it was computed."""

    def __init__(self) -> None:
        self.num_runs = 0

    def __call__(self, operands: Sequence[Array]) -> Array:
        self.num_runs += 1
        x, w = operands
        product: Array = (x**2 * w).reshape(-1)
        return product


def square(x: Array) -> Array:
    squared: Array = x**2
    return squared


def test_moved_values_are_computed_once_for_each_place_and_step() -> None:
    counted, x, w = Counted(), np.array([[1.0, 2.0]]), np.array([3.0, 4.0])
    moved = MovedValues(counted)
    values = moved.around([x, w])
    for _ in range(2):
        np.testing.assert_array_equal(values([x, w]), [3.0, 16.0])
        np.testing.assert_array_equal(values([np.array([[1.5, 2.0]]), w]), [6.75, 16.0])
        np.testing.assert_array_equal(values([np.array([[1.0, 1.5]]), w]), [3.0, 9.0])
        np.testing.assert_array_equal(values([x, np.array([1.5, 4.0])]), [1.5, 16.0])
        np.testing.assert_array_equal(values([np.array([[np.nan, 2.0]]), w]), [np.nan, 16.0])
    assert counted.num_runs == 5


def test_another_upstream_gradient_takes_new_slopes_of_the_same_values() -> None:
    counted, operands = Counted(), [np.array([1.0, 2.0]), np.array([3.0, 4.0])]
    known, ways = KnownSlopes(), directions_through(2)
    upstreams = [np.array([1.0, 1.0]), np.array([-2.0, 5.0])]
    for upstream in upstreams:
        values = known.moved(square, [2], operands, MovedValues(counted)).around(operands)
        slopes = known.slopes(square, [2], values, operands, upstream)
        np.testing.assert_allclose(slopes(0, ways).value, upstream * [6.0, 16.0], rtol=1e-9)
    runs = counted.num_runs
    assert runs < 30  # of one upstream gradient alone they are 19
    for upstream in upstreams:
        known.slopes(square, [2], counted, operands, upstream)(0, ways)
    assert counted.num_runs == runs
    known.slopes(square, [3], counted, operands, upstreams[0])(0, ways)
    assert counted.num_runs > runs


def test_values_are_kept_for_a_few_operands_and_what_else_they_depend_on() -> None:
    known, each = KnownSlopes(), [np.array([float(number)]) for number in range(MOST_OPERANDS + 1)]
    kept = [known.moved(square, [2], [operand], MovedValues(Counted())) for operand in each]
    for operand, before in list(zip(each, kept, strict=True))[1:]:
        assert known.moved(square, [2], [operand], MovedValues(Counted())) is before
    new = MovedValues(Counted())
    assert known.moved(square, [2], [each[0]], new) is new  # the others came later
    for function, other in ((square, 3), (square, {"power": 2}), (torch.nn.Identity(), 2)):
        new = MovedValues(Counted())
        assert known.moved(function, [other], [each[-1]], new) is new


def test_slopes_of_what_may_have_a_state_are_measured_each_time() -> None:
    operands, ways = [np.array([1.0, 2.0]), np.array([3.0, 4.0])], directions_through(2)
    for function, other in ((square, {"power": 2}), (torch.nn.Identity(), 2)):
        counted, known = Counted(), KnownSlopes()
        runs = []
        for _ in range(2):
            slopes = known.slopes(function, [other], counted, operands, np.ones(2))
            slopes(1, ways)
            runs.append(counted.num_runs)
        assert runs[1] == 2 * runs[0]


def test_rows_that_change_nothing_of_forward_measure_no_slopes_again() -> None:
    num_runs = 0

    def forward(x: Array) -> tuple[Array, Array]:
        nonlocal num_runs
        num_runs += 1
        return np.sin(x), x

    def backward(grad_output: Array, x: Array) -> Array:
        gradient: Array = grad_output * np.cos(x)
        return gradient

    x = np.random.default_rng(0).standard_normal((4, 5))
    runs = []
    for rows in (["settings"], ["settings", "retain_graph"]):
        before = num_runs
        report = check_function((forward, backward), None, (x,), only=rows)
        assert report.agrees
        runs.append(num_runs - before)
    # The row runs forward 23 times, also to see that it is steady. Slopes of 20 numbers take 161 runs.
    assert runs[1] - runs[0] < 50
