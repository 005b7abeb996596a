"""Where a formula has a kink, a tie, an infinity or an overflow: the values, and torch's."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from nn_manual import ops
from nn_manual.arrays import Array
from nn_manual.check.catalogue.operations import torch_gradients, torch_reference

INF = math.inf


def gradient(
    operation: ops.Operation, input: list[float], upstream: float | list[float], **options: object
) -> list[float]:
    """The gradient for one vector; torch's must be the same, entry for entry."""
    _, backward = ops.vjp(operation, np.array(input), **options)
    ours: Array = backward(np.array(upstream))
    (reference,) = torch_gradients(operation, [np.array(input)], options, np.array(upstream))
    np.testing.assert_array_equal(ours, reference)
    return [float(value) for value in ours]


def test_kinks() -> None:
    assert gradient(ops.relu, [0.0, -1.0, 2.0], [3.0, 5.0, -7.0]) == [0, 0, -7]
    assert gradient(ops.abs, [0.0, -1.0, 2.0], [3.0, 5.0, -7.0]) == [0, -5, -7]
    assert gradient(ops.clip, [0.0, 1.0, -0.5, 2.0], [3.0, 5.0, 7.0, 9.0], min=0, max=1) == [3, 5, 0, 0]


def test_an_infinite_gradient_does_not_pass_a_closed_gate() -> None:
    """0 * infinity is not a number: the gate is a choice, not a product."""
    assert gradient(ops.relu, [-1.0, 1.0], [INF, -INF]) == [0, -INF]
    assert gradient(ops.clip, [-1.0, 0.5], [INF, INF], min=0, max=1) == [0, INF]
    assert gradient(ops.max, [1.0, 2.0], [INF], axis=0, keepdims=True) == [0, INF]


def test_infinities_are_values() -> None:
    zero = np.array([0.0])
    assert ops.log(zero) == -INF
    assert ops.reciprocal(zero) == INF
    assert ops.divide(-1.0, zero) == -INF
    assert gradient(ops.log, [0.0], [2.0]) == [INF]
    assert gradient(ops.sqrt, [0.0], [2.0]) == [INF]
    assert gradient(ops.reciprocal, [0.0], [2.0]) == [-INF]
    assert ops.exp(np.array([1000.0])) == INF


def test_what_is_no_number_already_passes() -> None:
    """The error is for the entry that becomes undefined, not for the one that was."""
    assert math.isnan(ops.log(np.array(math.nan)))
    assert math.isnan(ops.divide(np.array([math.nan]), 0.0)[0])


def test_ties() -> None:
    assert gradient(ops.max, [2.0, 1.0, 2.0, 2.0], 3.0) == [1, 0, 1, 1]
    assert gradient(ops.max, [1.0, 2.0, 2.0], 3.0, axis=0) == [0, 3, 0]
    assert gradient(ops.min, [2.0, 1.0, 1.0, 2.0], 3.0) == [0, 1.5, 1.5, 0]
    assert gradient(ops.min, [1.0, 1.0, 2.0], 3.0, axis=-1) == [3, 0, 0]
    np.testing.assert_array_equal(gradient(ops.max, [math.nan, 1.0, math.nan], 3.0), [1.5, 0, 1.5])
    a, b = np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0])
    upstream = np.array([4.0, 5.0, 6.0])
    for operation, expected in ((ops.maximum, ([2, 0, 6], [2, 5, 0])), (ops.minimum, ([2, 5, 0], [2, 0, 6]))):
        ours = ops.vjp(operation, a, b)[1](upstream)
        assert [grad.tolist() for grad in ours] == list(expected)
        np.testing.assert_array_equal(ours, torch_gradients(operation, [a, b], {}, upstream))


def test_powers_at_the_edge() -> None:
    """Slopes 0 * infinity: x**0 for x = 0, 0**t for t >= 0; whole powers of negative numbers."""
    base, exponent = np.array([0.0, 0.0, 0.0, 2.0]), np.array([0.0, 1.0, 2.0, 0.0])
    upstream = np.array([3.0, 5.0, 7.0, 9.0])
    grad_base, grad_exponent = ops.vjp(ops.power, base, exponent)[1](upstream)
    assert grad_base.tolist() == [0, 5, 0, 0]
    np.testing.assert_allclose(grad_exponent, [0, 0, 0, 9 * math.log(2)], rtol=1e-15)
    np.testing.assert_array_equal(
        (grad_base, grad_exponent), torch_gradients(ops.power, [base, exponent], {}, upstream)
    )
    for constant, slopes in ((3, [12, 0, 27]), (2, [-4, 0, 6]), (0, [0, 0, 0])):
        _, backward = ops.vjp(ops.power, np.array([-2.0, 0.0, 3.0]), constant)
        assert backward(np.ones(3)).tolist() == slopes


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_exponentials_do_not_overflow(dtype: str) -> None:
    x = np.array([1000.0, 1001.0, -1000.0], dtype)
    upstream = np.array([0.5, -2.0, 1.0], dtype)
    assert ops.logsumexp(x) == pytest.approx(1001 + math.log1p(math.exp(-1)), rel=1e-7)  # float32's last digit
    for operation, grad_answer in ((ops.logsumexp, upstream[0]), (ops.softmax, upstream)):
        (reference,) = torch_gradients(operation, [x], {}, grad_answer)
        ours = ops.vjp(operation, x)[1](grad_answer)
        np.testing.assert_allclose(ours, reference, rtol=1e-6 if dtype == "float32" else 1e-14)  # a few roundings


def test_logsumexp_of_nothing_and_of_infinities() -> None:
    for input in (np.empty((0, 2)), np.array([[-INF, 1.0], [-INF, INF]])):
        expected = torch_reference(ops.logsumexp)(torch.from_numpy(input), axis=0).numpy()
        np.testing.assert_array_equal(ops.logsumexp(input, axis=0), expected)


def test_repeated_indices_accumulate() -> None:
    _, backward = ops.vjp(ops.index, np.zeros((3, 2)), key=([0, 2, 0, 0], [1, 0, 1, 0]))
    assert backward(np.array([1.0, 10.0, 100.0, 1000.0])).tolist() == [[1000, 101], [0, 0], [10, 0]]
