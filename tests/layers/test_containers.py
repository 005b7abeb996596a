"""Layers that are made of layers: Residual against torch and differences, the names and the memory of children."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from comparing import DIFFERENCE_TOLERANCE, TOLERANCES, assert_equal, central_differences

from nn_manual import Layer, Linear, ReLU, Residual, Sequential, Tanh
from nn_manual.arrays import Array
from nn_manual.layers.composite import descendants

each_dtype = pytest.mark.parametrize("dtype", TOLERANCES)


@dataclass(eq=False)
class Gate(Layer):
    """Two fields and a list: the names that children get."""

    value: Layer
    gates: list[Layer]
    width: int = 3

    def forward(self, input: Array) -> tuple[Array, Any]:
        raise NotImplementedError

    def backward(self, saved: Any, grad_output: Array) -> Array:
        raise NotImplementedError


def test_children_have_torchs_names() -> None:
    value, first, second = Linear(3, 3), Tanh(), Residual(Linear(3, 3), ReLU())
    gate = Gate(value, [first, second])
    assert gate.children() == {"value": value, "gates.0": first, "gates.1": second}
    assert [name for name, _ in descendants(gate)] == ["value", "gates.0", "gates.1", "gates.1.0", "gates.1.1"]
    assert list(gate.parameter_shapes()) == ["value.weight", "value.bias", "gates.1.0.weight", "gates.1.0.bias"]
    assert gate.num_parameters == 24
    assert Linear(3, 3).children() == {}


def test_children_see_the_memory_of_the_model() -> None:
    linear = Linear(2, 2)
    model = Sequential(Tanh(), Residual(Tanh(), linear))
    assert list(model.state_dict()) == ["1.1.weight", "1.1.bias"]
    model.param_arena[:] = np.arange(6)
    np.testing.assert_array_equal(linear.param.weight, [[0, 1], [2, 3]])
    np.testing.assert_array_equal(model.layers[1].param.__dict__["1.bias"], [4, 5])
    assert np.shares_memory(linear.grad.bias, model.grad_arena)


def test_a_residual_of_nothing() -> None:
    with pytest.raises(ValueError, match="layers must be at least one"):
        Residual()


def test_a_branch_must_keep_the_shape() -> None:
    words = r"Residual adds its input of shape \(4, 3\) to its layers' output of shape \(4, 1\)"
    with pytest.raises(ValueError, match=words):
        Residual(Linear(3, 1)).output_shape((4, 3))
    model = Sequential(Residual(Linear(3, 1)))
    words = rf"^0 \(Residual\){words.removeprefix('Residual')}$"
    with pytest.raises(ValueError, match=words):
        model.forward(np.ones((4, 3), np.float32))
    with pytest.raises(ValueError, match=words):
        model(np.ones((4, 3), np.float32))
    with pytest.raises(ValueError, match=r"Linear takes in_features=2"):
        Residual(Linear(3, 3), Linear(2, 3)).output_shape((4, 3))


def test_by_hand() -> None:
    model = Sequential(Residual(Linear(1, 1)), dtype="float64")
    model.load_state_dict({"0.0.weight": np.array([[3.0]]), "0.0.bias": np.array([0.5])})
    output, saved = model.forward(np.array([[2.0], [-1.0]]))
    np.testing.assert_array_equal(output, [[8.5], [-3.5]])  # x + 3x + 0.5
    grad_input = model.backward(saved, np.array([[1.0], [10.0]]))
    np.testing.assert_array_equal(grad_input, [[4.0], [40.0]])  # 1 + 3 of each
    np.testing.assert_array_equal(model.grad_arena, [2 - 10, 11])


@each_dtype
def test_torch_agrees(dtype: str) -> None:
    model = Sequential(Residual(Linear(3, 4), Tanh(), Residual(ReLU()), Linear(4, 3)), dtype=dtype, seed=1)
    generator = np.random.default_rng(0)
    input, grad_output = (generator.standard_normal((5, 3)).astype(dtype) for _ in range(2))
    output, saved = model.forward(input)
    grad_input = model.backward(saved, grad_output)

    x = torch.from_numpy(input.copy()).requires_grad_()
    parameters = {name: torch.from_numpy(array.copy()).requires_grad_() for name, array in model.state_dict().items()}
    hidden = torch.tanh(x @ parameters["0.0.weight"].T + parameters["0.0.bias"])
    hidden = hidden + torch.relu(hidden)
    expected = x + hidden @ parameters["0.3.weight"].T + parameters["0.3.bias"]
    torch.autograd.backward(expected, torch.from_numpy(grad_output))
    assert_equal(output, expected.detach().numpy())
    assert x.grad is not None
    assert_equal(grad_input, x.grad.numpy())
    for name, parameter in parameters.items():
        assert parameter.grad is not None
        assert_equal(vars(model.grad)[name], parameter.grad.numpy())


def test_differences_agree() -> None:
    model = Sequential(Residual(Tanh(), Linear(3, 3)), dtype="float64", seed=2)
    input, grad_output = np.random.default_rng(0).standard_normal((2, 4, 3))
    _, saved = model.forward(input)
    grad_input = model.backward(saved, grad_output)
    expected = central_differences(lambda input: (model.forward(input)[0] * grad_output).sum(), input)
    assert_equal(grad_input, expected, tolerance=DIFFERENCE_TOLERANCE)


def test_a_layer_in_two_places_is_refused_wherever_it_stands() -> None:
    linear = Linear(3, 3)
    with pytest.raises(ValueError, match=r"layer 1\.0 is the same object as layer 0\.1"):
        Sequential(Residual(Tanh(), linear), Residual(linear))
    model = Sequential(Residual(linear))
    with pytest.raises(ValueError, match=r"layer 1\.0\.0, Linear, is in another Sequential already"):
        Sequential(Tanh(), Residual(Residual(linear)))
    del model
    Sequential(Tanh(), Residual(linear))


def test_a_residual_takes_what_its_first_layer_takes() -> None:
    class Small(Tanh):
        def check_values(self, input: Array) -> None:
            if np.abs(input).max() > 1:
                raise ValueError(f"Small takes no {np.abs(input).max()}")

    model = Sequential(Residual(Small(), Tanh()), Linear(3, 3))
    model.check_values(np.ones((2, 3)))
    with pytest.raises(ValueError, match=r"Small takes no 2\.0"):
        model.check_values(np.full((2, 3), 2.0))
