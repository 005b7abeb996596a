"""BatchNorm1d: torch in training and in evaluation, its buffers, and inputs that can't be normalized."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from comparing import DIFFERENCE_TOLERANCE, assert_equal, central_differences

from nn_manual import BatchNorm1d, BatchNorm2d, Linear, MSELoss, Sequential, Trainer, check_gradients
from nn_manual.optim import SGD

SETTINGS: list[dict[str, Any]] = [
    {},
    {"momentum": None},
    {"momentum": 0.7, "eps": 0.1},
    {"affine": False},
    {"track_running_stats": False},
    {"bias": False},
]


def torchs(layer: BatchNorm1d | BatchNorm2d) -> torch.nn.Module:
    options = {name: getattr(layer, name) for name in ("eps", "momentum", "affine", "track_running_stats", "bias")}
    torch_class = getattr(torch.nn, type(layer).__name__)
    module: torch.nn.Module = torch_class(layer.num_features, **options, dtype=torch.float64)
    for name, parameter in vars(layer.param).items():
        setattr(module, name, torch.nn.Parameter(torch.from_numpy(parameter.copy())))
    return module


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("shape", [(6, 3), (4, 3, 5), (1, 3, 7), (4, 3, 2, 5), (2, 3, 1, 3)])
def test_as_torch(settings: dict[str, Any], shape: tuple[int, ...]) -> None:
    layer = BatchNorm2d(3, **settings) if len(shape) == 4 else BatchNorm1d(3, **settings)
    model = Sequential(layer, dtype="float64")
    generator = np.random.default_rng(0)
    model.param_arena[...] = generator.standard_normal(model.num_parameters)
    module = torchs(layer)
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
            assert parameter.grad is not None
            assert_equal(vars(layer.grad)[name], parameter.grad.numpy())
        assert list(vars(layer.buffer)) == [name for name, _ in module.named_buffers()]
        for name, buffer in module.named_buffers():
            assert_equal(np.asarray(vars(layer.buffer)[name], np.float64), buffer.double().numpy())
    module.eval()
    assert_equal(model(input), module(torch.from_numpy(input)).detach().numpy())


def test_differences_agree() -> None:
    model = Sequential(BatchNorm1d(3), dtype="float64")
    input, grad_output = np.random.default_rng(0).standard_normal((2, 5, 3))
    _, saved = model.forward(input)
    expected = central_differences(lambda input: (model.forward(input)[0] * grad_output).sum(), input)
    assert_equal(model.backward(saved, grad_output), expected, tolerance=DIFFERENCE_TOLERANCE)


def test_forward_moves_nothing() -> None:
    model = Sequential(BatchNorm1d(2), dtype="float64")
    before = {name: array.copy() for name, array in model.state_dict().items()}
    _, saved = model.forward(np.random.default_rng(0).standard_normal((4, 2)))
    for name, array in model.state_dict().items():
        np.testing.assert_array_equal(array, before[name])
    model.update_buffers(saved)
    assert model.state_dict()["0.num_batches_tracked"] == 1
    assert list(before) == ["0.weight", "0.bias", "0.running_mean", "0.running_var", "0.num_batches_tracked"]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_large_mean_keeps_its_digits(dtype: str) -> None:
    model = Sequential(Linear(3, 4), BatchNorm1d(4), Linear(4, 2), dtype=dtype, seed=1)
    generator = np.random.default_rng(0)
    batch = (1000 + generator.standard_normal((8, 3))).astype(dtype), generator.standard_normal((8, 2)).astype(dtype)
    report = check_gradients(model, MSELoss(), *batch)
    assert report.agrees, str(report)
    assert model.state_dict()["1.num_batches_tracked"] == 0, "a check trains nothing"


@pytest.mark.parametrize("name", ["running_mean", "running_var", "num_batches_tracked"])
def test_a_wrong_buffer_is_named(name: str) -> None:
    class Wrong(BatchNorm1d):
        torch_class = "BatchNorm1d"

        def update_buffers(self, saved: Any) -> None:
            super().update_buffers(saved)
            vars(self.buffer)[name][...] *= 2

    model = Sequential(Linear(3, 4), Wrong(4), Linear(4, 2))
    generator = np.random.default_rng(0)
    batch = tuple(generator.standard_normal((8, size)).astype(np.float32) for size in (3, 2))
    assert check_gradients(model, MSELoss(), *batch).failures[0].name == f"1.{name}"
    trainer = Trainer(model, MSELoss(), SGD(model, lr=0.1))
    with pytest.raises(Exception, match=rf"wrong first in 1 \(Wrong\): 1\.{name}"):
        trainer.train_step(*batch)


def test_a_wrong_evaluation_is_named() -> None:
    class Wrong(BatchNorm1d):
        torch_class = "BatchNorm1d"

        def infer(self, input: Any) -> Any:
            return self.forward(input)[0]

    model = Sequential(Linear(3, 4), Wrong(4), Linear(4, 2))
    generator = np.random.default_rng(0)
    report = check_gradients(model, MSELoss(), *(generator.standard_normal((8, n)).astype("f") for n in (3, 2)))
    assert (report.failures[0].name, report.failures[0].layer) == ("1.infer", "1 (Wrong)")


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ((1, 3), "BatchNorm1d needs more than 1 value for each feature in a training step"),
        ((4, 2), r"BatchNorm1d takes \(batch, num_features=3\) or \(batch, 3, length\), the input has shape \(4, 2\)"),
        ((4,), "BatchNorm1d takes"),
        ((4, 3, 2, 1), "BatchNorm1d takes"),
    ],
)
def test_inputs_that_do_not_fit(shape: tuple[int, ...], words: str) -> None:
    with pytest.raises(ValueError, match=rf"^0 \(BatchNorm1d\){words.removeprefix('BatchNorm1d')}"):
        Sequential(BatchNorm1d(3)).forward(np.ones(shape, np.float32))
    if shape == (1, 3):
        assert Sequential(BatchNorm1d(3))(np.ones(shape, np.float32)).shape == shape


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"num_features": 0}, "num_features must be at least 1, not 0"),
        ({"num_features": 2, "eps": -1.0}, "eps must be above 0, not -1"),
        ({"num_features": 2, "eps": 0}, "eps must be above 0, not 0"),
        ({"num_features": 2, "momentum": 1.1}, "momentum must be between 0 and 1, not 1.1"),
    ],
)
def test_settings_out_of_range(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        BatchNorm1d(**settings)


def test_a_state_dict_needs_its_buffers() -> None:
    model = Sequential(BatchNorm1d(2))
    state = {name: array.copy() for name, array in model.state_dict().items()}
    missing = {name: array for name, array in state.items() if name != "0.running_var"}
    with pytest.raises(ValueError, match=r"missing buffer '0\.running_var' in the state dict"):
        model.load_state_dict(missing)
    with pytest.raises(ValueError, match=r"unexpected parameter '0\.running_max' in the state dict"):
        model.load_state_dict(state | {"0.running_max": np.ones(2)})
    state["0.running_mean"] += 3
    model.load_state_dict(state)
    assert (model.state_dict()["0.running_mean"] == 3).all()
