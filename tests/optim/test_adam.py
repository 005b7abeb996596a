"""Adam and AdamW: torch's trajectories, and 200 steps of a training that end where torch's do."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from comparing import TOLERANCES, assert_equal
from slow_cases import crossed
from trajectories import largest_difference, start_as, train_beside, trajectory

from nn_manual import Adam, AdamW, Linear, MSELoss, Sequential, Tanh, Trainer
from nn_manual.arrays import BLOCK_SIZE

each_dtype = pytest.mark.parametrize("dtype", TOLERANCES)
each_class = pytest.mark.parametrize("optimizer_class", [Adam, AdamW])

SETTINGS = [
    {"betas": betas, "eps": eps, "weight_decay": decay, "amsgrad": amsgrad, "maximize": maximize}
    for betas, eps, decay, amsgrad, maximize in itertools.product(
        ((0.9, 0.999), (0.5, 0.6), (0.0, 0.9)), (1e-8, 0.1), (0.0, 0.1), (False, True), (False, True)
    )
]

#: Beyond one block, which ends in the middle of the first weight.
LARGE = (520, 520)
assert LARGE[0] * LARGE[1] > BLOCK_SIZE


@pytest.mark.parametrize(("options", "dtype"), crossed(SETTINGS, list(TOLERANCES)), ids=str)
@each_class
def test_the_trajectory_is_torchs(optimizer_class: Any, dtype: str, options: dict[str, Any]) -> None:
    for ours, theirs in zip(*trajectory(optimizer_class.__name__, (3, 4), dtype, options), strict=True):
        assert_equal(ours, theirs)


@each_dtype
@each_class
def test_the_trajectory_of_several_blocks_is_torchs(optimizer_class: Any, dtype: str) -> None:
    options = {"weight_decay": 0.1, "amsgrad": True, "maximize": True}
    for ours, theirs in zip(*trajectory(optimizer_class.__name__, LARGE, dtype, options), strict=True):
        assert_equal(ours, theirs)


@each_class
def test_defaults_are_torchs(optimizer_class: Any) -> None:
    ours = optimizer_class(Sequential())
    theirs = getattr(torch.optim, optimizer_class.__name__)([torch.zeros(1)])
    assert {name: getattr(ours, name) for name in ours.setting_names()} == {
        name: theirs.defaults[name] for name in ("lr", "betas", "eps", "weight_decay", "amsgrad", "maximize")
    }


def test_two_steps_by_hand() -> None:
    model = Sequential(Linear(1, 1, bias=False), dtype="float64")
    model.param_arena[0] = 1.0
    optimizer = AdamW(model, lr=0.1, betas=(0.5, 0.75), eps=0.25, weight_decay=0.5, amsgrad=True)
    model.grad_arena[0] = 2.0
    optimizer.step()
    # moments 1 and 1; mean 1 / 0.5 = 2, mean_sq 1 / 0.25 = 4
    after_one = 1.0 * (1 - 0.1 * 0.5) - 0.1 * 2 / (2 + 0.25)
    assert model.param_arena[0] == pytest.approx(after_one, rel=1e-15)
    model.grad_arena[0] = 0.0
    optimizer.step()
    # moments 0.5 and 0.75, the largest second one 1
    after_two = after_one * 0.95 - 0.1 * (0.5 / 0.75) / (math.sqrt(1 / (1 - 0.75**2)) + 0.25)
    assert model.param_arena[0] == pytest.approx(after_two, rel=1e-15)
    assert {name: vector[0] for name, vector in optimizer.vectors.items()} == {
        "exp_avg": 0.5,
        "exp_avg_sq": 0.75,
        "max_exp_avg_sq": 1.0,
    }


def test_l2_goes_through_the_moments_and_decoupled_decay_does_not() -> None:
    moved = {}
    for optimizer_class in (Adam, AdamW):
        model = Sequential(Linear(1, 1, bias=False), dtype="float64")
        model.param_arena[0], model.grad_arena[0] = 1.0, 0.0
        optimizer = optimizer_class(model, lr=0.1, weight_decay=0.01)
        optimizer.step()
        moved[optimizer_class] = 1 - model.param_arena[0]
    assert moved[Adam] == pytest.approx(0.1, rel=1e-5)  # one step of the size lr
    assert moved[AdamW] == pytest.approx(0.1 * 0.01, rel=1e-12)


def test_200_steps_end_where_torchs_do() -> None:
    """The same weights and batches, each side with its own gradients."""
    generator = np.random.default_rng(0)
    model = Sequential(Linear(4, 8), Tanh(), Linear(8, 3), dtype="float64")
    layers = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)).double()
    start_as(model, layers)
    start = model.param_arena.copy()
    trainer = Trainer(model, MSELoss(), AdamW(model, lr=0.01, weight_decay=0.1), check_every=0)
    optimizer = torch.optim.AdamW(layers.parameters(), lr=0.01, weight_decay=0.1)
    batches = [(generator.normal(size=(16, 4)), generator.normal(size=(16, 3))) for _ in range(200)]
    train_beside(trainer, layers, torch.nn.MSELoss(), optimizer, None, batches)
    assert largest_difference(model, layers) < 1e-9
    assert np.abs(model.param_arena - start).max() > 0.1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lr": -0.1}, "lr must be at least 0, not -0.1"),
        ({"eps": -1e-8}, "eps must be at least 0, not -1e-08"),
        ({"weight_decay": math.nan}, "weight_decay must be at least 0, not nan"),
        ({"betas": (0.9, 1.0)}, r"betas must be at least 0 and below 1, not \[0.9, 1.0\]"),
        ({"betas": (-0.1, 0.9)}, r"betas must be at least 0 and below 1, not \[-0.1, 0.9\]"),
    ],
)
@each_class
def test_values_out_of_range_are_named(optimizer_class: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        optimizer_class(Sequential(), **options)


@each_class
def test_the_vectors_have_torchs_names(optimizer_class: Any) -> None:
    model = Sequential(Linear(2, 3))
    assert list(optimizer_class(model).vectors) == ["exp_avg", "exp_avg_sq"]
    assert list(optimizer_class(model, amsgrad=True).vectors) == ["exp_avg", "exp_avg_sq", "max_exp_avg_sq"]


@each_class
def test_the_examples_use_every_setting(optimizer_class: Any) -> None:
    examples = optimizer_class.examples()
    assert {*set().union(*examples), "lr"} == set(optimizer_class.setting_names())
    assert {} in examples
    for example in examples:
        optimizer_class(Sequential(), **example)
