"""A second backward after one forward."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.autograd.function import once_differentiable

from nn_manual import HandwrittenClass, check_function

X = torch.randn(4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


class Squares(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        context.save_for_backward(x)
        return x**2

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        return 2 * context.saved_tensors[0] * grad_output


class ReturnsTheFirst(Squares):
    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        if not hasattr(context, "grad"):
            context.grad = Squares.backward(context, grad_output)
        return context.grad


class ReturnsOneBuffer(Squares):
    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        if not hasattr(context, "buffer"):
            context.buffer = torch.empty_like(grad_output)
        return context.buffer.copy_(Squares.backward(context, grad_output))


class DiffersInLastBits(Squares):
    """As atomic additions on a GPU do, unless torch's switch forbids it."""

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        grad = Squares.backward(context, grad_output)
        if torch.are_deterministic_algorithms_enabled():
            return grad
        return grad * (1 + torch.finfo(grad.dtype).eps * torch.randint(-1, 2, grad.shape).to(grad))


@pytest.mark.parametrize(
    ("function", "note"),
    [
        (Squares, ""),
        (DiffersInLastBits, ""),
        (ReturnsTheFirst, "the second backward after one forward is wrong: grad_x, negative upstream["),
        (ReturnsOneBuffer, "the second backward after one forward overwrites grad_x of the first"),
    ],
)
def test_a_second_backward(function: Any, note: str) -> None:
    report = check_function(function, lambda x: x**2, [X], skip=["twice", "cost"])
    assert [row.name for row in report.wrong] == (["retain_graph"] if note else [])
    assert all(row.note.startswith(note) for row in report.wrong)


class IntoPlaces:
    """Right: its gradients belong to its last backward."""

    def __init__(self, W: Any) -> None:
        self.W, self.grads = W, [np.zeros_like(W)]

    def forward(self, x: Any) -> Any:
        self.x = x
        return x @ self.W

    def backward(self, dout: Any) -> Any:
        self.grads[0][...] = self.x.T @ dout
        return dout @ self.W.T


def test_an_object_writes_into_its_own_gradients() -> None:
    given = [X.numpy(), X.numpy().T.copy()]
    function = HandwrittenClass(IntoPlaces, {"W": "grads[0]"})
    report = check_function(function, lambda x, W: x @ W, given, only=["retain_graph"])
    assert report.passed, report
