"""The rows on CUDA tensors: they run where there is a device."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from products import Product, inputs, product
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from nn_manual import check_function
from nn_manual.functions.battery.families import FAMILIES
from nn_manual.functions.function_report import FunctionReport

on_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here")


class WrongThere(Product):
    """Like a kernel of which the device has another version."""

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        grad_x, grad_y = Product.backward(context, grad_output)
        return grad_x, 2 * grad_y if grad_y.is_cuda else grad_y


def check(function: Any, reference: Any = product, **options: Any) -> FunctionReport:
    return check_function(function, reference, inputs, sizes={"N": 4, "D": 5}, **options)


def verdicts(report: FunctionReport) -> dict[str, tuple[str, str]]:
    return {row.variant: (row.verdict, row.note) for row in report.rows if row.family == "cuda"}


def test_without_a_device_the_row_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert verdicts(check(Product, only=["cuda"])) == {"": ("skipped", "there is no CUDA device here")}


@pytest.mark.slow
@on_cuda
@pytest.mark.parametrize("dtypes", [None, ["float32", "bfloat16"], ["float16"]])
def test_a_right_function_is_right_there(dtypes: Any) -> None:
    """It alone runs every row on a device."""
    report = check(Product, dtypes=dtypes)
    assert report.passed, report
    found = verdicts(report)
    of_families = {family for family in FAMILIES if any(f"{name} ".startswith(f"{family} ") for name in found)}
    others = {"cuda", "eval", "autocast", "dtype", "full size"}  # not for these dtypes and sizes
    assert of_families >= FAMILIES.keys() - others


@pytest.mark.slow
@on_cuda
def test_what_is_wrong_only_there_is_named() -> None:
    """It alone has a function that is wrong on a device."""
    report = check(WrongThere, skip=["sizes", "kinds"])
    assert report.agrees
    verdict, note = verdicts(report)["grad_output transposed"]
    assert verdict == "WRONG"
    assert "2 times the reference" in note
    assert all(row.family == "cuda" for row in report.wrong)


@pytest.mark.slow
@on_cuda
def test_inputs_may_lie_there() -> None:
    """It alone is given CUDA tensors."""
    x = torch.randn(4, 5, generator=torch.Generator().manual_seed(0)).cuda()
    assert check_function(Product, product, [x, 2 * x]).passed
    report = check_function(WrongThere, product, [x, 2 * x], only=["writes"])
    assert [failure.name for failure in report.failures] == ["grad_y, random upstream", "grad_y, negative upstream"]


@pytest.mark.slow
@on_cuda
def test_a_kink_is_a_kink_there() -> None:
    """It alone meets a kink on a device: the slopes there are measured on it."""

    class Relu(Function):
        @staticmethod
        def forward(context: Any, x: Any) -> Any:
            context.save_for_backward(x)
            return x.clamp(min=0)

        @staticmethod
        @once_differentiable
        def backward(context: Any, grad_output: Any) -> Any:
            (x,) = context.saved_tensors
            return grad_output * (0.5 * (x >= 0) + 0.5 * (x > 0))

    x = torch.tensor([[-1.0, 0.0, 2.0], [0.0, 3.0, -2.0]]).cuda()
    report = check_function(Relu, torch.relu, [x], only=["kinds"])
    assert report.passed, report
    assert "at a kink of the reference with slopes " in " ".join(report.sources)


@pytest.mark.slow
@on_cuda
def test_a_domain_holds_there() -> None:
    """It alone moves CUDA tensors into a domain."""
    x = torch.rand(4, 5, generator=torch.Generator().manual_seed(0)).cuda() + 1
    assert check_function(torch.log, lambda x: x.log(), [x], domain="positive").passed


@pytest.mark.slow
@on_cuda
def test_integers_that_repeat_there() -> None:
    """It alone has a permutation on a device."""

    def gather(x: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        return x.index_select(0, rows)

    x = torch.randn(4, 5, generator=torch.Generator().manual_seed(0)).cuda()
    report = check_function(gather, lambda x, rows: x[rows], [x, torch.tensor([2, 0, 1, 3]).cuda()])
    assert report.passed, report
