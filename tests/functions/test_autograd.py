"""Our layers inside torch's models, compared with torch's own gradcheck and torch.nn."""

from __future__ import annotations

import copy
import itertools

import numpy as np
import pytest
import torch
from every_component import each
from modules import draw, net

from nn_manual import BatchNorm1d, Dropout, Embedding, Layer, Linear, ReLU, Sequential, Tanh, as_autograd_function
from nn_manual.arrays import Shape
from nn_manual.layers import LayerWithLengths, LayerWithNoise, PaddedLSTM, SpectralNorm
from nn_manual.registry import components, examples

#: Layers that draw anew at each call, or heed lengths, or whose vectors come nearer to the singular ones at each call.
OTHERS = (LayerWithNoise, LayerWithLengths, SpectralNorm)


@each(
    "layer, shape",
    [
        *(
            (layer, shape)
            for layer, shape in examples(components(Layer))
            # Gradcheck can't move indices.
            if not isinstance(layer.domain, range)
            and not any(isinstance(own, OTHERS) for _, own in Sequential(layer).named_layers())
        ),
        (net(), (5, 3)),
    ],
)
def test_gradcheck_passes(layer: Layer, shape: Shape) -> None:
    module = as_autograd_function(Sequential(layer, dtype="float64"))
    inputs = (draw(*shape), *module.parameters())
    # gradcheck moves the parameters in the memory that they share with the layer
    assert torch.autograd.gradcheck(lambda input, *_: module(input), inputs)


def test_a_layer_that_heeds_lengths_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^PaddedLSTM heeds the lengths of sequences, and"):
        as_autograd_function(Sequential(PaddedLSTM(2, 3), Linear(3, 1)))


def test_gradients_are_torchs_and_accumulate() -> None:
    ours, input = as_autograd_function(net()), draw(5, 3)
    theirs = torch.nn.Sequential(
        torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.ReLU())
    ).double()
    theirs.load_state_dict(ours.state_dict())
    results: list[list[torch.Tensor | None]] = []
    for model in (ours, theirs):
        input.grad = None
        for _ in range(2):
            torch.autograd.backward(torch.sin(model(input)).pow(2).sum())
        assert input.grad is not None
        results.append([input.grad, *(parameter.grad for parameter in model.parameters())])
    for mine, torchs in itertools.zip_longest(*results):
        torch.testing.assert_close(mine, torchs, rtol=1e-12, atol=1e-12)
        assert torchs is not None
        assert torchs.any()


def test_two_forwards_before_the_first_backward() -> None:
    module, first, second = as_autograd_function(net()), draw(5, 3), draw(2, 3)
    outputs = module(first), module(second)
    (grad,) = torch.autograd.grad(outputs[0].sum(), first)
    (alone,) = torch.autograd.grad(module(first).sum(), first)
    assert torch.equal(grad, alone)


def test_memory_is_shared_and_a_torch_optimizer_trains_the_layer() -> None:
    model = net("float32")
    module, before = as_autograd_function(model), model.param_arena.copy()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.5)
    module(torch.ones(4, 3)).sum().backward()
    optimizer.step()
    gradients = np.concatenate([p.grad.numpy().ravel() for p in module.parameters() if p.grad is not None])
    assert gradients.any()
    np.testing.assert_allclose(model.param_arena, before - 0.5 * gradients, rtol=1e-6)  # some float32 roundings
    model.param_arena[:] = 7
    assert all((parameter == 7).all() for parameter in module.parameters())


def test_names_are_torchs() -> None:
    assert list(as_autograd_function(net()).state_dict()) == ["0.weight", "0.bias", "2.0.weight", "2.0.bias"]


def test_a_single_layer_of_a_model_and_one_without_parameters() -> None:
    linear = net().layers[0]
    assert list(as_autograd_function(linear).state_dict()) == ["weight", "bias"]
    assert torch.equal(as_autograd_function(ReLU())(torch.tensor([-1.0, 2.0])), torch.tensor([0.0, 2.0]))


def test_a_layer_that_returns_its_input_does_not_share_it() -> None:
    input = draw(2, 3)
    output = as_autograd_function(Sequential(dtype="float64"))(input)
    assert output.data_ptr() != input.data_ptr()


def test_the_gradient_of_an_input_that_needs_none_is_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sequential, "backward", None)
    module = as_autograd_function(Sequential(Linear(3, 4), Tanh(), dtype="float64"))
    module(draw(5, 3).detach()).sum().backward()
    assert all(parameter.grad is not None for parameter in module.parameters())


def test_gradients_stay_when_the_layer_runs_again() -> None:
    module, input = as_autograd_function(net()), draw(5, 3)
    first = torch.autograd.grad(module(input).sum(), list(module.parameters()))
    before = [grad.clone() for grad in first]
    torch.autograd.grad((3 * module(input)).sum(), list(module.parameters()))
    assert all(torch.equal(grad, kept) for grad, kept in zip(first, before, strict=True))
    assert any(grad.any() for grad in first)


def test_a_layer_without_memory_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Linear has no memory for its parameters: pass Sequential"):
        as_autograd_function(Linear(3, 4))


def test_moved_parameters_are_refused() -> None:
    module = as_autograd_function(net("float32")).double()
    with pytest.raises(RuntimeError, match=r"0\.weight no longer shares memory with Sequential"):
        module(draw(5, 3))


def test_changing_in_place_what_backward_needs_is_refused() -> None:
    module, input = as_autograd_function(net()), draw(5, 3)
    output = module(input)
    with torch.no_grad():
        next(module.parameters()).add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        output.sum().backward()


def test_a_second_derivative_is_refused() -> None:
    input = draw(5, 3)
    (grad,) = torch.autograd.grad((as_autograd_function(net())(input) ** 2).sum(), input, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        torch.autograd.backward(grad.sum())


def test_buffers_move_in_training_and_evaluation_uses_them() -> None:
    ours = as_autograd_function(Sequential(Linear(3, 4), BatchNorm1d(4), seed=1, dtype="float64"))
    theirs = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)).double()
    theirs.load_state_dict(ours.state_dict())
    for seed in range(3):
        input = draw(5, 3) * (seed + 1)
        assert torch.allclose(ours(input), theirs(input), rtol=1e-12)
    for name, tensor in theirs.state_dict().items():
        assert torch.allclose(ours.state_dict()[name].double(), tensor.double(), rtol=1e-12), name
    copied = copy.deepcopy(ours)
    for module in (ours, theirs, copied):
        module.eval()
    with torch.no_grad():
        assert torch.allclose(ours(input), theirs(input), rtol=1e-12)
        assert torch.allclose(copied(input), theirs(input), rtol=1e-12)
    with pytest.raises(RuntimeError, match="evaluation differs from training here, and has no gradient"):
        ours(input)


def test_each_forward_in_training_draws_a_mask() -> None:
    module = as_autograd_function(Sequential(Dropout(), dtype="float64"))
    input = torch.ones(20, 30, dtype=torch.float64)
    first, second = module(input), module(input)
    assert not torch.equal(first, second)
    module.eval()
    assert torch.equal(module(input), input)


def test_indices_have_no_gradient() -> None:
    module = as_autograd_function(Sequential(Embedding(5, 2), dtype="float64"))
    module(torch.tensor([1, 1, 3])).sum().backward()
    assert module.get_parameter("0.weight").grad is not None
    expected = torch.tensor([[0, 0], [2, 2], [0, 0], [1, 1], [0, 0]], dtype=torch.float64)
    assert torch.equal(module.get_parameter("0.weight").grad, expected)  # type: ignore[arg-type]  # it isn't None


@pytest.mark.parametrize("layer", [Dropout(), BatchNorm1d(3, affine=False)])
def test_a_layer_without_noise_or_buffers_is_refused(layer: Layer) -> None:
    with pytest.raises(ValueError, match=f"{type(layer).__name__} has no memory for its"):
        as_autograd_function(layer)
