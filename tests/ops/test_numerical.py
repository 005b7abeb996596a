"""numerical_gradient: exact where it says so, close where it says so, and independent of every derivation."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
import torch

from nn_manual import ops
from nn_manual.arrays import Array


def test_the_complex_step_is_exact_to_rounding() -> None:
    """x exp(x) at x = 1: the slope is 2 e. A central difference can't come near this."""
    x = np.array([0.1, 1.0, -3.0])
    np.testing.assert_allclose(ops.numerical_gradient(ops.exp, x, grad_answer=np.ones(3)), np.exp(x), rtol=1e-15)
    np.testing.assert_allclose(ops.numerical_gradient(ops.square, x, grad_answer=x), 2 * x * x, rtol=1e-15)


def test_a_function_of_ones_own_gets_central_differences() -> None:
    def own(x: Array, y: Array) -> Array:
        return np.asarray(np.sum(np.sin(x) * y))

    x, y = np.array([[0.1, 1.0], [-3.0, 1000.0]]), np.array([2.0, -1.0])
    grad_x, grad_y = ops.numerical_gradient(own, x, y)
    np.testing.assert_allclose(grad_x, np.cos(x) * y, rtol=0, atol=1e-11)
    np.testing.assert_allclose(grad_y, np.sin(x).sum(axis=0), rtol=0, atol=1e-11)


def test_central_differences_at_a_kink_give_the_mean_slope() -> None:
    gradient = ops.numerical_gradient(ops.relu, np.array([0.0, 2.0]), grad_answer=np.array([3.0, 5.0]))
    np.testing.assert_allclose(gradient, [1.5, 5.0], rtol=1e-9)


@pytest.mark.parametrize("operation", [ops.softmax, ops.logsumexp])
def test_a_large_operand_neither_overflows_nor_cancels(operation: ops.Operation) -> None:
    x = np.array([1000.0, 1001.0, 999.0])
    grad_answer = np.ones_like(operation(x)) * np.array([1.0, -2.0, 3.0])[: np.size(operation(x))].reshape(
        np.shape(operation(x))
    )
    _, backward = ops.vjp(operation, x)
    np.testing.assert_allclose(
        ops.numerical_gradient(operation, x, grad_answer=grad_answer), backward(grad_answer), rtol=1e-13
    )


def test_operands_are_taken_as_they_are_and_derived_in_float64() -> None:
    x = torch.tensor([0.1, 0.7])
    gradient = ops.numerical_gradient(ops.tanh, x, grad_answer=torch.ones(2))
    assert gradient.dtype == np.float64
    np.testing.assert_allclose(gradient, 1 - np.tanh(x.double().numpy()) ** 2, rtol=1e-15)
    assert ops.numerical_gradient(ops.multiply, 3, np.array(2.0)) == 3
    assert ops.numerical_gradient(ops.sum, np.empty((0, 2)), axis=1, grad_answer=np.empty(0)).shape == (0, 2)


def test_a_function_that_is_defined_on_one_side_only() -> None:
    with pytest.raises(ValueError, match=re.escape("power of (1,) and (1,): not defined for -2.0 and 3.03")):
        ops.numerical_gradient(ops.power, np.array([-2.0]), np.array([3.0]), grad_answer=np.ones(1))


def test_the_upstream_gradient_may_be_left_out_for_one_number_only() -> None:
    assert ops.numerical_gradient(ops.log, np.array(4.0)) == pytest.approx(1 / 4, rel=1e-15)
    with pytest.raises(ValueError, match=re.escape("log: the upstream gradient has shape (), the answer (2,)")):
        ops.numerical_gradient(ops.log, np.array([4.0, math.e]))
