"""At a kink every element of the generalized gradient is right, and nothing else."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from slow_cases import slow

from nn_manual import check_function

GENERATOR = np.random.default_rng(0)
X, W = GENERATOR.standard_normal((4, 3)), GENERATOR.standard_normal((3, 5))


def relu(x: Any) -> Any:
    return np.maximum(x, 0), x


def slope_at_zero(slope: float) -> Callable[[Any, Any], Any]:
    def backward(grad: Any, cache: Any) -> Any:
        return grad * (cache > 0) + slope * grad * (cache == 0)

    return backward


def maximum(x: Any) -> Any:
    return x.max(-1), x


def to_each(part: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """The gradient goes to the largest entries, divided by `part` of how many these are."""

    def backward(grad: Any, cache: Any) -> Any:
        largest = cache == cache.max(-1, keepdims=True)
        return grad[..., None] * largest / part(largest.sum(-1, keepdims=True))

    return backward


def hidden(x: Any, w: Any) -> Any:
    return np.maximum(x @ w, 0), (x, w)


def hidden_back(*, same: bool) -> Callable[[Any, Any], Any]:
    """The slope of the kink is 1 for x, and for w the same, or 0."""

    def backward(grad: Any, cache: Any) -> Any:
        x, w = cache
        of_x, of_w = grad * (x @ w >= 0), grad * ((x @ w >= 0) if same else (x @ w > 0))
        return of_x @ w.T, x.T @ of_w

    return backward


def wrong_kinds(forward: Any, backward: Any, reference: Any, inputs: list[Any], **options: Any) -> list[str]:
    """The kinds of values on which it is wrong."""
    report = check_function((forward, backward), reference, inputs, only=["kinds"], **options)
    assert report.agrees, report
    return [row.variant for row in report.wrong]


@pytest.mark.slow
@pytest.mark.parametrize("slope", [0.0, 0.3, 1.0])
def test_each_slope_between_both_is_right(slope: float) -> None:
    """It alone has slopes between those of both sides."""
    assert wrong_kinds(relu, slope_at_zero(slope), torch.relu, [X]) == []


@pytest.mark.parametrize("slope", [-0.1, 1.1, slow(2.0)])
def test_no_other_slope_is_right(slope: float) -> None:
    assert wrong_kinds(relu, slope_at_zero(slope), torch.relu, [X]) == ["tied", "zero", "spread"]


@pytest.mark.slow
def test_entries_that_tie_share_the_gradient() -> None:
    """Each has a part of it, and the parts sum to one. It alone gives each its part."""

    def reference(x: torch.Tensor) -> torch.Tensor:
        return x.max(-1).values

    assert wrong_kinds(maximum, to_each(lambda count: count), reference, [X]) == []
    assert wrong_kinds(maximum, to_each(np.ones_like), reference, [X]) == ["tied", "zero"]


@pytest.mark.slow
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("shape", [(4, 5), (3, 8)])
def test_one_of_the_entries_that_tie_may_have_it_all(shape: tuple[int, int], first: bool) -> None:
    """amax shares it among them. It alone gives the whole gradient to one of the entries that tie."""

    def backward(grad: Any, cache: Any) -> Any:
        at = cache.argmax(1) if first else cache.shape[1] - 1 - cache[:, ::-1].argmax(1)
        found = np.zeros_like(cache)
        found[np.arange(len(cache)), at] = grad
        return found

    x = np.random.default_rng(0).standard_normal(shape)
    assert wrong_kinds(maximum, backward, lambda x: x.amax(1), [x]) == []


@pytest.mark.slow
@pytest.mark.parametrize("slope", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(("N", "D", "M"), [(3, 2, 3), (5, 4, 3), (8, 3, 4)])
def test_many_kinks_in_one_entry(N: int, D: int, M: int, slope: float) -> None:
    """All of a column's pre-activations may be 0: the bias's gradient is the sum of their slopes.
    It alone has so many kinks that random moves show few of their slopes.
    """

    def forward(x: Any, w: Any, b: Any) -> Any:
        return np.maximum(x @ w + b, 0), (x, w, x @ w + b)

    def backward(grad: Any, cache: Any) -> Any:
        x, w, a = cache
        grad = grad * ((a > 0) + slope * (a == 0))
        return grad @ w.T, x.T @ grad, grad.sum(0)

    generator = np.random.default_rng(1)
    inputs = [generator.standard_normal(shape) for shape in ((N, D), (D, M), (M,))]
    assert wrong_kinds(forward, backward, lambda x, w, b: torch.relu(x @ w + b), inputs) == []


@pytest.mark.slow
def test_a_kink_inside_of_the_function_has_one_slope_for_all_inputs() -> None:
    """It alone gives each of several inputs another slope at such a kink."""

    def reference(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.relu(x @ w)

    assert wrong_kinds(hidden, hidden_back(same=True), reference, [X, W]) == []
    assert "tied" in wrong_kinds(hidden, hidden_back(same=False), reference, [X, W])


def test_the_report_names_the_place_and_both_slopes() -> None:
    x = np.array([[1.0, -2.0], [0.0, 3.0]])
    report = check_function((relu, slope_at_zero(0.5)), torch.relu, [x], only=["retain_graph"])
    assert report.passed, report
    text = " ".join(str(report).split())
    assert "at a kink of the reference with slopes" in text
    assert "1.0e-12" in text
    assert " kink " in text
    (sentence, _) = report.kinks.values()
    assert sentence.startswith("grad_x, random upstream[1, 0] is ")


@pytest.mark.slow
def test_float32_and_16_bits() -> None:
    """It alone has kinks in low precision."""
    for dtype in ("float32", "bfloat16"):
        report = check_function(HalfAtZero, torch.relu, [torch.from_numpy(X)], dtypes=[dtype], only=["kinds"])
        assert [row.variant for row in report.wrong] == []
        report = check_function(DoubledAtZero, torch.relu, [torch.from_numpy(X)], dtypes=[dtype], only=["kinds"])
        assert [row.variant for row in report.wrong] == ["tied", "zero", "spread"]


class HalfAtZero(torch.autograd.Function):
    slope = 0.5

    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        context.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(context: Any, grad: Any) -> Any:
        (x,) = context.saved_tensors
        return grad * (x > 0) + 0.5 * grad * (x == 0)


class DoubledAtZero(HalfAtZero):
    @staticmethod
    def backward(context: Any, grad: Any) -> Any:
        (x,) = context.saved_tensors
        return grad * (x > 0) + 2 * grad * (x == 0)


@pytest.mark.slow
def test_where_the_slope_has_no_bound_nothing_is_excused() -> None:
    """The gradients of x * |x| ** -0.5 close by are as large as one likes. It alone has such a slope."""

    def root(x: Any) -> Any:
        return np.sign(x) * np.sqrt(np.abs(x) + 0.0), x

    def back(grad: Any, cache: Any) -> Any:
        return np.where(cache == 0, 3.0, 0.5 / np.sqrt(np.maximum(np.abs(cache), 1e-300))) * grad

    def reference(x: torch.Tensor) -> torch.Tensor:
        safe = torch.where(x == 0, 1, x)
        return torch.where(x == 0, 0 * x, safe.sign() * safe.abs().sqrt())

    assert wrong_kinds(root, back, reference, [X]) == ["tied", "zero", "spread"]


@pytest.mark.slow
@pytest.mark.parametrize("length", [0.5, 0.999, 1.0, 1.001, 1.1])
@pytest.mark.parametrize("shape", [(2,), (4, 3), (1, 20)])
def test_of_a_norm_at_zero_each_vector_of_length_at_most_one_is_a_gradient(
    shape: tuple[int, ...], length: float
) -> None:
    """It alone has a kink whose gradients fill a ball."""
    vector = np.random.default_rng(0).standard_normal(shape)
    vector *= length / np.sqrt((vector**2).sum(-1, keepdims=True))

    def norm(x: Any) -> Any:
        return np.sqrt((x * x).sum(-1)), x

    def back(grad: Any, _: Any) -> Any:
        return grad[..., None] * vector

    def reference(x: Any) -> Any:
        return torch.linalg.vector_norm(x, dim=-1)

    report = check_function((norm, back), reference, [np.zeros(shape)], only=["retain_graph"])
    assert report.agrees == (length <= 1), report


def both_extremes(x: Any) -> Any:
    return x.max(-1), x.min(-1), x


def to_the_first(grad_max: Any, grad_min: Any, cache: Any, *, of_max: float = 1.0) -> Any:
    """The gradient of the largest, and of the smallest, goes to the first of these entries."""
    grad, rows = np.zeros_like(cache), np.arange(len(cache))
    grad[rows, cache.argmax(-1)] += of_max * grad_max
    grad[rows, cache.argmin(-1)] += grad_min
    return grad


@pytest.mark.slow
def test_of_several_outputs_each_has_its_own_kink() -> None:
    """It alone has kinks of several outputs. At equal entries argmax and argmin are one place. Close by they are two,
    so no gradient there has their sum.
    """

    def reference(x: Any) -> Any:
        return x.amax(-1), x.amin(-1)

    assert not wrong_kinds(both_extremes, to_the_first, reference, [X])
    at_zero = [0 * X + 1]
    report = check_function((both_extremes, to_the_first), reference, at_zero, only=["writes"])
    assert report.passed, report
    for of_max in (0.5, 1.001):
        wrong = functools.partial(to_the_first, of_max=of_max)
        assert not check_function((both_extremes, wrong), reference, at_zero, only=["writes"]).agrees
