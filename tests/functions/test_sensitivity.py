"""How far rounding takes the reference's values, measured."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from nn_manual.functions.arguments import arguments_of
from nn_manual.functions.callables import Function
from nn_manual.functions.function_case import FunctionCase
from nn_manual.functions.sensitivity import sensitivities

ONE = torch.ones(1, 1, dtype=torch.float64)
ONES = torch.tensor([[1.0], [2.0]], dtype=torch.float64)


def measured(function: Function, *inputs: list[float]) -> dict[str, float]:
    arguments = arguments_of(function, function, [torch.tensor(values) for values in inputs])
    return sensitivities(FunctionCase(function, function, arguments))[1]


def test_a_product_moves_by_its_factors_and_itself() -> None:
    found = measured(lambda x: 3 * x, [1000.0, -1.0])
    assert 3000 / 2 <= found["output"] <= 3000 * 3  # the input and the product, each by half to one and a half


def test_terms_that_cancel_are_seen() -> None:
    found = measured(lambda x: x - x.mean(), [1000.0, 1000.0, 1000.0])
    assert 300 <= found["output"] <= 5000


@pytest.mark.parametrize(
    "softmax",
    [
        lambda x: x.softmax(0),
        lambda x: x.log_softmax(0).exp(),
        lambda x: (x - 1000).exp() / (x - 1000).exp().sum(),
        lambda x: scaled_dot_product_attention(ONE[None, None], x[None, None, :, None], ONES[None, None])[0, 0],
    ],
)
def test_an_exponential_of_a_difference_is_off_by_the_exponent(softmax: Function) -> None:
    """The gradient is 0; the probability of 1 may be exp(1000 - 1000.0001)."""
    found = measured(softmax, [0.0, 1000.0])
    assert 100 <= found["grad_x, random upstream"] <= 10_000


@pytest.mark.parametrize("fill", [-1e9, float(torch.finfo(torch.float32).min), -float("inf")])
def test_what_fills_a_mask_is_no_exponent(fill: float) -> None:
    """Its probability is 0. As an exponent it would excuse whatever the function computes."""
    found = measured(lambda x: x.masked_fill(torch.tensor([True, False, False]), fill).softmax(0), [0.0, 1.0, 2.0])
    assert found["grad_x, random upstream"] <= 100


def test_what_amax_returns_is_not_rounded() -> None:
    """Its backward looks for what is equal to it."""
    found = measured(lambda x: x - x.amax(), [1.0, 2.0])
    assert 0.1 <= found["grad_x, random upstream"] <= 10


def test_a_jump_at_a_kink_is_no_rounding() -> None:
    found = measured(lambda x: x.amax() + x.clamp(max=2).sum(), [2.0, 2.0, 0.0])
    assert found["output"] >= 2
    assert found["grad_x, random upstream"] <= 10  # moved, the ties are none: that is 2**40 units
