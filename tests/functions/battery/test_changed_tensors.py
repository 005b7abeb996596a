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


class Masked(Function):
    @staticmethod
    def forward(context: Any, x: Any, mask: Any) -> Any:
        context.mask = mask
        return x * mask

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        return grad_output * context.mask, None


class Largest(Function):
    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        largest, context.index = x.max(-1)
        context.length = x.shape[-1]
        context.mark_non_differentiable(context.index)
        return largest, context.index

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any, _: Any) -> Any:
        zeros = grad_output.new_zeros(*grad_output.shape, context.length)
        return zeros.scatter(-1, context.index[..., None], grad_output[..., None])


class ShowsItsTable(Function):
    """Right: nobody needs the table that it keeps, and returns."""

    table = torch.arange(5)

    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        context.mark_non_differentiable(ShowsItsTable.table)
        return 2 * x, ShowsItsTable.table

    @staticmethod
    def backward(_: Any, grad_output: Any, __: Any) -> Any:
        return 2 * grad_output


X = torch.randn(4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("function", "reference", "given", "expected"),
    [
        (Masked, lambda x, mask: x * mask, [X, X > 0], {"changed inputs": "grad_x changes when mask changes "}),
        (Largest, lambda x: tuple(x.max(-1)), [X], {"changed outputs": "grad_x changes when output 1 changes "}),
        (ShowsItsTable, lambda x: (2 * x, torch.arange(5)), [X], {}),
    ],
)
def test_a_mask_or_an_index_changes(function: Any, reference: Any, given: Any, expected: dict[str, str]) -> None:
    report = check_function(function, reference, given, skip=["cost", "twice"])
    assert {row.name for row in report.wrong} == expected.keys()
    assert all(row.note.startswith(expected[row.name]) for row in report.wrong)


def test_an_input_that_is_called_output() -> None:
    class Sums(Function):
        """Keeps what it returns."""

        @staticmethod
        def forward(context: Any, x: Any) -> Any:
            context.output = x.exp().sum(-1)
            context.save_for_backward(x)
            return context.output

        @staticmethod
        def backward(context: Any, grad_output: Any) -> Any:
            exponentials = context.saved_tensors[0].exp()
            return (grad_output * context.output / exponentials.sum(-1))[..., None] * exponentials

    report = check_function(Sums, lambda output: output.exp().sum(-1), [X], only=["changed"])
    assert [row.name for row in report.wrong] == ["changed outputs"]


def test_an_input_of_zeros_changes() -> None:
    """As a bias does that starts at zero."""

    class Scaled(Function):
        @staticmethod
        def forward(context: Any, x: Any, b: Any) -> Any:
            context.b = b
            context.save_for_backward(x)
            return x * b.exp()

        @staticmethod
        def backward(context: Any, grad_output: Any) -> Any:
            grad = grad_output * context.b.exp()
            return grad, (grad * context.saved_tensors[0]).sum(0)

    given = [X, torch.zeros(5, dtype=torch.float64)]
    report = check_function(Scaled, lambda x, b: x * b.exp(), given, only=["changed"])
    assert [row.name for row in report.wrong] == ["changed inputs"]
