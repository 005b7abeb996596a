"""What softmax, sigmoid and tanh return inside of a layer is moved while rounding is measured, and nothing else is."""

from __future__ import annotations

import pytest
import torch

from nn_manual import CausalSelfAttention
from nn_manual.check.catalogue.cases import layer_cases
from nn_manual.check.step.moved_inside import MovedInside
from nn_manual.check.twin.attention import CausalSelfAttention as Reference
from nn_manual.check.twin.model import reference_settings


def doubled(tensor: torch.Tensor) -> torch.Tensor:
    return 2 * tensor


def test_the_result_of_a_softmax_is_moved_and_no_other() -> None:
    logits, grad = torch.tensor([0.0, 1, 3]), torch.tensor([1.0, -2, 5])
    expected = torch.softmax(logits, 0)
    with MovedInside(doubled):
        probabilities, logarithms = torch.softmax(logits, 0), torch.log_softmax(logits, 0)
    assert torch.equal(probabilities, 2 * expected)
    assert torch.equal(logarithms, torch.log_softmax(logits, 0))
    assert torch.equal(torch.softmax(logits, 0), expected)
    leaf = logits.clone().requires_grad_()
    with MovedInside(doubled):
        output = torch.softmax(leaf, 0)
    (grad_leaf,) = torch.autograd.grad(output, leaf, grad)  # it reads the moved probabilities
    moved = 2 * expected
    torch.testing.assert_close(grad_leaf, moved * (grad - (grad * moved).sum()))


def test_the_softmax_inside_of_torchs_own_attention_is_moved() -> None:
    reference = Reference(2, 1, dropout=0.0, bias=True)
    with torch.no_grad():
        reference.out_proj.bias.fill_(3)
        with MovedInside(torch.zeros_like):
            output = reference(torch.randn(1, 4, 2))
    assert torch.equal(output, torch.full((1, 4, 2), 3.0))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_gates_inside_of_torchs_own_lstm_are_moved(dtype: torch.dtype) -> None:
    """In float32 they are inside of one operation of oneDNN's."""
    reference, input = torch.nn.LSTM(2, 3, dtype=dtype), torch.randn(4, 1, 2, dtype=dtype)
    assert torch.backends.mkldnn.enabled
    with reference_settings(), MovedInside(torch.zeros_like) as inside:
        output, _ = reference(input)
    assert torch.equal(output, torch.zeros(4, 1, 3, dtype=dtype))  # o * tanh(c), and o is 0
    assert inside.num_moved == 4 * 5  # four gates and the cell, at each time
    assert torch.backends.mkldnn.enabled


def test_what_rounding_leaves_of_a_saturated_softmax_is_no_mistake() -> None:
    """Of scores in the millions some probabilities are so near to 1 that their rounding is all that is left of some
    gradients, in our float64 as in torch's.
    """
    layer, shape = CausalSelfAttention.examples()[0]
    assert all(case.failure is None for case in layer_cases(layer, shape, "float64", seed=0, upstreams=("tied",)))
