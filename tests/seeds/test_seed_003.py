"""Seed 003: backward with an upstream gradient of one's choosing, from numbers to vectors."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch

from nn_manual import ops


def two_x_plus_x_squared(x: torch.Tensor, gradient: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """y = 2*x + x**2 and the gradient for x."""
    double, backward_multiply = ops.vjp(ops.multiply, 2, x)
    square, backward_power = ops.vjp(ops.power, x, 2)
    y, backward_add = ops.vjp(ops.add, double, square)
    grad_double, grad_square = backward_add(gradient)
    return y, backward_multiply(grad_double) + backward_power(grad_square)


@pytest.mark.parametrize("shape", [(), (1,)])
@pytest.mark.parametrize(("upstream", "printed"), [(1.0, 4.0), (100.0, 400.0)])
def test_cells_150_to_157_one_number(shape: tuple[int, ...], upstream: float, printed: float) -> None:
    x = torch.full(shape, 1.0, requires_grad=True)
    gradient = torch.full(shape, upstream)
    torch.autograd.backward(2 * x + x**2, gradient)
    y, ours = two_x_plus_x_squared(x.detach(), gradient)
    assert torch.equal(y, torch.full(shape, 3.0))
    assert torch.equal(ours, torch.full(shape, printed))
    assert x.grad is not None
    assert torch.equal(ours, x.grad)
    assert torch.equal(ours, gradient * (2 + 2 * x))  # the author's manual result


@pytest.mark.parametrize(("upstream", "printed"), [(1.0, [2, 4]), (100.0, [200, 400])])
def test_cells_158_to_160_two_entries_to_a_number(upstream: float, printed: list[float]) -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    torch.autograd.backward(2 * x[0] + x[1] ** 2, torch.tensor(upstream))
    first, backward_first = ops.vjp(ops.index, x.detach(), key=0)
    second, backward_second = ops.vjp(ops.index, x.detach(), key=1)
    double, backward_multiply = ops.vjp(ops.multiply, 2, first)
    square, backward_power = ops.vjp(ops.power, second, 2)
    _, backward_add = ops.vjp(ops.add, double, square)
    grad_double, grad_square = backward_add(upstream)
    ours = backward_first(backward_multiply(grad_double)) + backward_second(backward_power(grad_square))
    assert ours.tolist() == printed
    assert x.grad is not None
    assert torch.equal(ours, x.grad)


@pytest.mark.parametrize("upstream", [1.0, 100.0])
def test_cells_161_to_163_sum(upstream: float) -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    torch.autograd.backward(x.sum(), torch.tensor(upstream))
    ours = ops.vjp(ops.sum, x.detach())[1](upstream)
    assert ours.tolist() == [upstream, upstream]
    assert x.grad is not None
    assert torch.equal(ours, x.grad)


A, X = [[1.0, 2.0]], [[3.0], [5.0]]


@pytest.mark.parametrize(("upstream", "printed"), [(1.0, [[1], [2]]), (100.0, [[100], [200]])])
def test_cells_218_to_220_matrix_product(upstream: float, printed: list[list[float]]) -> None:
    a, x = torch.tensor(A), torch.tensor(X, requires_grad=True)
    torch.autograd.backward(torch.mm(a, x), torch.tensor([[upstream]]))
    y, backward = ops.vjp(ops.matmul, a, x.detach())
    assert y.tolist() == [[13]]
    _, ours = backward(torch.tensor([[upstream]]))
    assert ours.tolist() == printed
    assert x.grad is not None
    assert torch.equal(ours, x.grad)


@pytest.mark.parametrize("gradient", [[[100.0, 300.0]], [[100.0], [300.0]]])
def test_cells_221_and_222_a_gradient_of_another_shape_is_refused(gradient: list[list[float]]) -> None:
    """The transcript prints 400 and 800: its torch broadcast y to the gradient's shape, and so summed the gradient.
    Today's torch refuses, and so do we, with both shapes.
    """
    a, x = torch.tensor(A), torch.tensor(X, requires_grad=True)
    upstream = torch.tensor(gradient)
    y, backward = ops.vjp(ops.matmul, a, x.detach())
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        torch.autograd.backward(torch.mm(a, x), upstream)
    message = f"matmul: the upstream gradient has shape {tuple(upstream.shape)}, the answer (1, 1)"
    with pytest.raises(ValueError, match=re.escape(message)):
        backward(upstream)

    broadcast, backward_broadcast = ops.vjp(ops.broadcast_to, y, shape=tuple(upstream.shape))  # said, not silent
    assert broadcast.shape == upstream.shape
    _, ours = backward(backward_broadcast(upstream))
    assert ours.tolist() == [[400], [800]]


def test_cell_167_a_vector_needs_an_upstream_gradient() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        torch.autograd.backward(2 * x)
    _, backward = ops.vjp(ops.multiply, 2, x.detach())
    with pytest.raises(ValueError, match=re.escape("the upstream gradient has shape (), the answer (2,)")):
        backward(1.0)


@pytest.mark.parametrize(("gradient", "printed"), [([1.0, 1.0], [3.14, 3.14]), ([10.0, 100.0], [31.4, 314.0])])
def test_cells_168_and_169_vector_to_vector(gradient: list[float], printed: list[float]) -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    torch.autograd.backward(3.14 * x, torch.tensor(gradient))
    ours = ops.vjp(ops.multiply, 3.14, x.detach())[1](torch.tensor(gradient))
    torch.testing.assert_close(ours, torch.tensor(printed), rtol=0, atol=5e-5)  # the last digit printed
    assert x.grad is not None
    assert torch.equal(ours, x.grad)
