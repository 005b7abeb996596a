"""What is excused at kinks, and without a reference, hides no wrong gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from slow_cases import slow

from nn_manual import check_function

X = np.random.default_rng(0).standard_normal((4, 5))


def relu(x: Any) -> Any:
    return np.maximum(x, 0), x


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1, 100])
def test_the_flat_side_of_a_relu_is_no_kink(scale: int) -> None:
    """torch's relu finds its slope from what it returned. It alone has a gradient that is wrong beside a kink."""
    report = check_function(
        (lambda x: (scale * np.maximum(x, 0), x), lambda dout, _: scale * dout),
        lambda x: scale * torch.relu(x),
        [X],
        only=["kinds"],
    )
    assert [failure.name for failure in report.failures][:1] == ["grad_x, random upstream"]
    near = check_function((relu, lambda dout, cache: dout * (cache > -0.02)), torch.relu, [X], only=["kinds"])
    assert "kinds tiny" in [row.name for row in near.wrong]


@pytest.mark.slow
def test_small_gradients_at_a_kink_are_excused_too() -> None:
    """It alone has small gradients at a kink."""
    x = X.copy()
    x[0, :3] = 0
    report = check_function((relu, lambda dout, cache: dout * (cache >= 0)), torch.relu, [x], only=["grad_output"])
    assert report.passed, report


def test_without_a_reference_a_gradient_that_is_no_number_is_wrong() -> None:
    x = X.copy()
    x[0, 0] = 1000

    def backward(dout: Any, cache: Any) -> Any:
        (x,) = cache
        with np.errstate(all="ignore"):
            return dout * np.exp(x) / (1 + np.exp(x))

    report = check_function((lambda x: (np.logaddexp(0, x), (x,)), backward), None, [x], only=["retain_graph"])
    assert not report.agrees


@pytest.mark.slow
@pytest.mark.parametrize(("shared", "passed"), [(True, True), (False, False)])
def test_without_a_reference_the_parts_of_a_tie_sum_to_one(shared: bool, passed: bool) -> None:
    """It alone has ties without a reference."""
    def backward(dout: Any, cache: Any) -> Any:
        (x,) = cache
        largest = x == x.max(1, keepdims=True)
        return dout[:, None] * largest / (largest.sum(1, keepdims=True) if shared else 1)

    report = check_function((lambda x: (x.max(1), (x,)), backward), None, [X], only=["kinds"])
    assert report.passed == passed, report


@pytest.mark.parametrize("slope", [slow(1.0), 0.3, slow(-1.0)])
def test_without_a_reference_each_slope_of_a_symmetric_kink_is_right(slope: float) -> None:
    def backward(dout: Any, cache: Any) -> Any:
        return dout * np.where(cache == 0, slope, np.sign(cache))

    report = check_function((lambda x: (np.abs(x), x), backward), None, [X], only=["kinds"])
    assert report.passed, report


def test_without_a_reference_more_numbers_than_directions_change_in_place() -> None:
    x = np.random.default_rng(0).standard_normal((9, 9))
    tanh = (lambda x: (np.tanh(x), (np.tanh(x),)), lambda dout, cache: dout * (1 - cache[0] ** 2))
    assert check_function(tanh, None, [x], only=["in place"]).passed


def test_gradients_that_are_none_are_named_in_every_row() -> None:
    pair = (lambda x, w: (x * w, (x, w)), lambda dout, cache: [[1.0, 2.0], dout * cache[0]])
    report = check_function(pair, lambda x, w: x * w, [X, X + 1], only=["retain_graph", "determinism"])
    assert report.problem == "<lambda>: grad_x is list, not an array of numbers"
    few = check_function((pair[0], lambda dout, cache: dout * cache[1]), lambda x, w: x * w, [X, X + 1])
    assert few.problem is not None
    assert "backward returned 1 gradient instead of 2: grad_x, grad_w" in few.problem
    assert not any("the check raised" in row.note for row in few.rows)


def test_rows_that_follow_from_an_accepted_habit_are_skipped() -> None:
    def into_upstream(dout: Any, cache: Any) -> Any:
        (x,) = cache
        dout *= 2 * x
        return dout

    report = check_function(
        (lambda x: (x * x, (x,)), into_upstream), lambda x: x * x, [X], skip=["writes grad_output"]
    )
    assert report.passed, report
    assert "which has one place in memory here" in str([row.note for row in report.skipped])


def test_a_gradient_that_bends_sharply_has_no_kink() -> None:
    """Close by it takes every value. That excuses nothing."""

    def backward(dout: Any, cache: Any) -> Any:
        (x,) = cache
        return 1e6 * np.cos(1e6 * (x + 1e-10)) * dout

    report = check_function(
        (lambda x: (np.sin(1e6 * x), (x,)), backward), lambda x: (1e6 * x).sin(), [X], only=["retain_graph"]
    )
    assert [failure.name for failure in report.failures][:1] == ["grad_x, random upstream"]
    assert not report.kinks


def test_a_definition_that_is_infinite_in_float32_has_few_digits_in_float64() -> None:
    """log(1 - p) at 30: in float64, p has one of the last two numbers below 1 that are 1e-3 of 1 - p apart."""

    def forward(x: Any) -> Any:
        return np.logaddexp(0, x) - x * target, x

    def backward(dout: Any, x: Any) -> Any:
        return dout * (1 / (1 + np.exp(-x)) - target)

    def reference(x: Any) -> Any:
        p, y = torch.sigmoid(x), torch.from_numpy(target)
        return -(y * p.log() + (1 - y) * (1 - p).log())

    x = np.random.default_rng(12).standard_normal((4, 5))
    target = (x > 0).astype(float)
    report = check_function((forward, backward), reference, [x], only=["kinds spread"])
    assert not report.wrong, report
