"""Gradients that are right in another place, and one without the part of an output, are named as such."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from products import Product
from torch.autograd import Function

from nn_manual import check_function
from nn_manual.check.judge.report import GradientReport

ROWS = ["sizes", "twice", "cost", "kinds", "inputs", "grad_output"]


def values(seed: int) -> torch.Tensor:
    return torch.randn(3, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def check(function: Any, reference: Any, *inputs: torch.Tensor, dtype: str = "float64") -> GradientReport:
    return check_function(function, reference, list(inputs), dtypes=[dtype], skip=ROWS)


class Swapped(Product):
    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        grad_x, grad_y = Product.backward(context, grad_output)
        return grad_y, grad_x


class Copied(Product):
    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        grad_x, _ = Product.backward(context, grad_output)
        return grad_x, grad_x


def test_swapped_gradients() -> None:
    assert check(Swapped, torch.mul, values(0), values(1)).diagnosis == "grad_x and grad_y are swapped"
    report = check(Copied, lambda x, y: x * y, values(0), values(1))
    assert report.diagnosis == "it is grad_x"
    report = check(lambda x: (x.cos(), x.sin()), lambda x: (x.sin(), x.cos()), values(0))
    assert report.diagnosis == "output 0 and output 1 are swapped"


def several(*factors: float) -> type[Function]:
    class Several(Function):
        @staticmethod
        def forward(context: Any, x: Any) -> Any:
            context.save_for_backward(x)
            return x.sin(), x.cos(), x**2

        @staticmethod
        def backward(context: Any, *grad_outputs: Any) -> Any:
            (x,) = context.saved_tensors
            slopes = x.cos(), -x.sin(), 2 * x
            parts = zip(factors, grad_outputs, slopes, strict=True)
            return sum(factor * grad * slope for factor, grad, slope in parts)

    return Several


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
def test_an_output_whose_gradient_is_lost(dtype: str) -> None:
    """It alone loses the gradient of one of several outputs."""
    def reference(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.sin(), x.cos(), x**2

    assert check(several(1, 1, 1), reference, values(0), dtype=dtype).agrees
    report = check(several(1, 0, 1), reference, values(0), dtype=dtype)
    assert report.diagnosis == "the gradient of output 1 is left out"
    report = check(several(1, 0, 0), reference, values(0), dtype=dtype)
    assert report.diagnosis == "the gradient of output 1 and output 2 is left out"
    assert "left out" not in check(several(1, 0.5, 1), reference, values(0), dtype=dtype).diagnosis
