"""Shared parameters: one memory, a gradient for each use, which the model adds and the check compares."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from comparing import assert_equal
from nets import break_gradient

from nn_manual import (
    SGD,
    GradientMismatch,
    Linear,
    MSELoss,
    Residual,
    Sequential,
    Tanh,
    Trainer,
    check_gradients,
)
from nn_manual.arrays import Array
from nn_manual.model.ties import Ties

THREE = [("0.weight", "2.weight"), ("0.weight", "3.0.weight")]


def net(dtype: str = "float32", tied: Any = (("0.weight", "2.weight"),), seed: int = 1) -> Sequential:
    return Sequential(Linear(3, 3), Tanh(), Linear(3, 3), Residual(Linear(3, 3)), seed=seed, dtype=dtype, tied=tied)


def batch(dtype: str = "float32") -> tuple[Array, Array]:
    generator = np.random.default_rng(0)
    return generator.standard_normal((5, 3)).astype(dtype), generator.standard_normal((5, 3)).astype(dtype)


def test_one_memory_under_the_first_name() -> None:
    model = net(tied=THREE)
    assert list(model.parameter_shapes()) == ["0.weight", "0.bias", "2.bias", "3.0.bias"]
    assert model.num_parameters == 9 + 3 * 3 == model.param_arena.size
    assert list(model.state_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias", "3.0.weight", "3.0.bias"]
    assert list(model.state_dict(aliases=False)) == list(model.parameter_shapes())
    first, _, second, residual = model.layers
    model.param_arena[0] = 7
    assert second.param.weight[0, 0] == first.param.weight[0, 0] == residual.children()["0"].param.weight[0, 0] == 7
    assert not np.shares_memory(first.grad.weight, second.grad.weight)


def test_it_starts_as_the_first() -> None:
    untied, tied = net(tied=()), net(tied=THREE)
    for name, values in tied.state_dict(aliases=False).items():
        np.testing.assert_array_equal(values, untied.state_dict()[name])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("method", ["backward", "backward_parameters"])
def test_the_gradient_is_torchs(method: str, dtype: str) -> None:
    model = net(dtype, THREE)
    input, grad_output = batch(dtype)
    output, saved = model.forward(input)
    getattr(model, method)(saved, grad_output)
    own = {name: torch.from_numpy(array.copy()).requires_grad_() for name, array in model.state_dict().items()}
    weight = own["0.weight"]
    hidden = torch.tanh(torch.from_numpy(input) @ weight.T + own["0.bias"]) @ weight.T + own["2.bias"]
    expected = hidden + hidden @ weight.T + own["3.0.bias"]
    assert_equal(output, expected.detach().numpy())
    torch.autograd.backward(expected, torch.from_numpy(grad_output))
    for name, grad in vars(model.grad).items():
        torch_grad = own[name].grad
        assert torch_grad is not None
        assert_equal(grad, torch_grad.numpy())


@pytest.mark.parametrize("clip", [None, 0.1])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_training_step_is_checked(dtype: str, clip: float | None) -> None:
    model = net(dtype, THREE)
    trainer = Trainer(model, MSELoss(), SGD(model, lr=0.1, momentum=0.9), clip_grad_norm=clip)
    for _ in range(5):
        check = trainer.train_step(*batch(dtype)).check
    assert check is not None
    assert check.severity.max() < 1
    uses = {"0.grad_weight", "2.grad_weight", "3.0.grad_weight"}
    assert uses <= set(check.tensors)
    assert ("0.grad_weight + 2.grad_weight + 3.0.grad_weight" in check.tensors) == (clip is None)
    assert check_gradients(model, MSELoss(), *batch(dtype)).passed


@pytest.mark.parametrize(("layer", "name"), [(0, "0.grad_weight"), (2, "2.grad_weight")])
def test_a_wrong_use_is_named(layer: int, name: str) -> None:
    model = net()
    break_gradient(model.layers[layer], "grad_weight", lambda grad: 1.01 * grad)
    assert check_gradients(model, MSELoss(), *batch()).failures[0].name == name


def test_a_wrong_sum_is_sequentials_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgets_one(ties: Ties, grad: Any) -> None:
        grad["0.weight"][...] = ties.use_grads["2.weight"]

    monkeypatch.setattr(Ties, "add", forgets_one)
    failure = check_gradients(net(), MSELoss(), *batch()).failures[0]
    assert (failure.name, failure.layer) == ("0.grad_weight + 2.grad_weight", "Sequential")
    model = net()
    trainer = Trainer(model, MSELoss(), SGD(model, lr=0.1), clip_grad_norm=0.1)
    with pytest.raises(GradientMismatch, match="wrong first in clip_grad_norm"):
        trainer.train_step(*batch())


def test_copies_have_ties_of_their_own() -> None:
    model = net(tied=THREE)
    other = copy.deepcopy(model)
    other.param_arena[0] = 7
    assert model.param_arena[0] != 7
    assert other.layers[2].param.weight[0, 0] == 7
    assert check_gradients(other, MSELoss(), *batch()).passed


def test_state_dicts() -> None:
    model, other = net(seed=1), net(seed=2)
    other.load_state_dict({name: array.copy() for name, array in model.state_dict().items()})
    np.testing.assert_array_equal(other.param_arena, model.param_arena)
    other = net(seed=2)
    other.load_state_dict(model.state_dict(aliases=False))
    np.testing.assert_array_equal(other.param_arena, model.param_arena)
    differing = {name: array.copy() for name, array in model.state_dict().items()}
    differing["2.weight"][0] = 0
    with pytest.raises(ValueError, match=r"'2\.weight' is '0\.weight' in this model, the state dict's two differ"):
        other.load_state_dict(differing)
    without_first = {name: array for name, array in model.state_dict().items() if name != "0.weight"}
    with pytest.raises(ValueError, match=r"missing parameter '0\.weight'"):
        other.load_state_dict(without_first)


WRONG = [
    ([["0.weight", "1.weight"]], "tied: the model has no parameter '1.weight'"),
    ([["0.weight", "0.bias"]], "tied: '0.weight' has shape (3, 3), '0.bias' has (3,)"),
    ([["0.weight", "0.weight"]], "tied: '0.weight' is tied to '0.weight' already"),
    ([["0.weight", "2.weight"], ["2.weight", "0.weight"]], "tied: '0.weight' is tied to '0.weight' already"),
    ([["0.bias", "2.bias"], ["3.0.bias", "2.bias"]], "tied: '2.bias' is tied to '0.bias' already"),
    ([["0.weight"]], "must be a pair of two parameters' names"),
]


@pytest.mark.parametrize(("tied", "words"), WRONG)
def test_what_cannot_be_tied(tied: Any, words: str) -> None:
    with pytest.raises(ValueError, match="tied") as caught:
        net(tied=tied)
    assert words in str(caught.value)


def test_only_the_outermost_has_ties() -> None:
    with pytest.raises(ValueError, match="layer 1 has tied parameters: only the outermost Sequential can have them"):
        Sequential(Tanh(), net())
