"""Branches: Sum and Concat against torch and differences, and what doesn't fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from comparing import DIFFERENCE_TOLERANCE, TOLERANCES, assert_equal, central_differences

from nn_manual import Concat, Embedding, Identity, Layer, Linear, MSELoss, ReLU, Sequential, Sum, Tanh, check_gradients
from nn_manual.arrays import Array

each_dtype = pytest.mark.parametrize("dtype", TOLERANCES)


def ran(model: Sequential, dtype: str) -> tuple[list[Array], list[torch.Tensor]]:
    """Input, output, grad_output and grad_input of a run; and as torch tensors, the input and the parameters."""
    generator = np.random.default_rng(0)
    input = generator.standard_normal((5, 3)).astype(dtype)
    output, saved = model.forward(input)
    grad_output = generator.standard_normal(output.shape).astype(dtype)
    grad_input = model.backward(saved, grad_output)
    arrays = [input, *model.state_dict().values()]
    return [output, grad_output, grad_input], [torch.from_numpy(each.copy()).requires_grad_() for each in arrays]


def assert_torch_agrees(
    model: Sequential, ours: list[Array], output: torch.Tensor, tensors: list[torch.Tensor]
) -> None:
    torch.autograd.backward(output, torch.from_numpy(ours[1]))
    assert_equal(ours[0], output.detach().numpy())
    for gradient, tensor in zip([ours[2], *vars(model.grad).values()], tensors, strict=True):
        assert tensor.grad is not None
        assert_equal(gradient, tensor.grad.numpy())


@each_dtype
def test_torch_agrees_on_a_sum(dtype: str) -> None:
    model = Sequential(Sum([Sequential(Linear(3, 4), Tanh()), Linear(3, 4, bias=False)]), dtype=dtype, seed=1)
    assert list(model.state_dict()) == ["0.branches.0.0.weight", "0.branches.0.0.bias", "0.branches.1.weight"]
    ours, tensors = ran(model, dtype)
    x, weight, bias, shortcut = tensors
    assert_torch_agrees(model, ours, torch.tanh(x @ weight.T + bias) + x @ shortcut.T, tensors)


@each_dtype
def test_torch_agrees_on_a_concat(dtype: str) -> None:
    model = Sequential(Concat([Linear(3, 2, bias=False), Identity(), Linear(3, 1)]), dtype=dtype, seed=1)
    ours, tensors = ran(model, dtype)
    x, first, weight, bias = tensors
    assert_torch_agrees(model, ours, torch.cat([x @ first.T, x, x @ weight.T + bias], 1), tensors)


@pytest.mark.parametrize(("dim", "shape"), [(1, (2, 6, 3)), (-1, (2, 3, 6)), (2, (2, 3, 6)), (-2, (2, 6, 3))])
def test_outputs_are_joined_along_the_dimension(dim: int, shape: tuple[int, ...]) -> None:
    layer = Concat([Identity(), Tanh()], dim)
    model = Sequential(layer, dtype="float64")
    input, grad = np.random.default_rng(0).standard_normal((2, 2, 3, 3))
    output, saved = model.forward(input)
    assert output.shape == layer.output_shape((2, 3, 3)) == shape
    np.testing.assert_array_equal(output, np.concatenate([input, np.tanh(input)], dim))
    grad_output = np.concatenate([grad, 10 * grad], dim)
    assert_equal(model.backward(saved, grad_output), grad + 10 * grad * (1 - np.tanh(input) ** 2))


def test_a_sum_by_hand() -> None:
    model = Sequential(Sum([Linear(1, 1), Identity(), Identity()]), dtype="float64")
    model.load_state_dict({"0.branches.0.weight": np.array([[3.0]]), "0.branches.0.bias": np.array([0.5])})
    output, saved = model.forward(np.array([[2.0], [-1.0]]))
    np.testing.assert_array_equal(output, [[10.5], [-4.5]])  # 3x + 0.5 + x + x
    np.testing.assert_array_equal(model.backward(saved, np.array([[1.0], [10.0]])), [[5.0], [50.0]])


@pytest.mark.parametrize(
    "layer",
    [
        Sum([Sequential(Tanh(), Linear(3, 3)), Identity()]),
        Concat([Tanh(), Sum([Linear(3, 2), Sequential(Linear(3, 2), Tanh())])]),
    ],
)
def test_differences_agree(layer: Layer) -> None:
    model = Sequential(layer, dtype="float64", seed=2)
    generator = np.random.default_rng(0)
    input = generator.standard_normal((4, 3))
    output, saved = model.forward(input)
    grad_output = generator.standard_normal(output.shape)
    grad_input = model.backward(saved, grad_output)
    expected = central_differences(lambda input: (model.forward(input)[0] * grad_output).sum(), input)
    assert_equal(grad_input, expected, tolerance=DIFFERENCE_TOLERANCE)


def test_a_wrong_branch_is_named() -> None:
    class Doubled(Tanh):
        """Tanh with twice its gradient."""

        def reference(self, input: torch.Tensor) -> torch.Tensor:
            return input.tanh()

        def derivative(self, saved: Array) -> Array:
            return 2 * super().derivative(saved)

    model = Sequential(Concat([Identity(), Sequential(Linear(3, 3), Doubled())]), dtype="float64")
    report = check_gradients(model, MSELoss(), np.random.default_rng(0).standard_normal((4, 3)), np.ones((4, 6)))
    assert report.failures[0].name == "0.branches.1.1.grad_input"


@dataclass(eq=False)
class Raises(Identity):
    """Its forward, or its backward, raises."""

    in_forward: bool = False

    def forward(self, input: Array) -> tuple[Array, Any]:
        if self.in_forward:
            raise RuntimeError("oops")
        return super().forward(input)

    def backward(self, saved: Any, grad_output: Array) -> Array:  # noqa: ARG002 - the contract's
        raise RuntimeError("oops")

    def reference(self, input: Any) -> Any:
        return input


@pytest.mark.parametrize("in_forward", [False, True])
@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("kind", [Sum, Concat])
def test_the_branch_that_raises_is_named(kind: type[Sum | Concat], place: int, *, in_forward: bool) -> None:
    """Those that would have run after it never ran, and are blamed for nothing."""
    branches: list[Layer] = [Identity(), Sequential(Tanh(), Linear(3, 3)), Tanh()]
    branches[place] = Sequential(Tanh(), Raises(in_forward))
    model = Sequential(kind(branches), dtype="float64")
    report = check_gradients(model, MSELoss(), np.ones((4, 3)), np.ones((4, 3 if kind is Sum else 9)))
    method = "forward" if in_forward else "backward"
    assert str(report.problem).startswith(f"0.branches.{place}.1 (Raises): {method} raised RuntimeError: oops")


@pytest.mark.parametrize("kind", [Sum, Concat])
def test_what_branches_refuse(kind: type[Sum | Concat]) -> None:
    linear: Any = Linear(3, 3)
    with pytest.raises(ValueError, match="branches must be at least one, not none at all"):
        kind([])
    with pytest.raises(TypeError, match="branches must be a list of layers, not generator"):
        kind(layer for layer in [linear])  # type: ignore[arg-type]  # what is refused
    with pytest.raises(TypeError, match="branches must be a list of layers, not Linear"):
        kind(linear)
    with pytest.raises(TypeError, match=r"branches\.1 must be a layer, not the class Tanh"):
        kind([linear, Tanh])  # type: ignore[list-item]  # as above
    with pytest.raises(TypeError, match=r"branches\.0 must be a layer, not list"):
        kind([[linear]])  # type: ignore[list-item]  # as above
    for domain, other in ((r"range\(0, 4\)", Embedding(4, 2)), ("real numbers", Tanh())):
        with pytest.raises(ValueError, match=rf"branches must take the same numbers, not range\(0, 3\) and {domain}"):
            kind([Embedding(3, 2), other])
    given = [linear]
    layer = kind(given)
    given.append(Tanh())
    assert len(layer.branches) == 1


@pytest.mark.parametrize("kind", [Sum, Concat])
def test_tables_side_by_side(kind: type[Sum | Concat]) -> None:
    """Indices have no gradient."""
    model = Sequential(kind([Embedding(3, 2), Sequential(Embedding(3, 2), Tanh())]), Linear(2, 2), dtype="float64")
    assert model.domain == range(3)
    indices = np.array([[0, 2], [2, 2], [1, 0]])
    assert check_gradients(model, MSELoss(), indices, np.ones(model.forward(indices)[0].shape)).passed
    with pytest.raises(ValueError, match=r"outside 0 \.\.\. 2"):
        model.forward(np.array([[3, 0]]))


def test_outputs_that_do_not_fit() -> None:
    words = r"adds its branches' outputs, whose shapes differ: \(4, 3\) and \(4, 1\)"
    with pytest.raises(ValueError, match=words):
        Sum([Identity(), Linear(3, 1)]).output_shape((4, 3))
    with pytest.raises(ValueError, match=words):
        Sequential(Sum([Identity(), Linear(3, 1)])).forward(np.ones((4, 3), np.float32))
    with pytest.raises(ValueError, match=words):
        Sequential(Sum([Identity(), Linear(3, 1)]))(np.ones((4, 3), np.float32))
    words = r"joins .* along dimension 1, and elsewhere their shapes differ: \(4, 3, 2\) and \(4, 3, 1\)"
    concat = Concat([Identity(), Linear(2, 1)])
    with pytest.raises(ValueError, match=words):
        concat.output_shape((4, 3, 2))
    with pytest.raises(ValueError, match=words):
        Sequential(concat).forward(np.ones((4, 3, 2), np.float32))
    with pytest.raises(ValueError, match=words):
        Sequential(concat)(np.ones((4, 3, 2), np.float32))
    for dim in (2, -2, -3):
        with pytest.raises(ValueError, match=rf"Concat has dim {dim}, and its branches' outputs, as \(4, 3\), have 2"):
            Concat([Identity(), ReLU()], dim).output_shape((4, 3))
    with pytest.raises(ValueError, match="dim must not be 0, the batch"):
        Concat([Identity()], 0)
    with pytest.raises(TypeError, match=r"dim must be an integer, not 1\.0"):
        Concat([Identity()], 1.0)  # type: ignore[arg-type]  # what is refused
