"""How far rounding takes the reference's values, measured."""

from __future__ import annotations

import torch

from nn_manual.check.functions.arguments import arguments_of
from nn_manual.check.functions.callables import Function
from nn_manual.check.functions.case import Case
from nn_manual.check.functions.sensitivity import sensitivities


def measured(function: Function, *inputs: list[float]) -> dict[str, float]:
    arguments = arguments_of(function, function, [torch.tensor(values) for values in inputs])
    return sensitivities(Case(function, function, arguments))[1]


def test_a_product_moves_by_its_factors_and_itself() -> None:
    found = measured(lambda x: 3 * x, [1000.0, -1.0])
    assert 3000 / 2 <= found["output"] <= 3000 * 3  # the input and the product, each by half to one and a half


def test_terms_that_cancel_are_seen() -> None:
    found = measured(lambda x: x - x.mean(), [1000.0, 1000.0, 1000.0])
    assert 300 <= found["output"] <= 5000
    found = measured(lambda x: x.softmax(0), [0.0, 1000.0])
    assert 0.1 <= found["grad_x, random upstream"] <= 10  # the gradient is 0


def test_a_jump_at_a_kink_is_no_rounding() -> None:
    found = measured(lambda x: x.amax() + x.clamp(max=2).sum(), [2.0, 2.0, 0.0])
    assert found["output"] >= 2
    assert found["grad_x, random upstream"] <= 10  # moved, the ties are none: that is 2**40 units
