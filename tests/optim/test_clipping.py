"""Clipping by value, and which clipping the settings ask for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from opaque import opaque

from nn_manual import SGD, CrossEntropyLoss, Linear, Sequential, Tanh, Trainer, clip_grad_value
from nn_manual.arrays import DTYPES, Array
from nn_manual.data import Examples
from nn_manual.optim.clipping import BOTH, NormClipping, ValueClipping, clipping_of
from nn_manual.step.slices.cut import Slicing


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("clip_value", [1e-50, 0.1, 1, 1e4])
@pytest.mark.parametrize("scale", [0.0, 1e-3, 1.0, 1e30])
def test_clipping_by_value_is_torchs(dtype: str, clip_value: float, scale: float) -> None:
    grad = (scale * np.random.default_rng(0).normal(size=1000)).astype(dtype)
    grad[:4] = [np.nan, np.inf, -np.inf, -0.0]
    parameter = torch.nn.Parameter(torch.zeros(1000, dtype=torch.from_numpy(grad).dtype))
    parameter.grad = torch.from_numpy(grad.copy())
    torch.nn.utils.clip_grad_value_([parameter], clip_value)
    clip_grad_value(grad, clip_value)
    assert grad.dtype == dtype
    np.testing.assert_array_equal(grad, parameter.grad.numpy())


def test_a_bound_beyond_the_dtype_clips_nothing() -> None:
    grad = np.array([3e38, -1, np.nan], np.float32)
    before = grad.copy()
    clip_grad_value(grad, 1e300)
    np.testing.assert_array_equal(grad, before)


def test_clipping_by_value_looks_at_no_value() -> None:
    grad, blindly = np.arange(5, dtype=np.float32), np.arange(5, dtype=np.float32)
    clip_grad_value(opaque(blindly), 2.5)
    clip_grad_value(grad, 2.5)
    np.testing.assert_array_equal(blindly, [0, 1, 2, 2.5, 2.5])
    np.testing.assert_array_equal(blindly, grad)


def test_one_of_the_settings_says_which() -> None:
    assert clipping_of(None, None) is None
    both: list[Any] = [clipping_of(0.5, None), clipping_of(None, 0.5)]
    assert both == [NormClipping(0.5), ValueClipping(0.5)]
    assert both[0] != both[1]
    with pytest.raises(ValueError, match=f"^{BOTH}$"):
        clipping_of(1.0, 1.0)
    for value in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match=f"^clip_grad_value must be above 0, not {value}$"):
            clipping_of(None, value)


EXAMPLES = Examples(np.random.default_rng(0).normal(size=(24, 5)), np.arange(24) % 3)


def trained(**settings: Any) -> Array:
    model = Sequential(Linear(5, 8), Tanh(), Linear(8, 3), dtype="float64")
    trainer = Trainer(model, CrossEntropyLoss(), SGD(model, lr=1.0), **settings)
    for epoch in range(3):
        list(trainer.epoch(EXAMPLES, 12, seed=0, epoch=epoch))
    return model.param_arena


@pytest.mark.parametrize(
    "settings",
    [
        {"check_every": 1},
        {"check_every": 2, "compiled": True},
        {"slicing": Slicing(2)},
        {"slicing": Slicing(2), "compiled": True},
        {"slicing": Slicing(2, shard_optimizer=True), "compiled": True, "check_every": 0},
    ],
)
def test_every_way_of_a_step_clips(settings: dict[str, Any]) -> None:
    plain = trained(clip_grad_value=0.01, check_every=0)
    np.testing.assert_allclose(trained(clip_grad_value=0.01, **settings), plain, rtol=1e-10)
    # 6 steps of 1 along numbers of up to 0.01
    start = Sequential(Linear(5, 8), Tanh(), Linear(8, 3), dtype="float64").param_arena
    largest = np.abs(plain - start).max()
    assert 0.02 < largest <= 0.06 + 1e-12


def test_a_compiled_step_follows_another_bound() -> None:
    """As the Trainer's other settings, it may change between two steps."""
    ends = []
    for compiled in (False, True):
        model = Sequential(Linear(5, 3), dtype="float64")
        trainer = Trainer(model, CrossEntropyLoss(), SGD(model, lr=1.0), check_every=0, compiled=compiled)
        for epoch, bound in enumerate([None, 0.01, 0.001]):
            trainer.clip_grad_value = bound
            list(trainer.epoch(EXAMPLES, 12, seed=0, epoch=epoch))
        trainer.clip_grad_value, trainer.clip_grad_norm = None, 0.01
        list(trainer.epoch(EXAMPLES, 12, seed=0, epoch=3))
        with pytest.raises(ValueError, match=f"^{BOTH}$"):
            trainer.clip_grad_value = 1.0
        assert trainer.clip_grad_value is None
        ends.append(model.param_arena)
    np.testing.assert_allclose(ends[1], ends[0], rtol=1e-10)
