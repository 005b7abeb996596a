"""Kernels that are wrong in one layout, or at one size, or in both together, in one dtype."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from products import Product, inputs, product, raw
from torch.autograd.function import once_differentiable

from nn_manual import check_function


def misread(tensor: torch.Tensor) -> torch.Tensor:
    """What has its last axis in order, and two others not, is taken for contiguous."""
    in_order = tensor.stride(-1) == 1 and 0 < tensor.stride(-3) < tensor.stride(-2)
    return raw(tensor, int(tensor.storage_offset())) if in_order else tensor


@pytest.mark.parametrize("shape", [(3, 4, 5), (2, 3, 4, 5), (2, 2, 3, 4, 5)])
@pytest.mark.parametrize(("row", "of_gradient"), [("grad_output permuted", True), ("inputs permuted", False)])
def test_axes_before_the_last_may_have_changed_places(shape: tuple[int, ...], row: str, *, of_gradient: bool) -> None:
    class Reads(Product):
        @staticmethod
        @once_differentiable
        def backward(context: Any, grad_output: Any) -> Any:
            x, y = context.saved_tensors
            grad_output, x = (misread(grad_output), x) if of_gradient else (grad_output, misread(x))
            return grad_output * y, grad_output * x

    generator = torch.Generator().manual_seed(0)
    given = [torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(2)]
    report = check_function(Reads, product, given)
    assert [found.name for found in report.wrong] == [row]
    assert check_function(Product, product, given).passed


@pytest.mark.parametrize(("block", "rows"), [(256, ["sizes D=256", "sizes D=1024"]), (1024, ["sizes D=1024"])])
def test_a_size_that_blocks_divide(block: int, rows: list[str]) -> None:
    class LosesLast(Product):
        @staticmethod
        @once_differentiable
        def backward(context: Any, grad_output: Any) -> Any:
            grads = Product.backward(context, grad_output)
            if grads[0].shape[1] and grads[0].shape[1] % block == 0:
                grads[0][:, -1] = 0
            return grads

    report = check_function(LosesLast, product, inputs, sizes={"N": 4, "D": 5})
    assert [found.name for found in report.wrong] == rows
