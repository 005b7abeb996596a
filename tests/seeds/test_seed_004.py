"""Seed 004: f = trace(z.T z) with z = max(x W, 0) - y, whose three gradients by hand equal torch's bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nn_manual import ops
from nn_manual.ops.operation import Tensor

#: The last digit printed, halved: four decimals.
PRINTED = 5e-5
#: What float32 rounds beside it, 4 eps: other processors draw and add these numbers with other last bits.
ROUNDING = 4 * 2.0**-23

PRINTED_W = [
    [18.2980, 2.7573, 2.3914, -0.1974],
    [11.0817, 6.6428, 2.5163, -20.3225],
    [-8.6662, 3.4506, -1.8979, -3.3608],
    [-21.1681, -6.6739, -1.0693, 27.0278],
]
PRINTED_X = [
    [1.1002, 0.0860, 5.3377, 0.2788],
    [0.9583, 10.4633, -13.5234, -16.3639],
    [-0.8712, -0.9272, -0.7764, 2.0790],
    [-1.4504, 5.6914, 0.7613, -0.9693],
    [-1.2892, -3.4714, -1.9788, 4.8091],
    [-4.0523, -4.3127, -3.6114, 9.6703],
    [-0.7312, -0.7782, -0.6516, 1.7449],
    [-0.8191, -0.8718, -0.7300, 1.9547],
    [1.0350, 2.9930, -6.6743, -7.5333],
    [-2.4616, -2.4243, -2.1164, 5.7128],
]
PRINTED_Y = [  # the transcript cuts the rest off
    [2.8885e00, 4.1639e00, 3.4134e00, 3.0501e00],
    [-1.0589e01, -2.7045e00, -2.1849e00, -1.7039e-01],
    [6.5523e-01, -1.5214e00, -3.1982e00, -1.5687e00],
    [-1.5009e00, -3.8551e00, 4.9843e-01, 1.2764e00],
]
PRINTED_MASK = ["1001", "1100", "0001", "0110", "0011", "0001", "0001", "0001", "1000", "0011"]

Leaves = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


@pytest.fixture(name="leaves")
def drawn_leaves() -> Leaves:
    """Cell 2: x, W, y from torch's seed 0."""
    generator = torch.Generator().manual_seed(0)
    x, W, y = (torch.randn(shape, generator=generator, requires_grad=True) for shape in ((10, 4), (4, 4), (10, 4)))
    return x, W, y


def torch_trace(x: torch.Tensor, W: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Cell 15."""
    z = torch.maximum(torch.matmul(x, W), torch.tensor(0)) - y
    return torch.trace(torch.matmul(z.T, z))


def by_hand(x: Tensor, W: Tensor, y: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor]]:
    """f, and its gradients for x, W and y, one operation at a time."""
    product, backward_matmul = ops.vjp(ops.matmul, x, W)
    positive, backward_relu = ops.vjp(ops.relu, product)
    z, backward_subtract = ops.vjp(ops.subtract, positive, y)
    z_transposed, backward_transpose = ops.vjp(ops.transpose, z)
    square, backward_square = ops.vjp(ops.matmul, z_transposed, z)
    f, backward_trace = ops.vjp(ops.trace, square)

    grad_z_transposed, grad_z = backward_square(backward_trace(1.0))
    grad_positive, grad_y = backward_subtract(grad_z + backward_transpose(grad_z_transposed))
    grad_x, grad_W = backward_matmul(backward_relu(grad_positive))
    return f, (grad_x, grad_W, grad_y)


def test_cells_15_to_21_the_numbers_printed(leaves: Leaves) -> None:
    f, gradients = by_hand(*(leaf.detach() for leaf in leaves))
    assert float(f) == pytest.approx(99.9048, abs=PRINTED + ROUNDING * 100)
    grad_x, grad_W, grad_y = gradients
    torch.testing.assert_close(grad_x, torch.tensor(PRINTED_X), rtol=0, atol=PRINTED + ROUNDING * 17)
    torch.testing.assert_close(grad_W, torch.tensor(PRINTED_W), rtol=0, atol=PRINTED + ROUNDING * 28)
    torch.testing.assert_close(grad_y[:4], torch.tensor(PRINTED_Y), rtol=PRINTED, atol=0)  # five digits each


def test_cell_36_bit_for_bit(leaves: Leaves) -> None:
    f = torch_trace(*leaves)
    torch.autograd.backward(f)
    ours, gradients = by_hand(*(leaf.detach() for leaf in leaves))
    assert torch.equal(ours, f)
    for gradient, leaf in zip(gradients, leaves, strict=True):
        assert leaf.grad is not None
        assert torch.equal(gradient, leaf.grad)


def test_cells_28_to_34_the_authors_three_lines_bit_for_bit(leaves: Leaves) -> None:
    x, W, y = (leaf.detach() for leaf in leaves)
    product, backward_relu = ops.vjp(ops.relu, x @ W)
    z = product - y
    d_re = backward_relu(torch.ones_like(z))
    assert ["".join(str(int(entry)) for entry in row) for row in d_re] == PRINTED_MASK
    hand_dw = 2 * torch.matmul(x.T, z * d_re)
    hand_dx = torch.matmul(2 * z * d_re, W.T)
    hand_dy = -2 * z
    _, gradients = by_hand(x, W, y)
    for gradient, author in zip(gradients, (hand_dx, hand_dw, hand_dy), strict=True):
        assert torch.equal(gradient, author)


def test_the_zero_of_the_transcript_as_an_operand(leaves: Leaves) -> None:
    """Cell 15 takes the maximum with a tensor of one 0: as long as nothing is tied, relu's gradient."""
    x, W, _ = (leaf.detach() for leaf in leaves)
    upstream = torch.randn(10, 4, generator=torch.Generator().manual_seed(1))
    answer, backward = ops.vjp(ops.maximum, x @ W, 0)
    relu, backward_relu = ops.vjp(ops.relu, x @ W)
    assert torch.equal(answer, relu)
    assert torch.equal(backward(upstream), backward_relu(upstream))


def test_on_numpy_arrays(leaves: Leaves) -> None:
    """The same code, another library: another order of adding, so equal to rounding."""
    torch.autograd.backward(torch_trace(*leaves))
    f, gradients = by_hand(*(leaf.detach().numpy() for leaf in leaves))
    assert f == pytest.approx(99.9048, abs=PRINTED)
    for gradient, leaf in zip(gradients, leaves, strict=True):
        assert leaf.grad is not None
        bound = 1e-5 * float(leaf.grad.abs().max())  # float32's tolerance
        np.testing.assert_allclose(gradient, leaf.grad.numpy(), rtol=0, atol=bound)
