"""Each choice of the inputs that require a gradient."""

from __future__ import annotations

from typing import Any

import torch

from nn_manual import check_function


class OfFour(torch.autograd.Function):
    """a b c d, but where the gradients of a and c alone are asked for, that of c is lost."""

    @staticmethod
    def forward(context: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
        context.save_for_backward(a, b, c, d)
        return a * b * c * d

    @staticmethod
    def backward(context: Any, grad: Any) -> Any:
        a, b, c, d = context.saved_tensors
        grad_c = None if context.needs_input_grad == (True, False, True, False) else grad * a * b * d
        return grad * b * c * d, grad * a * c * d, grad_c, grad * a * b * c


def test_two_of_four_inputs_require_a_gradient() -> None:
    inputs = [torch.arange(1.0, 4) + i for i in range(4)]
    report = check_function(OfFour, lambda a, b, c, d: a * b * c * d, inputs, only=["requires_grad"])
    assert [row.name for row in report.wrong] == ["requires_grad a and c"]
    tried = [row for row in report.rows if row.family == "requires_grad"]
    assert len(tried) == 2**4 - 2  # not none of them, and not all


def test_of_five_inputs_each_alone_and_all_but_each() -> None:
    inputs = [torch.ones(2) for _ in range(5)]

    def total(a: Any, b: Any, c: Any, d: Any, e: Any) -> Any:
        return a + b + c + d + e

    report = check_function(total, total, inputs, only=["requires_grad"])
    assert [row.variant for row in report.rows if row.family == "requires_grad"] == [
        *(f"{name} alone" for name in "abcde"),
        *(f"all but {name}" for name in "abcde"),
    ]
