"""Muon: the singular values of its steps, torch's Muon beside it, and what it refuses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from nn_manual import CrossEntropyLoss, GradientMismatch, Linear, Muon, Sequential, Tanh, Trainer
from nn_manual.arrays import Array
from nn_manual.config.listing import first_sentence
from nn_manual.data import Examples
from nn_manual.step.slices.cut import Slicing

GENERATOR = np.random.default_rng(0)
EXAMPLES = Examples(GENERATOR.standard_normal((30, 5)), GENERATOR.integers(0, 3, 30))


def net(dtype: str = "float64") -> Sequential:
    """One matrix is tall, the other is wide."""
    return Sequential(Linear(5, 8, bias=False), Tanh(), Linear(8, 3, bias=False), seed=1, dtype=dtype)


def moved(grad: Array, **settings: Any) -> Array:
    """The step of one matrix from 0."""
    rows, columns = grad.shape
    model = Sequential(Linear(columns, rows, bias=False), dtype="float64")
    model.load_state_dict({"0.weight": np.zeros(grad.shape)})
    optimizer = Muon(model, **{"lr": 1.0, "momentum": 0.0, "ns_coefficients": (1.5, -0.5, 0.0), **settings})
    model.grad_arena[...] = grad.ravel()
    optimizer.step()
    return model.param_arena.reshape(grad.shape)


@pytest.mark.parametrize("shape", [(3, 5), (4, 4)])
def test_a_step_is_the_nearest_orthogonal_matrix(shape: tuple[int, int]) -> None:
    """With the classical coefficients the iteration ends there: U V^T of the gradient."""
    grad = np.random.default_rng(1).standard_normal(shape)
    left, _, right = np.linalg.svd(grad, full_matrices=False)
    np.testing.assert_allclose(moved(grad, ns_steps=40), -left @ right, atol=1e-12)
    np.testing.assert_allclose(moved(7 * grad, ns_steps=40), -left @ right, atol=1e-12)


def test_numbers() -> None:
    """A diagonal gradient stays diagonal: 0.6 and 0.8 of its norm each go through 1.5 s - 0.5 s**3, once."""
    grad = np.array([[3.0, 0.0], [0.0, 4.0]])
    expected = -np.diag([1.5 * 0.6 - 0.5 * 0.6**3, 1.5 * 0.8 - 0.5 * 0.8**3])
    np.testing.assert_allclose(moved(grad, ns_steps=1), expected, rtol=1e-15)
    np.testing.assert_allclose(moved(grad, ns_steps=0), -grad / 5, rtol=1e-15)
    np.testing.assert_allclose(moved(grad, ns_steps=0, eps=10.0), -grad / 10, rtol=1e-15)


def test_the_ratio_is_that_of_the_shape() -> None:
    """A tall matrix has the larger steps; match_rms_adamw counts the larger side of any."""
    grad = np.random.default_rng(1).standard_normal((8, 2))
    plain = moved(grad.T, ns_steps=3).T
    np.testing.assert_allclose(moved(grad, ns_steps=3), 2 * plain, rtol=1e-12)
    matched = {"ns_steps": 3, "adjust_lr_fn": "match_rms_adamw"}
    np.testing.assert_allclose(moved(grad, **matched), 0.2 * np.sqrt(8) * plain, rtol=1e-12)
    np.testing.assert_allclose(moved(grad.T, **matched), 0.2 * np.sqrt(8) * plain.T, rtol=1e-12)


@pytest.mark.parametrize("settings", Muon.examples()[:3])
def test_torch_s_is_the_same_but_for_its_bfloat16(settings: dict[str, Any]) -> None:
    """Over 5 steps, within the rounding of 8 bits; a settings that torch's ignored would show at once."""
    model, generator = net(), np.random.default_rng(2)
    optimizer = Muon(model, lr=0.02, **settings)
    theirs = [torch.nn.Parameter(torch.from_numpy(value.copy())) for value in model.state_dict().values()]
    torchs = torch.optim.Muon(theirs, lr=0.02, **settings)
    at_first = [value.copy() for value in model.state_dict().values()]
    for _ in range(5):
        model.grad_arena[...] = generator.standard_normal(model.grad_arena.size)
        start = 0
        for parameter in theirs:
            stop = start + parameter.numel()
            parameter.grad = torch.from_numpy(model.grad_arena[start:stop].reshape(parameter.shape).copy())
            start = stop
        optimizer.step()
        torchs.step()  # type: ignore[no-untyped-call]  # torch's
    for parameter, ours, before in zip(theirs, model.state_dict().values(), at_first, strict=True):
        difference = np.linalg.norm(parameter.detach().numpy() - ours)
        assert difference < 0.02 * np.linalg.norm(ours - before)


@pytest.mark.parametrize(("halving", "least", "most"), [(False, 0.01, 0.03), (True, 0.3, 0.4)])
def test_torch_s_bfloat16_is_as_far_away_as_docs_torch_says(*, halving: bool, least: float, most: float) -> None:
    """1 to 3% of a step for random gradients, up to 40% where singular values halve; the list of components warns."""
    grad = np.random.default_rng(1).standard_normal((64, 64))
    if halving:
        left, _, right = np.linalg.svd(grad)
        grad = left * 0.5 ** np.arange(64) @ right
    parameter = torch.nn.Parameter(torch.zeros(grad.shape, dtype=torch.float64))
    parameter.grad = torch.from_numpy(grad)
    torch.optim.Muon([parameter], lr=1.0, momentum=0.0).step()  # type: ignore[no-untyped-call]  # torch's
    ours = moved(grad, ns_coefficients=Muon.ns_coefficients)
    assert least < np.linalg.norm(parameter.detach().numpy() - ours) / np.linalg.norm(ours) < most
    assert first_sentence(Muon).endswith("where torch.optim.Muon has bfloat16.")


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [{}, {"check_memory": 0}, {"compiled": True}, {"slicing": Slicing(3)}],
    ids=["together", "one by one", "compiled", "sliced"],
)
def test_every_way_of_a_step_is_the_same(settings: dict[str, Any]) -> None:
    """It alone moves matrices in compiled and sliced steps."""
    ends = []
    for own in ({"check_every": 0}, settings):
        model = net()
        groups = [{"parameters": "2*", "ns_steps": 3, "weight_decay": 0.0}]
        trainer = Trainer(model, CrossEntropyLoss(), Muon(model, lr=0.02, groups=groups), **own)
        for epoch in range(3):
            list(trainer.epoch(EXAMPLES, 10, seed=0, epoch=epoch))
        ends.append(model.param_arena)
    np.testing.assert_allclose(ends[1], ends[0], rtol=1e-10)


@pytest.mark.parametrize("wrong", ["buffer", "transpose", "coefficient"])
@pytest.mark.parametrize("memory", [0, 64_000_000])
def test_a_wrong_step_is_found(wrong: str, memory: int, monkeypatch: pytest.MonkeyPatch) -> None:
    right = Muon.move

    def wrong_move(self: Muon, param: Array, grad: Array, vectors: Any, coefficients: Any) -> None:
        if wrong == "buffer":
            vectors["momentum_buffer"][...] *= 1.001
        elif wrong == "coefficient":
            coefficients = {**coefficients, "b": coefficients["b"] * 1.001}
        elif param.shape == (8, 5):
            grad = grad[::-1]
        right(self, param, grad, vectors, coefficients)

    monkeypatch.setattr(Muon, "move", wrong_move)
    model = net("float32")
    trainer = Trainer(model, CrossEntropyLoss(), Muon(model, lr=0.02), check_memory=memory)
    with pytest.raises(GradientMismatch, match="wrong first in optimizer"):
        list(trainer.epoch(Examples(EXAMPLES.input.astype(np.float32), EXAMPLES.target), 10, seed=0, epoch=0))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lr": -1.0}, r"lr must be at least 0, not -1\.0"),
        ({"weight_decay": float("nan")}, "weight_decay must be at least 0, not nan"),
        ({"momentum": -0.1}, r"momentum must be at least 0, not -0\.1"),
        ({"eps": 0.0}, r"eps must be above 0, not 0\.0: a gradient of 0 is divided by it"),
        ({"ns_coefficients": (1.0, 2.0)}, r"ns_coefficients must be 3 numbers, not \(1\.0, 2\.0\)"),
        ({"momentum": math.inf}, "momentum must be finite, not inf"),
        ({"ns_steps": 100}, "ns_steps must be below 100, not 100"),
        ({"ns_steps": -1}, "ns_steps must be at least 0, not -1"),
        ({"ns_steps": 2.0}, r"ns_steps must be an integer, not 2\.0"),
        ({"adjust_lr_fn": "x"}, "adjust_lr_fn must be original, match_rms_adamw or null, not x"),
    ],
)
def test_values_out_of_range(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        Muon(net(), **settings)


def test_every_parameter_is_a_matrix_in_one_piece() -> None:
    with pytest.raises(ValueError, match=r"^Muon moves parameters with 2 dimensions, and 0\.bias has 1$"):
        Muon(Sequential(Linear(2, 3)))
    model = net()
    with pytest.raises(ValueError, match=r"^shard_optimizer must be false: Muon needs whole parameters$"):
        Trainer(model, CrossEntropyLoss(), Muon(model), slicing=Slicing(2, shard_optimizer=True))
