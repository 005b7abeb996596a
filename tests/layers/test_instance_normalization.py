"""InstanceNorm's running statistics: torch in training and in evaluation, and by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from comparing import assert_equal

from nn_manual import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d, Sequential
from nn_manual.arrays import Array

SETTINGS: list[dict[str, Any]] = [
    {},
    {"momentum": None},
    {"momentum": 0.7, "eps": 0.1},
    {"affine": True},
    {"affine": True, "bias": False},
    {"track_running_stats": False},
]


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize(
    ("owner", "shape"), [(InstanceNorm1d, (4, 3, 5)), (InstanceNorm2d, (1, 3, 2, 2)), (InstanceNorm3d, (2, 3, 2, 1, 3))]
)
def test_as_torch(owner: Any, shape: tuple[int, ...], settings: dict[str, Any]) -> None:
    settings = {"track_running_stats": True, **settings}
    layer = owner(3, **settings)
    model = Sequential(layer, dtype="float64")
    generator = np.random.default_rng(0)
    model.param_arena[...] = generator.standard_normal(model.num_parameters)
    module = getattr(torch.nn, owner.__name__)(3, **settings, dtype=torch.float64)
    for name, parameter in vars(layer.param).items():
        setattr(module, name, torch.nn.Parameter(torch.from_numpy(parameter.copy())))
    for _ in range(3):
        input, grad_output = 3 + generator.standard_normal(shape), generator.standard_normal(shape)
        output, saved = model.forward(input)
        grad_input = model.backward(saved, grad_output)
        model.update_buffers(saved)
        leaf = torch.from_numpy(input).requires_grad_()
        module.zero_grad()
        expected = module(leaf)
        torch.autograd.backward(expected, torch.from_numpy(grad_output))
        assert_equal(output, expected.detach().numpy())
        assert leaf.grad is not None
        assert_equal(grad_input, leaf.grad.numpy())
        for name, parameter in module.named_parameters():
            assert_equal(vars(layer.grad)[name], parameter.grad.numpy())
        assert list(vars(layer.buffer)) == [name for name, _ in module.named_buffers()]
        for name, buffer in module.named_buffers():
            assert_equal(np.asarray(vars(layer.buffer)[name], np.float64), buffer.double().numpy())
    module.eval()
    assert_equal(model(input), module(torch.from_numpy(input)).detach().numpy())


def moved(**settings: Any) -> dict[str, Array]:
    """The buffers after a step on two sequences: their means are 2 and 5, their unbiased variances 2 and 8."""
    model = Sequential(InstanceNorm1d(1, track_running_stats=True, **settings), dtype="float64")
    _, saved = model.forward(np.array([[[1.0, 3]], [[3, 7]]]))
    model.update_buffers(saved)
    return vars(model.layers[0].buffer)


def test_running_values_by_hand() -> None:
    """0.9 * 0 + 0.1 * 3.5 and 0.9 * 1 + 0.1 * 5; torch counts no batches."""
    after = moved()
    np.testing.assert_allclose(after["running_mean"], [0.35], rtol=1e-15)
    np.testing.assert_allclose(after["running_var"], [1.4], rtol=1e-15)
    assert after["num_batches_tracked"] == 0


def test_without_momentum_they_stay() -> None:
    after = moved(momentum=None)
    assert [*after["running_mean"], *after["running_var"]] == [0, 1]


def test_evaluation_takes_a_single_place() -> None:
    """It needs no statistics of its own."""
    model = Sequential(InstanceNorm1d(2, track_running_stats=True, eps=3.0), dtype="float64")
    np.testing.assert_allclose(model(np.array([[[4.0], [6]]])), [[[2], [3]]], rtol=1e-15)
    with pytest.raises(ValueError, match=r"^0 \(InstanceNorm1d\) needs more than 1 place, the input has shape"):
        model.forward(np.ones((1, 2, 1)))
    with pytest.raises(ValueError, match=r"^0 \(InstanceNorm1d\) has num_features=2, the input has shape \(1, 3, 1\)"):
        model(np.ones((1, 3, 1)))


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"momentum": 1.1}, "momentum must be between 0 and 1, not 1.1"), ({"eps": -1}, "eps must be above 0, not -1")],
)
def test_settings_out_of_range(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        InstanceNorm1d(2, **settings)
