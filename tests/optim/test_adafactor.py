"""Adafactor: torch's trajectory, its state in torch's shapes, and what it refuses."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from comparing import TOLERANCES, assert_equal

from nn_manual import Adafactor, Conv1d, Linear, MSELoss, PReLU, Sequential, Trainer
from nn_manual.step.slices.cut import Slicing

SETTINGS: list[dict[str, Any]] = [
    dict(zip(("eps", "beta2_decay", "d", "weight_decay", "maximize"), values, strict=True))
    for values in itertools.product(
        ((None, 1e-3), (0.5, 2.0), (1e-3, 0.0)), (-0.8, -0.3), (1.0, 1.5), (0, 0.1), (False, True)
    )
]


def net(dtype: str = "float64") -> Sequential:
    """Biases, a vector of one number, matrices of a single row and of a single column, and several matrices."""
    return Sequential(Conv1d(3, 5, 2), PReLU(), Linear(4, 1), Linear(1, 4, bias=False), dtype=dtype)


@pytest.mark.parametrize("dtype", TOLERANCES)
def test_the_trajectory_is_torchs(dtype: str) -> None:
    generator = np.random.default_rng(0)
    for settings in SETTINGS:
        model = net(dtype)
        ours = Adafactor(model, **settings)
        parameters = {
            name: torch.nn.Parameter(torch.from_numpy(value.copy())) for name, value in model.state_dict().items()
        }
        theirs: Any = torch.optim.Adafactor(parameters.values(), **settings)
        for step in range(10):
            kind = 1e-3 if step % 5 == 3 else float(step % 7 != 2)  # now and then tiny, or zero
            model.grad_arena[...] = kind * generator.normal(size=model.num_parameters)
            start = 0
            for parameter in parameters.values():
                stop = start + parameter.numel()
                parameter.grad = torch.from_numpy(model.grad_arena[start:stop].reshape(parameter.shape).copy())
                start = stop
            ours.lr = theirs.param_groups[0]["lr"] = 0.5 / (1 + step // 4)
            ours.step()
            theirs.step()
            theirs_flat = np.concatenate([parameter.detach().numpy().ravel() for parameter in parameters.values()])
            assert_equal(model.param_arena, theirs_flat)
        assert_state_is(ours, [theirs.state[parameter] for parameter in parameters.values()])


def assert_state_is(optimizer: Adafactor, of_torch: list[dict[str, torch.Tensor]]) -> None:
    """torch's numbers are in the first places of each parameter's part, and the others are 0."""
    start = 0
    for shape, state in zip(optimizer.model.parameter_shapes().values(), of_torch, strict=True):
        stop = start + int(np.prod(shape))
        for name, vector in optimizer.vectors.items():
            expected = np.zeros(stop - start, vector.dtype)
            if name in state:
                expected[: state[name].numel()] = state[name].numpy().ravel()
            assert_equal(vector[start:stop], expected)
        start = stop


def test_the_first_step_is_as_long_as_a_share_of_the_parameter() -> None:
    """At first, the mean squares are the gradient's own: of a matrix that is a product, each update is 1 or -1."""
    model = Sequential(Linear(3, 2, bias=False), dtype="float64")
    model.param_arena[...] = [3, -3, 3, 3, -3, 3]
    model.grad_arena[...] = [1, 2, -3, 4, -8, 12]
    Adafactor(model, lr=0.1, eps=(0.0, 1e-3)).step()
    np.testing.assert_allclose(model.param_arena, [2.7, -3.3, 3.3, 2.7, -2.7, 2.7], rtol=1e-14)


WAYS: list[dict[str, Any]] = [{"check_every": 1}, {"compiled": True, "check_every": 3}, {"slicing": Slicing(2)}]


@pytest.mark.parametrize("settings", WAYS)
def test_every_way_of_a_step_is_the_same(settings: dict[str, Any]) -> None:
    """It alone moves parameters of all shapes in compiled and sliced steps."""
    generator, ends = np.random.default_rng(0), []
    data = generator.normal(size=(20, 3, 5)), generator.normal(size=(20, 5, 4))
    for own in ({"check_every": 0}, settings):
        model = net()
        groups = [{"parameters": "0.*", "d": 1.5, "weight_decay": 0.1}]
        trainer = Trainer(model, MSELoss(), Adafactor(model, lr=0.05, groups=groups), **own)
        for epoch in range(3):
            list(trainer.epoch(data, 10, seed=0, epoch=epoch))
        ends.append(model.param_arena)
    np.testing.assert_allclose(ends[1], ends[0], rtol=1e-10)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lr": -1.0}, r"lr must be at least 0, not -1\.0"),
        ({"beta2_decay": 0.1}, r"beta2_decay must be at most 0, not 0\.1"),
        ({"d": 0.5}, r"d must be at least 1, not 0\.5"),
        *(
            ({"eps": eps}, rf"eps must be null or a number from 0 on, and a number from 0 on, not \[{text}\]")
            for eps, text in [((-1, 0.1), r"-1, 0\.1"), ((0.1, None), r"0\.1, None")]
        ),
        ({"eps": (0.1,)}, r"eps must be 2 numbers or None, not \(0\.1,\)"),
        ({"eps": ("x", 1)}, r"eps must be 2 numbers or None, not \('x', 1\)"),
    ],
)
def test_values_out_of_range(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        Adafactor(net(), **settings)


def test_every_parameter_has_numbers_and_is_in_one_piece() -> None:
    message = "^shard_optimizer must be false: Adafactor needs whole parameters$"
    with pytest.raises(ValueError, match=message):
        Trainer(model := net(), MSELoss(), Adafactor(model), slicing=Slicing(2, shard_optimizer=True))
    assert Adafactor.misfit({"0.weight": (2, 3), "0.bias": (0,)}) == (
        "Adafactor moves parameters with one number at least, and 0.bias has none"
    )
