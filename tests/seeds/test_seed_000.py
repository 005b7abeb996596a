"""Seed 000: sums of products of two and of four matrices, in the author's closed forms, bit for bit torch's."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nn_manual import ops
from nn_manual.check.judge.diagnosis import describe_difference

Four = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


def matrix(rows: list[list[float]]) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float32, requires_grad=True)


def grad_of(tensor: torch.Tensor) -> torch.Tensor:
    assert tensor.grad is not None
    return tensor.grad


def test_cell_2_a_linear_function() -> None:
    """The cell reads memory that was never written; the gradient is the same for every x."""
    x = torch.randn(2, generator=torch.Generator().manual_seed(0), requires_grad=True)
    torch.autograd.backward(13 * x[0] + 7 * x[1] + 1)
    first, backward_first = ops.vjp(ops.index, x.detach(), key=0)
    second, backward_second = ops.vjp(ops.index, x.detach(), key=1)
    left, backward_left = ops.vjp(ops.multiply, 13, first)
    right, backward_right = ops.vjp(ops.multiply, 7, second)
    both, backward_both = ops.vjp(ops.add, left, right)
    _, backward_one = ops.vjp(ops.add, both, 1)
    grad_left, grad_right = backward_both(backward_one(1.0))
    ours = backward_first(backward_left(grad_left)) + backward_second(backward_right(grad_right))
    assert ours.tolist() == [13, 7]
    assert torch.equal(ours, grad_of(x))


def test_cell_3_the_right_factor() -> None:
    x = torch.randn((2, 3), generator=torch.Generator().manual_seed(0), requires_grad=True)
    y = torch.tensor([[1.0, 2], [3, 4]])
    torch.autograd.backward(y.mm(x).sum())
    product, backward_matmul = ops.vjp(ops.matmul, y, x.detach())
    _, backward_sum = ops.vjp(ops.sum, product)
    _, grad_x = backward_matmul(backward_sum(1.0))
    assert grad_x.tolist() == [[4, 4, 4], [6, 6, 6]]
    assert torch.equal(grad_x, grad_of(x))


def two_factors() -> tuple[torch.Tensor, torch.Tensor]:
    """y, x of cells 109 to 128, their gradients computed."""
    x, y = matrix([[7, 6, 5, 9], [4, 3, 2, 8]]), matrix([[1, 2], [3, 4], [5, 6]])
    torch.autograd.backward(y.mm(x).sum())
    return y, x


def test_cells_113_to_128_both_factors() -> None:
    y, x = two_factors()
    grad_y, grad_x = ops.chain_gradients(y.detach(), x.detach())
    assert grad_y.tolist() == [[27, 17], [27, 17], [27, 17]]
    assert grad_x.tolist() == [[9, 9, 9, 9], [12, 12, 12, 12]]
    assert torch.equal(grad_y, grad_of(y))
    assert torch.equal(grad_x, grad_of(x))

    assert torch.equal((torch.ones([x.shape[1], 1]) @ y.sum(dim=0, keepdim=True)).T, grad_x)
    assert torch.equal((x.sum(dim=1, keepdim=True) @ torch.ones([1, y.shape[0]])).T, grad_y)


def test_cell_109_a_function_linear_in_x_is_its_gradient_times_x() -> None:
    y, x = two_factors()
    _, grad_x = ops.chain_gradients(y.detach(), x.detach())
    assert (y @ x).sum() == (grad_x * x).sum() == (grad_of(x) * x).sum()


@pytest.fixture(name="four")
def four_factors() -> Four:
    """n, z, y, x of cell 196, their gradients computed."""
    x = matrix([[2, 3], [1, 4]])
    y = matrix([[3, 4], [5, 6], [7, 8]])
    z = matrix([[10, 20, 30], [40, 60, 70], [80, 90, 5], [15, 30, 45]])
    n = matrix([[11, 22, 33, 44], [1, 2, 3, 4]])
    torch.autograd.backward(n.mm(z.mm(y.mm(x))).sum())
    return n, z, y, x


PRINTED = (
    [[3700, 9950, 8125, 5550]] * 2,
    [[420, 660, 900], [840, 1320, 1800], [1260, 1980, 2700], [1680, 2640, 3600]],
    [[23400] * 2, [31800] * 2, [21900] * 2],
    [[76500] * 2, [91920] * 2],
)


def closed_forms(n: torch.Tensor, z: torch.Tensor, y: torch.Tensor, x: torch.Tensor) -> Four:
    """Cells 304, 303, 324 and 322, as written."""
    return (
        ((z @ y @ x).sum(dim=1, keepdim=True) @ torch.ones([1, n.shape[0]])).T,
        (((y @ x).sum(dim=1, keepdim=True) @ torch.ones([1, z.shape[0]])) @ n.sum(dim=0).diag()).T,
        (((x).sum(dim=1, keepdim=True) @ torch.ones([1, y.shape[0]])) @ (n @ z).sum(dim=0).diag()).T,
        (torch.ones([x.shape[1], x.shape[0]]) @ (n @ z @ y).sum(dim=0).diag()).T,
    )


def test_cells_196_to_326_four_factors_bit_for_bit(four: Four) -> None:
    """Cell 326, "Todos coinciden": torch's, the closed forms and ours, and the numbers printed."""
    ours = ops.chain_gradients(*(factor.detach() for factor in four))
    for gradient, closed, factor, printed in zip(ours, closed_forms(*four), four, PRINTED, strict=True):
        assert gradient.tolist() == printed
        assert torch.equal(gradient, grad_of(factor))
        assert torch.equal(gradient, closed)
    for gradient, printed in zip(ops.chain_gradients(*(f.detach().numpy() for f in four)), PRINTED, strict=True):
        np.testing.assert_array_equal(gradient, printed)


def test_four_factors_under_any_upstream_gradient(four: Four) -> None:
    """What the closed forms can't do: they are for the sum, whose upstream gradient is ones."""
    output = torch.linalg.multi_dot(four)
    whole = torch.tensor([[3.0, -2.0], [-5.0, 7.0]])  # whole numbers: every order of adding is exact
    random = torch.randn(output.shape, generator=torch.Generator().manual_seed(0))
    for upstream, exact in ((whole, True), (-whole, True), (random, False)):
        references = torch.autograd.grad(output, four, upstream, retain_graph=True)
        ours = ops.chain_gradients(*(factor.detach() for factor in four), grad_output=upstream)
        for gradient, reference in zip(ours, references, strict=True):
            if exact:
                assert torch.equal(gradient, reference)
            else:
                torch.testing.assert_close(gradient, reference, rtol=0, atol=1e-5 * float(reference.abs().max()))


def test_cells_286_and_287_the_steps_on_the_way_are_not_yet_the_gradients(four: Four) -> None:
    _, _, y, x = four
    first_y = (x.sum(dim=1, keepdim=True) @ torch.ones([1, y.shape[0]])).detach().numpy()
    assert first_y.tolist() == [[5, 5, 5], [5, 5, 5]]
    grad_y, grad_x = grad_of(y).numpy(), grad_of(x).numpy()
    assert describe_difference(first_y, grad_y) == "shape (2, 3), the reference has (3, 2)"
    assert describe_difference(first_y.T.copy(), grad_y) == (
        "constant along axis (0, 1), along which the reference varies: summed or broadcast too early"
    )
    first_x = torch.ones([1, x.shape[0]]).numpy()
    assert describe_difference(first_x, grad_x) == "shape (1, 2), the reference has (2, 2)"
