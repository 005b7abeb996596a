"""What a wrong gradient is instead: the mistakes that public code has most often."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from nn_manual import check_function

GENERATOR = np.random.default_rng(0)
X = GENERATOR.standard_normal((4, 3))


def diagnosis(forward: Any, backward: Any, reference: Callable[..., Any], *inputs: Any) -> str:
    return check_function((forward, backward), reference, list(inputs), only=["retain_graph"]).diagnosis


def square(x: Any) -> Any:
    return x**2, x


def test_the_upstream_gradient_is_ignored() -> None:
    def backward(_: Any, cache: Any) -> Any:
        return 2 * cache

    assert diagnosis(square, backward, torch.square, X) == (
        "the gradient of the output is ignored: this is the gradient under ones"
    )


def test_gradients_add_up_from_call_to_call() -> None:
    total = np.zeros_like(X)

    def backward(saved: Any, upstream: Any) -> Any:
        total[...] += 2 * saved * upstream
        return total.copy()

    report = check_function((square, backward), torch.square, [X], only=["retain_graph"])
    assert report.failures[0].name == "grad_x, negative upstream"
    assert report.diagnosis.startswith("the sum of this gradient and of that of the backward before")


def softmax(x: Any) -> Any:
    exp = np.exp(x - x.max(-1, keepdims=True))
    return exp / exp.sum(-1, keepdims=True), exp / exp.sum(-1, keepdims=True)


def test_the_diagonal_of_a_jacobian_alone() -> None:
    def backward(dout: Any, cache: Any) -> Any:
        return dout * cache * (1 - cache)

    said = diagnosis(softmax, backward, lambda x: x.softmax(-1), X)
    assert said.startswith("along axis 1 each entry has its own output's gradient alone")


def running_sums(x: Any) -> Any:
    return np.tanh(x.cumsum(1)), np.tanh(x.cumsum(1))


def test_later_times_that_are_left_out() -> None:
    def backward(dout: Any, cache: Any) -> Any:
        return dout * (1 - cache**2)

    x = GENERATOR.standard_normal((4, 5, 3))
    said = diagnosis(running_sums, backward, lambda x: x.cumsum(1).tanh(), x)
    assert said.startswith("along axis 1 each entry has its own output's gradient alone")
    assert said.endswith("what it does to the others is left out")


@pytest.mark.parametrize("last", [False, True])
def test_an_index_that_repeats_counts_once(last: bool) -> None:
    def lookup(table: Any, indices: Any) -> Any:
        return table[indices], (indices, table.shape)

    def backward(dout: Any, cache: Any) -> Any:
        indices, shape = cache
        grad = np.zeros(shape)
        step = 1 if last else -1
        grad[indices[::step]] = dout[::step]
        return grad

    said = diagnosis(lookup, backward, lambda table, indices: table[indices], X, np.array([0, 2, 2, 1, 0]))
    assert said == "an index that repeats counts once: the gradients of all its places must add up"


def test_the_right_numbers_in_another_order() -> None:
    def forward(x: Any) -> Any:
        return x.cumsum(1), None

    def backward(dout: Any, _: Any) -> Any:
        return dout[:, ::-1].cumsum(1)

    assert diagnosis(forward, backward, lambda x: x.cumsum(1), X) == "the right numbers, reversed along axis 1"

    def in_order(x: Any) -> Any:
        return np.sort(x), np.argsort(x)

    def not_inverted(dout: Any, order: Any) -> Any:
        return dout[order]

    said = diagnosis(in_order, not_inverted, lambda x: x.sort().values, GENERATOR.standard_normal(6))
    assert said == "the right numbers in another order along axis 0"

    def opposite(x: Any) -> Any:
        return x[:, 0] - x[:, 1], None

    def negated(dout: Any, _: Any) -> Any:
        return np.stack([-dout, dout], 1)

    assert diagnosis(opposite, negated, lambda x: x[:, 0] - x[:, 1], X[:, :2]) == "the wrong sign"


def test_a_mean_in_the_place_of_a_sum_in_a_single_number() -> None:
    def scaled(x: Any, w: Any) -> Any:
        return w * x, (x, w)

    def backward(dout: Any, cache: Any) -> Any:
        x, w = cache
        return dout * w, (dout * x).mean(keepdims=True)[0]

    said = diagnosis(scaled, backward, lambda x, w: w * x, X, np.array([0.3]))
    assert said == "1/12 of the reference: divided by the number of entries of x"


def test_a_right_function_has_none() -> None:
    assert diagnosis(softmax, lambda d, p: p * (d - (p * d).sum(-1, keepdims=True)), lambda x: x.softmax(-1), X) == ""


def test_another_mistake_is_described_as_before() -> None:
    assert diagnosis(square, lambda dout, cache: dout * cache, torch.square, X).startswith("1/2 of the reference")
