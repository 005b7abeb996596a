"""Seed 001: products, elementwise functions and reductions; and the forms that the author tried and that were wrong."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nn_manual import ops
from nn_manual.check.judge.diagnosis import describe_difference

#: Half of the last digit that the transcript prints.
PRINTED = 5e-5


def grad_of(tensor: torch.Tensor) -> torch.Tensor:
    assert tensor.grad is not None
    return tensor.grad


def drawn(*shape: int, seed: int) -> torch.Tensor:
    """A leaf of normal numbers, where the transcript doesn't print what it drew."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), requires_grad=True)


def test_cells_41_to_46_dot_product() -> None:
    a = torch.tensor([1.0, 2, 3], requires_grad=True)
    b = torch.tensor([5.0, 4, 3], requires_grad=True)
    torch.autograd.backward(a @ b)
    grad_a, grad_b = ops.vjp(ops.matmul, a.detach(), b.detach())[1](1.0)
    assert grad_a.tolist() == [5, 4, 3]
    assert grad_b.tolist() == [1, 2, 3]
    assert torch.equal(grad_a, grad_of(a))
    assert torch.equal(grad_b, grad_of(b))


def test_cell_47_numerically() -> None:
    """All entries of a moved together, by a one-sided difference in float32: 12.0010, which is 12 and rounding."""
    a, b = torch.tensor([1.0, 2, 3]), torch.tensor([5.0, 4, 3])
    h = 0.001
    assert float(((a + h) @ b - a @ b) / h) == pytest.approx(12.0010, abs=PRINTED)
    grad_a, grad_b = ops.numerical_gradient(ops.matmul, a, b)
    assert grad_a.tolist() == [5, 4, 3]  # the complex step: exact
    assert grad_b.tolist() == [1, 2, 3]
    assert grad_a.sum() == 12
    central_a, _ = ops.numerical_gradient(lambda a, b: a @ b, a, b)
    np.testing.assert_allclose(central_a, [5, 4, 3], rtol=1e-9)


def test_cells_57_and_58_matrix_and_vector() -> None:
    a = torch.tensor([[1.0, 2, 3], [1.0, 5, 4]], requires_grad=True)
    b = torch.tensor([5.0, 4, 7], requires_grad=True)
    torch.autograd.backward((a @ b).sum())
    product, backward = ops.vjp(ops.matmul, a.detach(), b.detach())
    grad_a, grad_b = backward(torch.ones_like(product))
    assert grad_a.tolist() == [[5, 4, 7]] * 2
    assert grad_b.tolist() == [2, 7, 7]
    assert torch.equal(grad_a, grad_of(a))
    assert torch.equal(grad_b, grad_of(b))
    assert torch.equal(grad_a, torch.zeros_like(a) + b)  # the author's forms
    assert torch.equal(grad_b, a.sum(dim=0))


def test_cell_98_two_matrices() -> None:
    a = torch.tensor([[1.0, 2, 3], [1.0, 5, 4]], requires_grad=True)
    b = torch.tensor([[5.0, 4], [7.0, 4], [5.0, 2]], requires_grad=True)
    torch.autograd.backward((a @ b).sum())
    grad_a, grad_b = ops.chain_gradients(a.detach(), b.detach())
    assert grad_a.tolist() == [[9, 11, 7]] * 2
    assert grad_b.tolist() == [[2, 2], [7, 7], [7, 7]]
    assert torch.equal(grad_a, grad_of(a))
    assert torch.equal(grad_b, grad_of(b))


def test_cells_112_to_115_two_random_matrices() -> None:
    """The author's closed forms, for the sum, on matrices that the transcript doesn't print."""
    a, b = drawn(3, 4, seed=0), drawn(4, 2, seed=1)
    torch.autograd.backward((a @ b).sum())
    a_grad = torch.zeros_like(a) + b.sum(dim=1)
    b_grad = torch.zeros_like(b) + a.sum(dim=0).reshape(4, 1)
    grad_a, grad_b = ops.vjp(ops.matmul, a.detach(), b.detach())[1](torch.ones(3, 2))
    for ours, author, reference in ((grad_a, a_grad, grad_of(a)), (grad_b, b_grad, grad_of(b))):
        torch.testing.assert_close(ours, reference, rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(author, reference, rtol=1e-6, atol=1e-6)


def test_cells_163_and_166_logarithm_of_a_product() -> None:
    a, b = torch.tensor([2.0], requires_grad=True), torch.tensor([5.0], requires_grad=True)
    torch.autograd.backward(torch.log(a * b))
    c, backward_multiply = ops.vjp(ops.multiply, a.detach(), b.detach())
    _, backward_log = ops.vjp(ops.log, c)
    grad_c = backward_log(torch.ones(1))
    grad_a, grad_b = backward_multiply(grad_c)
    for ours, printed in ((grad_a, 0.5), (grad_b, 0.2), (grad_c, 0.1)):
        assert float(ours) == pytest.approx(printed, abs=PRINTED)
    assert torch.equal(grad_a, grad_of(a))
    assert torch.equal(grad_b, grad_of(b))
    assert torch.equal(grad_c * b, grad_a)


# Cell 160 prints, for counts * counts_sum_inv under tanh and a sum: the gradient of counts_sum_inv, whose forms follow.
GRAD_SUM_INV = np.array([[0.2524], [-2.0831], [0.9801], [0.5831], [1.7227], [0.8066], [-1.2251]], np.float32)


def test_cells_160_and_171_a_column_that_was_broadcast() -> None:
    counts, counts_sum_inv = drawn(7, 3, seed=0), drawn(7, 1, seed=1)
    probs = counts * counts_sum_inv
    probs.retain_grad()
    torch.autograd.backward(torch.tanh(probs).sum())
    product, backward_multiply = ops.vjp(ops.multiply, counts.detach(), counts_sum_inv.detach())
    answer, backward_tanh = ops.vjp(ops.tanh, product)
    _, backward_sum = ops.vjp(ops.sum, answer)
    grad_probs = backward_tanh(backward_sum(1.0))
    gradients = backward_multiply(grad_probs)
    for ours, leaf in zip((grad_probs, *gradients), (probs, counts, counts_sum_inv), strict=True):
        torch.testing.assert_close(ours, grad_of(leaf), rtol=1e-6, atol=1e-6)


def test_cell_171_is_right_but_for_its_shape() -> None:
    printed = np.array([0.2524, -2.0831, 0.9801, 0.5831, 1.7227, 0.8066, -1.2251], np.float32)
    words = "shape (7,), the reference has (7, 1): reshaped, the values are right"
    assert describe_difference(printed, GRAD_SUM_INV) == words


def test_cell_172_sums_added_where_products_are_summed() -> None:
    """counts.sum + grad.sum for (counts * grad).sum: no factor, no term, no structure; so where and how far."""
    printed = np.array([[1.3971], [0.9168], [4.2222], [0.7097], [5.1829], [3.6366], [1.5528]], np.float32)
    words = "7 of 7 positions: (0, 0), (1, 0), (2, 0), (3, 0), ...; worst 5.1829, the reference has 1.7227"
    assert describe_difference(printed, GRAD_SUM_INV) == words


def test_cell_175_product_of_two_random_matrices() -> None:
    a, b = drawn(4, 3, seed=0), drawn(4, 3, seed=1)
    torch.autograd.backward((a * b).sum())
    grad_a, grad_b = ops.vjp(ops.multiply, a.detach(), b.detach())[1](torch.ones(4, 3))
    assert torch.equal(grad_a, grad_of(a))
    assert torch.equal(grad_b, grad_of(b))


def test_cells_216_to_220_exponential() -> None:
    a = torch.tensor([3.0, 4.0, 5.0, 6.0], requires_grad=True)
    torch.autograd.backward(torch.exp(a).sum())
    c, backward = ops.vjp(ops.exp, a.detach())
    ours = backward(torch.ones(4))
    torch.testing.assert_close(ours, torch.tensor([20.0855, 54.5981, 148.4132, 403.4288]), rtol=0, atol=PRINTED)
    assert torch.equal(ours, grad_of(a))
    assert torch.equal(ours, c)  # the author's (c * a) / a, which is c


@pytest.mark.parametrize("as_power", [False, True])
def test_cells_189_to_192_reciprocal(as_power: bool) -> None:
    a = torch.tensor([3.0, 4.0, 5.0, 6.0], requires_grad=True)
    torch.autograd.backward((a**-1).sum())
    operation, operands = (ops.power, (a.detach(), -1)) if as_power else (ops.reciprocal, (a.detach(),))
    ours = ops.vjp(operation, *operands)[1](torch.ones(4))
    torch.testing.assert_close(ours, torch.tensor([-0.1111, -0.0625, -0.0400, -0.0278]), rtol=0, atol=PRINTED)
    torch.testing.assert_close(ours, grad_of(a), rtol=1e-6, atol=0)
    torch.testing.assert_close(ours, -1 / (a.detach() ** 2), rtol=1e-6, atol=0)  # sympy's -1/a**2


def test_cells_211_to_213_square_of_row_sums() -> None:
    a = drawn(10, 5, seed=0)
    b = a.sum(dim=1)
    b.retain_grad()
    torch.autograd.backward(torch.square(b).sum())
    row_sums, backward_sum = ops.vjp(ops.sum, a.detach(), axis=1)
    _, backward_square = ops.vjp(ops.square, row_sums)
    grad_b = backward_square(torch.ones(10))
    grad_a = backward_sum(grad_b)
    assert torch.equal(grad_b, grad_of(b))
    assert torch.equal(grad_a, grad_of(a))
    assert torch.equal(grad_a, grad_b.reshape(10, 1).expand(10, 5))  # as printed: each row one number, that of b


def test_cells_225_to_239_maximum_of_rows() -> None:
    a = drawn(4, 5, seed=0)
    torch.autograd.backward(a.max(dim=1, keepdim=True).values.sum())
    _, backward = ops.vjp(ops.max, a.detach(), axis=1, keepdims=True)
    ours = backward(torch.ones(4, 1))
    assert torch.equal(ours, grad_of(a))
    a_grad = torch.zeros_like(a)
    a_grad[range(4), a.max(dim=1).indices] = 4  # cell 238
    words = "4 times the reference: the size of axis 0"
    assert describe_difference(a_grad.numpy(), ours.numpy()) == words


class TestCells291To325:
    """logits = h @ W2 + b2, y = (logits**2).sum(): what the author tried for the gradient of h."""

    # Cells 325 and 324: torch's gradient of h, and the author's last try.
    PRINTED_GRAD = (
        [2.0517, -0.5638, -0.2785, -17.1280, 0.0617, 9.4932, -2.5261, -0.4681],
        [-0.5647, 10.6514, 15.2778, -12.9380, -9.1384, 11.4859, -6.3783, -14.5812],
        [1.7212, -3.3679, -0.4587, -6.5844, -2.1773, 1.9717, -1.8803, -0.4377],
        [0.3498, -17.9332, -28.2925, 25.3042, 18.3964, -21.0611, 12.6310, 27.4126],
    )
    PRINTED_TRY = (
        [-1.4525, 1.8144, 2.9197, -0.1245, -3.1377, -0.2453, -1.8573, -4.3149],
        [4.7695, 8.0364, 9.1417, 6.0975, 3.0843, 5.9767, 4.3647, 1.9072],
        [-1.0899, 2.1770, 3.2824, 0.2381, -2.7751, 0.1174, -1.4947, -3.9522],
        [-10.4359, -7.1690, -6.0637, -9.1079, -12.1212, -9.2287, -10.8407, -13.2983],
    )
    SUMS = "a term for each row plus one for each column: sums, where the reference has a product"

    @pytest.fixture
    def layer(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """h, W2, b2 and logits, their gradients computed by torch."""
        h, W2, b2 = drawn(4, 8, seed=0), drawn(8, 3, seed=1), drawn(3, seed=2)
        logits = h @ W2 + b2
        logits.retain_grad()
        torch.autograd.backward(logits.square().sum())
        return h, W2, b2, logits

    def test_the_hand_derived_gradients(self, layer: tuple[torch.Tensor, ...]) -> None:
        h, W2, b2, logits = layer
        product, backward_matmul = ops.vjp(ops.matmul, h.detach(), W2.detach())
        ours, backward_add = ops.vjp(ops.add, product, b2.detach())
        squares, backward_square = ops.vjp(ops.square, ours)
        _, backward_sum = ops.vjp(ops.sum, squares)
        grad_logits = backward_square(backward_sum(1.0))
        grad_product, grad_b2 = backward_add(grad_logits)
        grad_h, grad_W2 = backward_matmul(grad_product)
        assert torch.equal(ours, logits)
        for gradient, leaf in ((grad_logits, logits), (grad_h, h), (grad_W2, W2), (grad_b2, b2)):
            torch.testing.assert_close(gradient, grad_of(leaf), rtol=1e-6, atol=1e-5 * float(grad_of(leaf).abs().max()))

    def test_the_tries_are_rejected_and_say_what_is_wrong(self, layer: tuple[torch.Tensor, ...]) -> None:
        h, W2, _, logits = (tensor.detach() for tensor in layer)
        right = grad_of(layer[0]).numpy()

        dh = torch.zeros_like(h)
        dh += W2.sum(dim=1)  # cell 314
        assert describe_difference(dh.numpy(), right) == (
            "constant along axis (0,), along which the reference varies: summed or broadcast too early"
        )
        dh += logits.sum(dim=1).reshape(-1, 1)  # cell 323
        assert describe_difference(dh.numpy(), right) == self.SUMS
        dh = logits @ W2.T  # the product at last, without the slope of the square
        assert describe_difference(dh.numpy(), right) == (
            "1/2 of the reference: lost once of twice, or the slope of a square or divided by the root of the size of "
            "axis 0"
        )
        dh = 2 * logits @ W2.T
        assert describe_difference(dh.numpy(), right) == "equal up to rounding"

    def test_the_printed_try_against_the_printed_gradient(self) -> None:
        ours, right = np.array(self.PRINTED_TRY, np.float32), np.array(self.PRINTED_GRAD, np.float32)
        assert describe_difference(ours, right) == self.SUMS
