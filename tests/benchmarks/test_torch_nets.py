"""The nets that are timed beside torch are the same nets, and the count of three characters is a model of them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from benchmarks.torch_nets import torch_loss, torch_net, torch_optimizer
from language_models import trigram_loss

from nn_manual import CausalSelfAttention, Layer, MultiheadAttention, Residual, Sequential
from nn_manual.config import load_config
from nn_manual.data import Split
from nn_manual.data.base import Examples

CONFIG = Path(__file__).parents[2] / "config"


@pytest.mark.parametrize("name", ["convnet", "digits_convnet", "gpt", "lstm"])
def test_a_step_of_torchs_net_ends_where_ours_does(name: str) -> None:
    config = load_config(CONFIG / f"{name}.yaml", ["dtype=float64"])
    model = config.new_model()
    optimizer, net, generator = config.optimizer(model), torch_net(model), np.random.default_rng(0)
    assert config.data.example_shape is not None
    if config.data.predicts_characters:
        input, target = generator.integers(0, 100, (2, 2, *config.data.example_shape))
    else:
        input, target = generator.standard_normal((2, *config.data.example_shape)), np.array([3, 7])
    torchs = torch_optimizer(optimizer, net)

    prediction, saved = model.forward(input)
    value, loss_saved = config.loss.forward(prediction, target)
    model.backward_parameters(saved, config.loss.backward(loss_saved))
    loss = torch_loss(config.loss)(net(torch.from_numpy(input)), torch.from_numpy(target))
    loss.backward()
    assert loss.item() == pytest.approx(float(value), rel=1e-12)
    for parameter, ours in model.state_dict(aliases=False).items():
        if parameter in model.parameter_shapes():
            grad = net.get_parameter(parameter).grad
            assert grad is not None
            np.testing.assert_allclose(vars(model.grad)[parameter], grad.numpy(), rtol=0, atol=1e-12)
            assert ours.shape == grad.shape
    # Groups and settings, where the gradient of each side is the same to the last bit.
    for parameter, grad in vars(model.grad).items():
        net.get_parameter(parameter).grad = torch.from_numpy(grad.copy())
    optimizer.step()
    torchs.step()
    for parameter, moved in vars(model.param).items():
        np.testing.assert_allclose(moved, net.get_parameter(parameter).detach().numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("layer", "what"),
    [
        (CausalSelfAttention(8, 2, window=3), "CausalSelfAttention with window=3"),
        (CausalSelfAttention(8, 2, num_kv_heads=1), "CausalSelfAttention with num_kv_heads=1"),
        (MultiheadAttention(8, 2, positions="alibi"), "MultiheadAttention with positions='alibi'"),
    ],
)
def test_a_setting_that_is_not_translated_is_refused(layer: Layer, what: str) -> None:
    with pytest.raises(NotImplementedError) as refused:
        torch_net(Sequential(Residual(layer)))
    assert str(refused.value) == f"{what} isn't translated here"


def test_the_loss_of_counted_triples() -> None:
    """Of 0 1 0 1 ... the next is always known; one that never came is nearly as unlikely as the counts allow."""
    cycle = np.arange(4001) % 2
    train = Examples(cycle[None, :-1], cycle[None, 1:])
    assert trigram_loss(Split(train, train, 2)) < 1e-2
    generator = np.random.default_rng(0)
    noise = generator.integers(0, 4, (2, 1, 100_001))
    parts = [Examples(part[:, :-1], part[:, 1:]) for part in noise]
    # Of four characters at random each takes ln 4; 64 counted distributions of 1,500 each cost 3 / 3,000 more.
    assert trigram_loss(Split(parts[0], parts[1], 4)) == pytest.approx(math.log(4), abs=3e-3)
