"""SwiGLU beside torch's functions, and by hand."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from comparing import assert_equal

from nn_manual import Sequential, SwiGLU

#: Three sums of some ten products of numbers near 1, float64.
TOLERANCE = 1e-14


def test_torch_agrees() -> None:
    model, generator = Sequential(SwiGLU(4, 6), dtype="float64"), np.random.default_rng(0)
    model.param_arena[:] = generator.standard_normal(model.num_parameters)
    input, grad_output = generator.standard_normal((2, 2, 5, 4))
    param = {name: torch.from_numpy(array).requires_grad_() for name, array in model.state_dict().items()}
    leaf = torch.from_numpy(input).requires_grad_()
    gate, up, down = param.values()
    expected = (torch.nn.functional.silu(leaf @ gate.mT) * (leaf @ up.mT)) @ down.mT
    torch.autograd.backward(expected, torch.from_numpy(grad_output))
    output, saved = model.forward(input)
    assert_equal(output, expected.detach().numpy(), tolerance=TOLERANCE)
    assert leaf.grad is not None
    assert_equal(model.backward(saved, grad_output), leaf.grad.numpy(), tolerance=TOLERANCE)
    for name, parameter in param.items():
        assert_equal(vars(model.grad)[name], np.asarray(parameter.grad), tolerance=TOLERANCE)
    np.testing.assert_array_equal(model(input), output)


def test_the_names_and_shapes_are_those_of_llama() -> None:
    model = Sequential(SwiGLU(4, 6))
    assert model.parameter_shapes() == {
        "0.gate_proj.weight": (6, 4),
        "0.up_proj.weight": (6, 4),
        "0.down_proj.weight": (4, 6),
    }


def test_a_case_by_hand() -> None:
    """silu(2) times 3, times 5; a gate that is far below 0 is closed."""
    model = Sequential(SwiGLU(2, 1), dtype="float64")
    model.load_state_dict(
        {
            "0.gate_proj.weight": np.array([[1.0, 0.0]]),
            "0.up_proj.weight": np.array([[0.0, 1.0]]),
            "0.down_proj.weight": np.array([[5.0], [0.0]]),
        }
    )
    output = model(np.array([[2.0, 3.0], [-800.0, 3.0]]))
    np.testing.assert_allclose(output, [[30 / (1 + np.exp(-2)), 0], [0, 0]], rtol=1e-15)


@pytest.mark.parametrize("sizes", [(0, 1), (1, 0)])
def test_sizes_below_one(sizes: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=r"^(in|hidden)_features must be at least 1, not 0$"):
        SwiGLU(*sizes)


def test_an_input_that_does_not_fit() -> None:
    words = "SwiGLU takes in_features=4 in the last dimension, the input has shape (2, 3)"
    with pytest.raises(ValueError, match=f"^{re.escape(words)}$"):
        SwiGLU(4, 6).output_shape((2, 3))


def test_a_gradient_that_would_broadcast_is_refused() -> None:
    model = Sequential(SwiGLU(4, 6), dtype="float64")
    _, saved = model.forward(np.ones((3, 4)))
    with pytest.raises(ValueError, match=r"its output's shape \(3, 4\), not \(1, 4\)"):
        model.backward(saved, np.ones((1, 4)))
