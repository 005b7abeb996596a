"""One tensor in the place of two inputs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from slow_cases import crossed
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from nn_manual import check_function


class ByAddress(Function):
    """x * y, which takes two inputs of one address for a square, and gives each its whole gradient."""

    @staticmethod
    def forward(context: Any, x: torch.Tensor, y: torch.Tensor) -> Any:
        context.save_for_backward(x, y)
        return x * y

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        x, y = context.saved_tensors
        factor = 2 if x.data_ptr() == y.data_ptr() else 1
        return factor * grad_output * y, factor * grad_output * x


class InPlace(Function):
    """x += y"""

    @staticmethod
    def forward(context: Any, x: torch.Tensor, y: torch.Tensor) -> Any:
        context.mark_dirty(x)
        return x.add_(y)

    @staticmethod
    def backward(_: Any, grad_output: Any) -> Any:
        return grad_output, grad_output


def given(dtype: torch.dtype = torch.float64) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.rand(4, 3, generator=generator).to(dtype) for _ in range(2)]


def row_of(function: Any, reference: Any, inputs: Any) -> Any:
    report = check_function(function, reference, inputs, kinds=[])
    assert [row.name for row in report.wrong] in ([], ["inputs same"]), report
    return next(row for row in report.rows if row.name == "inputs same")


def test_a_gradient_by_the_address_of_the_inputs_is_wrong() -> None:
    row = row_of(ByAddress, torch.mul, given())
    assert row.verdict == "WRONG"
    words = "grad_x is not the sum of both gradients with two equal tensors"
    assert row.note == f"where x and y are one tensor, {words}"


FUNCTIONS = [torch.mul, torch.sub, torch.dist, torch.maximum, torch.cosine_similarity]


@pytest.mark.parametrize(("function", "dtype"), crossed(FUNCTIONS, [torch.float64, torch.float32, torch.bfloat16]))
def test_right_functions_are_right(function: Any, dtype: torch.dtype) -> None:
    assert row_of(function, function, given(dtype)).verdict == "right"


def test_what_works_in_place_is_skipped() -> None:
    assert row_of(InPlace, torch.add, given()).verdict == "skipped"


def test_what_refuses_equal_values_is_skipped() -> None:
    def divided(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if torch.equal(x, y):
            raise ValueError("x - y is 0")
        return 1 / (x - y)

    assert row_of(divided, divided, given()).verdict == "skipped"
    assert row_of(divided, lambda x, y: 1 / (x - y), given()).verdict == "skipped"


def test_lists_count_and_other_shapes_do_not() -> None:
    def summed(several: list[torch.Tensor]) -> Any:
        return ByAddress.apply(*several)  # type: ignore[no-untyped-call] # torch has no types here

    row = row_of(summed, lambda several: several[0] * several[1], [given()])
    assert row.note.startswith("where several[0] and several[1] are one tensor")
    report = check_function(torch.mul, torch.mul, [given()[0], given()[1][0]], kinds=[])
    assert not [row for row in report.rows if row.name == "inputs same"]
