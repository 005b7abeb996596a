"""What changes in place between forward and backward."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from nn_manual import check_function


class Sine(Function):
    """Right: torch sees a change of what it saves."""

    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        context.save_for_backward(x)
        return x.sin()

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        return grad_output * context.saved_tensors[0].cos()


class KeepsInput(Function):
    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        context.x = x
        return x.sin()

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        return grad_output * context.x.cos()


class KeepsOutput(Function):
    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        output = x.tanh()
        context.output = output.detach()
        return output

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        return grad_output * (1 - context.output**2)


class NeedsNeither(Function):
    """Right: its backward needs the sign alone, which it computed."""

    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        context.sign = x.sign()
        return x.abs()

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        return grad_output * context.sign


class InPlace(Function):
    """Right: its output is its input, and marked."""

    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        context.mark_dirty(x.relu_())
        context.save_for_backward(x)
        return x

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        return grad_output * (context.saved_tensors[0] > 0)


class Flat(Function):
    """Right: a view of its input."""

    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        context.shape = x.shape
        return x.reshape(-1)

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        return grad_output.reshape(context.shape)


@pytest.mark.parametrize(
    ("function", "reference", "expected"),
    [
        (Sine, torch.sin, []),
        (torch.sin, torch.sin, []),
        (NeedsNeither, torch.abs, []),
        (InPlace, torch.relu, []),
        (Flat, torch.flatten, []),
        (KeepsInput, torch.sin, ["changed inputs"]),
        (KeepsOutput, torch.tanh, ["changed outputs"]),
    ],
)
def test_a_tensor_that_backward_needs_changes(function: Any, reference: Any, expected: list[str]) -> None:
    x = torch.randn(4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    report = check_function(function, reference, [x], skip=["cost"])
    assert [row.name for row in report.wrong] == expected
    for row in report.wrong:
        assert row.note.startswith("grad_x changes when ")
        assert "without an error; keep what backward needs" in row.note
    assert {row.name: row.verdict for row in report.rows}["changed inputs"] in {"right", "WRONG"}
