"""The exponential moving average of the weights: torch's, in every way of a step, and in evaluation."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from nets import replace_method

from nn_manual import (
    SGD,
    Adafactor,
    Adam,
    BatchNorm1d,
    CrossEntropyLoss,
    GradientMismatch,
    Linear,
    Muon,
    NAdam,
    Sequential,
    Tanh,
    Trainer,
    averaged,
)
from nn_manual.arrays import Array
from nn_manual.data import Examples
from nn_manual.optim import Optimizer
from nn_manual.optim.averaging import averaged_weights, decay_of
from nn_manual.step.slices.cut import Slicing

EXAMPLES = Examples(np.random.default_rng(0).normal(size=(24, 5)), np.arange(24) % 3)
CLASSES: list[type[Optimizer]] = [SGD, Adam, NAdam, Adafactor]


def net(dtype: str = "float64") -> Sequential:
    """No bias before the normalization: its gradient would be rounding alone, which Adafactor enlarges."""
    return Sequential(Linear(5, 8, bias=False), BatchNorm1d(8), Tanh(), Linear(8, 3), dtype=dtype)


def test_the_average_and_what_is_evaluated_are_torchs() -> None:
    """Of a model with buffers: torch's AveragedModel copies them."""
    model = net()
    optimizer = averaged(SGD, 0.9)(model, lr=0.5)
    trainer = Trainer(model, CrossEntropyLoss(), optimizer, check_every=0)
    theirs: Any = torch.nn.Sequential(
        torch.nn.Linear(5, 8, bias=False), torch.nn.BatchNorm1d(8), torch.nn.Tanh(), torch.nn.Linear(8, 3)
    ).double()
    theirs.load_state_dict({name: torch.tensor(value) for name, value in model.state_dict().items()})
    of_torch = torch.optim.SGD(theirs.parameters(), lr=0.5)
    average_fn = torch.optim.swa_utils.get_ema_multi_avg_fn(0.9)  # type: ignore[no-untyped-call]  # torch's own lack
    average: Any = torch.optim.swa_utils.AveragedModel(theirs, multi_avg_fn=average_fn)
    loss = torch.nn.CrossEntropyLoss()
    for step in range(12):
        input, target = EXAMPLES.input[step % 2 :: 2], EXAMPLES.target[step % 2 :: 2]
        trainer.train_step(input, target)
        of_torch.zero_grad()
        loss(theirs(torch.from_numpy(input)), torch.from_numpy(target)).backward()
        of_torch.step()
        average.update_parameters(theirs)
        expected = average.module.state_dict()
        with trainer.averaged_weights():
            for name, value in model.state_dict().items():
                np.testing.assert_allclose(value, expected[name].numpy(), rtol=1e-10, atol=1e-13)
        average.eval()
        with torch.no_grad():
            value = loss(average(torch.from_numpy(EXAMPLES.input)), torch.from_numpy(EXAMPLES.target)).item()
        assert trainer.evaluate(EXAMPLES).loss == pytest.approx(value, rel=1e-11)
        for own, its in zip(model.state_dict().values(), theirs.state_dict().values(), strict=True):
            np.testing.assert_allclose(own, its.numpy(), rtol=1e-10, atol=1e-13)
    assert np.abs(optimizer.vectors["ema"] - model.param_arena).max() > 0.01


def test_by_hand() -> None:
    model = Sequential(Linear(1, 1, bias=False), dtype="float64")
    model.param_arena[0] = 1
    optimizer = averaged(SGD, 0.75)(model, lr=1.0)
    found = []
    for grad in (0.5, 1.0, 0.0):
        model.grad_arena[0] = grad
        optimizer.step()
        found.append(optimizer.vectors["ema"][0])
    assert found == [0.5, 0.75 * 0.5 - 0.25 * 0.5, 0.75 * 0.25 - 0.25 * 0.5]


def test_where_the_parameters_stand_still_the_average_comes_to_them() -> None:
    """0.9999 and 0.0001, rounded, don't add up to 1: their average would stop 3e-4 beside it."""
    model = Sequential(Linear(1, 1, bias=False))
    optimizer = averaged(SGD, 0.9999)(model, lr=1.0)
    model.grad_arena[0] = 1.0
    optimizer.step()
    optimizer.vectors["ema"][0] = 1.0
    model.param_arena[0], model.grad_arena[0] = 1.0, 0.0
    for _ in range(1000):
        optimizer.step()
    assert optimizer.vectors["ema"][0] == 1


def trained(optimizer_class: type[Optimizer], decay: float | None, **settings: Any) -> tuple[Array, Array | None]:
    """The parameters and the average after six steps."""
    model = net()
    made = optimizer_class if decay is None else averaged(optimizer_class, decay)
    groups = [{"parameters": "*.bias", "lr": 0.1}]
    optimizer = made(model, lr=0.05, groups=groups)
    trainer = Trainer(model, CrossEntropyLoss(), optimizer, **settings)
    for epoch in range(3):
        list(trainer.epoch(EXAMPLES, 12, seed=0, epoch=epoch))
    return model.param_arena, optimizer.vectors.get("ema")


@pytest.mark.parametrize("optimizer_class", CLASSES)
def test_every_way_of_a_step_moves_the_same_average(optimizer_class: type[Optimizer]) -> None:
    without, nothing = trained(optimizer_class, None, check_every=0)
    param, average = trained(optimizer_class, 0.8, check_every=0)
    assert nothing is None
    assert average is not None
    np.testing.assert_array_equal(param, without)
    ways: list[dict[str, Any]] = [
        {"check_every": 1},
        {"check_every": 1, "check_memory": 0},
        {"check_every": 2, "compiled": True},
        {"slicing": Slicing(2, sync_batch_norm=True)},
    ]
    for settings in ways:
        its_param, its_average = trained(optimizer_class, 0.8, **settings)
        np.testing.assert_allclose(its_param, param, rtol=1e-8, atol=1e-10)
        assert its_average is not None
        np.testing.assert_allclose(its_average, average, rtol=1e-8, atol=1e-10)


def test_an_optimizer_with_a_reference_of_its_own() -> None:
    model = Sequential(Linear(5, 8, bias=False), Tanh(), Linear(8, 3, bias=False))
    trainer = Trainer(model, CrossEntropyLoss(), averaged(Muon, 0.5)(model, lr=0.01))
    examples = Examples(EXAMPLES.input.astype(np.float32), EXAMPLES.target)
    checks = [step.check for step in trainer.epoch(examples, 6, seed=0, epoch=0)]
    assert all(check is not None and "0.weight.ema" in check.plan.tensors for check in checks)


@pytest.mark.parametrize("memory", [0, 64_000_000])
def test_a_wrong_average_is_found(memory: int) -> None:
    model = net("float32")
    trainer = Trainer(model, CrossEntropyLoss(), averaged(SGD, 0.9)(model, lr=0.1), check_memory=memory)

    def step(right: Any, optimizer: Any) -> None:
        right(optimizer)
        if optimizer.num_steps == 3:
            optimizer.vectors["ema"][4] *= np.float32(1.01)

    replace_method(trainer.optimizer, "step", step)
    examples = Examples(EXAMPLES.input.astype(np.float32), EXAMPLES.target)
    with pytest.raises(GradientMismatch, match=r"wrong first in optimizer: 0\.weight\.ema"):
        list(trainer.epoch(examples, 6, seed=0, epoch=0))


@pytest.mark.parametrize("memory", [0, 64_000_000])
def test_a_wrong_step_is_blamed_and_not_its_average(memory: int, monkeypatch: pytest.MonkeyPatch) -> None:
    right = SGD.move

    def wrong_move(self: SGD, param: Array, grad: Array, vectors: Any, coefficients: Any) -> None:
        right(self, param, grad, vectors, coefficients)
        param *= 1.01

    monkeypatch.setattr(SGD, "move", wrong_move)
    model = net("float32")
    trainer = Trainer(model, CrossEntropyLoss(), averaged(SGD, 0.9)(model, lr=0.1), check_memory=memory)
    examples = Examples(EXAMPLES.input.astype(np.float32), EXAMPLES.target)
    with pytest.raises(GradientMismatch, match=r"wrong first in optimizer: updated 0\.weight"):
        list(trainer.epoch(examples, 6, seed=0, epoch=0))


def test_training_goes_on_from_its_own_weights() -> None:
    """Also where evaluation ends in an error; and before the first step there is no average."""
    model = net()
    optimizer = averaged(SGD, 0.9)(model, lr=0.5)
    trainer = Trainer(model, CrossEntropyLoss(), optimizer, check_every=0)
    at_first = model.param_arena.copy()
    with averaged_weights(optimizer):
        np.testing.assert_array_equal(model.param_arena, at_first)
    for _ in range(3):
        trainer.train_step(*EXAMPLES)
    trained = model.param_arena.copy()
    with trainer.averaged_weights():
        np.testing.assert_array_equal(model.param_arena, optimizer.vectors["ema"])
    with pytest.raises(ValueError, match="prediction"):
        trainer.evaluate(Examples(EXAMPLES.input, EXAMPLES.target[:, np.newaxis].repeat(2, axis=1)))
    np.testing.assert_array_equal(model.param_arena, trained)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_step_that_would_be_lost_is_refused(compiled: bool) -> None:
    model = net()
    optimizer = averaged(SGD, 0.9)(model, lr=0.5)
    trainer = Trainer(model, CrossEntropyLoss(), optimizer, check_every=0, compiled=compiled)
    trainer.train_step(*EXAMPLES)
    trained = model.param_arena.copy()
    attempts: list[Callable[[], object]] = [
        lambda: trainer.step(*EXAMPLES),
        lambda: trainer.train_step(*EXAMPLES),
        lambda: list(trainer.epoch(EXAMPLES, 6, seed=0, epoch=0)),
        lambda: trainer.fit(EXAMPLES, epochs=1, batch_size=6, verbose=False),
    ]
    with trainer.averaged_weights():
        trainer.evaluate(EXAMPLES)
        for attempt in attempts:
            with pytest.raises(ValueError, match=r"^a step within averaged_weights\(\) would be lost: the model gets"):
                attempt()
    np.testing.assert_array_equal(model.param_arena, trained)
    assert (trainer.num_steps, optimizer.num_steps) == (1, 1)
    with pytest.raises(KeyError), trainer.averaged_weights():
        raise KeyError
    trainer.train_step(*EXAMPLES)
    assert trainer.num_steps == 2


def test_fit_goes_back_to_the_best_average() -> None:
    model = net()
    optimizer = averaged(SGD, 0.5)(model, lr=5.0)
    trainer = Trainer(model, CrossEntropyLoss(), optimizer, check_every=0)
    records = trainer.fit(EXAMPLES, EXAMPLES, epochs=6, batch_size=12, patience=3, verbose=False)
    best = min(record["validation_loss"] for record in records)
    other = Trainer(model, CrossEntropyLoss(), SGD(model), check_every=0)
    assert other.evaluate(EXAMPLES).loss == pytest.approx(best, rel=1e-12)


def test_the_class_is_called_as_its_optimizer() -> None:
    made = averaged(Adam, 0.9)
    assert made.__name__ == "Adam"
    optimizer = made(net(), lr=0.1)
    optimizer.model.grad_arena[...] = 1
    optimizer.step()
    for other in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        assert decay_of(other) == decay_of(optimizer) == 0.9
        other.step()
        assert other.num_steps == 2
        assert not np.array_equal(other.vectors["ema"], optimizer.vectors["ema"])
    assert decay_of(Adam(net())) is None
    for decay in (-0.1, 1, 1.1, float("nan")):
        with pytest.raises(ValueError, match=f"^decay must be at least 0 and below 1, not {decay}$"):
            averaged(Adam, decay)
    with pytest.raises(TypeError, match=r"^decay must be a number, not True$"):
        averaged(Adam, decay=True)
    no_class: Any = "Adam"
    with pytest.raises(TypeError, match=r"^optimizer_class must be a class of optimizers, not 'Adam'$"):
        averaged(no_class)
