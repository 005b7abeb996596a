"""Seed 002: the two formulas of the matrix product, elementwise product and sum, and the reductions."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nn_manual import ops
from nn_manual.arrays import Array
from nn_manual.check.catalogue.operations import torch_gradients
from nn_manual.check.judge.diagnosis import describe_difference

TWOS = np.full((2, 2), 2.0)
ONES = np.ones((2, 1))


@pytest.mark.parametrize(
    ("a", "b", "const", "a_grad", "b_grad"),
    [
        pytest.param([[2.0]], [[1.0] * 4], 3.3, [[13.2]], [[6.6] * 4], id="cell 5: scalar, matrix"),
        pytest.param(TWOS, ONES, 1.0, [[1, 1], [1, 1]], [[4], [4]], id="cell 6: matrix, vector"),
        pytest.param(ONES.T, TWOS, 1.0, [[4, 4]], [[1, 1], [1, 1]], id="cell 8: vector, matrix"),
        pytest.param(TWOS, TWOS, 1.0, [[4, 4], [4, 4]], [[4, 4], [4, 4]], id="cell 9: matrix, matrix"),
    ],
)
def test_cells_5_to_9_matrix_products(
    a: list[list[float]], b: list[list[float]], const: float, a_grad: list[list[float]], b_grad: list[list[float]]
) -> None:
    operands = [np.array(a), np.array(b)]
    c, backward = ops.vjp(ops.matmul, *operands)
    c_grad = np.ones_like(c) * const
    ours = backward(c_grad)
    references = torch_gradients(ops.matmul, operands, {}, c_grad)
    author = (c_grad @ operands[1].T, operands[0].T @ c_grad)
    for gradient, reference, form, printed in zip(ours, references, author, (a_grad, b_grad), strict=True):
        np.testing.assert_allclose(gradient, printed, rtol=1e-15)
        np.testing.assert_allclose(gradient, reference, rtol=1e-15)
        np.testing.assert_array_equal(gradient, form)


A = np.array([[4.0, 5.0], [1.0, 3.0], [9.0, 0.0]])
B = np.full((3, 2), 2.0)
#: Both cells print an upstream gradient of 3: the add by its factor; the product, whose code has no factor, because it
#: was run three times, and torch adds up what backward computes.
UPSTREAM = np.full((3, 2), 3.0)


@pytest.mark.parametrize(
    ("operation", "a_grad", "b_grad"),
    [
        pytest.param(ops.multiply, [[6, 6]] * 3, [[12, 15], [3, 9], [27, 0]], id="cell 17"),
        pytest.param(ops.add, [[3, 3]] * 3, [[3, 3]] * 3, id="cell 29"),
    ],
)
def test_cells_17_to_29_elementwise(
    operation: ops.Operation, a_grad: list[list[float]], b_grad: list[list[float]]
) -> None:
    ours = ops.vjp(operation, A, B)[1](UPSTREAM)
    references = torch_gradients(operation, [A, B], {}, UPSTREAM)
    for gradient, reference, printed in zip(ours, references, (a_grad, b_grad), strict=True):
        np.testing.assert_array_equal(gradient, printed)
        np.testing.assert_array_equal(gradient, reference)


def test_cell_18_run_three_times_adds_up() -> None:
    a, b = torch.tensor(A, requires_grad=True), torch.tensor(B, requires_grad=True)
    c = a * b
    c.retain_grad()
    for _ in range(3):
        torch.autograd.backward(c.sum(), retain_graph=True)
    assert a.grad is not None
    assert c.grad is not None
    assert a.grad.tolist() == [[6, 6]] * 3
    assert c.grad.tolist() == UPSTREAM.tolist()


TIED = np.full((3, 2), 2.0)
WEIGHTS = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


def reduce_and_weigh(reduction: ops.Operation) -> tuple[Array, Array, Array]:
    """Gradients of (reduction(a) * c).sum() for a, for the reduction's answer and for c."""
    b, backward_reduction = ops.vjp(reduction, TIED)
    product, backward_multiply = ops.vjp(ops.multiply, b, WEIGHTS)
    _, backward_sum = ops.vjp(ops.sum, product)
    grad_b, grad_c = backward_multiply(backward_sum(1.0))
    return backward_reduction(grad_b), grad_b, grad_c


@pytest.mark.parametrize(
    ("reduction", "share"), [pytest.param(ops.sum, 1.0, id="cell 134"), pytest.param(ops.max, 1 / 6, id="cell 120")]
)
def test_cells_120_to_138_reductions(reduction: ops.Operation, share: float) -> None:
    a, c = torch.tensor(TIED, requires_grad=True), torch.tensor(WEIGHTS, requires_grad=True)
    b = getattr(torch, reduction.__name__)(a)
    b.retain_grad()
    torch.autograd.backward((b * c).sum())
    ours = reduce_and_weigh(reduction)
    assert ours[1] == 21 == WEIGHTS.sum()  # cells 138 and 39
    np.testing.assert_allclose(ours[0], np.full((3, 2), 21 * share), rtol=1e-15)
    for gradient, leaf in zip(ours, (a, b, c), strict=True):
        np.testing.assert_allclose(gradient, leaf.grad.numpy(), rtol=1e-15)


def test_cell_131_a_tied_maximum_is_shared_evenly() -> None:
    ours = ops.vjp(ops.max, TIED)[1](1.0)
    np.testing.assert_allclose(ours, np.full((3, 2), 0.1667), rtol=0, atol=5e-5)  # the last digit printed
    np.testing.assert_allclose(ours, torch_gradients(ops.max, [TIED], {}, np.array(1.0))[0], rtol=1e-15)


def test_the_derivative_of_a_sum_is_not_zeros() -> None:
    """The note above cell 134 says zeros_like(tensor); it is ones."""
    right = ops.vjp(ops.sum, TIED)[1](1.0)
    assert right.tolist() == [[1, 1]] * 3
    assert describe_difference(np.zeros_like(TIED), right) == "zero everywhere: the gradient was not passed on"
