"""The hinge loss of classes: its kink, its shapes, and what it refuses."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from loss_results import assert_as_torch, our_results, torch_results

from nn_manual import SGD, Linear, Sequential, Trainer
from nn_manual.losses import MultiMarginLoss
from nn_manual.step.slices.cut import Slicing


def test_by_hand() -> None:
    prediction, target = np.array([[1.0, 0.5, 3.0], [0.0, 5.0, 4.5]]), np.array([0, 1])
    ours = our_results(MultiMarginLoss("sum", weight=[2.0, 1.0, 5.0]), prediction, target)
    # the first row lacks 0.5 and 3, and weighs 2; the second lacks nothing and 0.5
    assert ours["loss"] == pytest.approx((2 * 3.5 + 0.5) / 3, rel=1e-15)
    np.testing.assert_allclose(ours["grad_prediction"], np.array([[-4, 2, 2], [0, -1, 1]]) / 3, rtol=1e-15)
    squared = our_results(MultiMarginLoss("mean", 2), prediction, target)
    assert squared["loss"] == pytest.approx((0.25 + 9 + 0.25) / 6, rel=1e-15)
    np.testing.assert_allclose(squared["grad_prediction"], np.array([[-7, 1, 6], [0, -1, 1]]) / 6, rtol=1e-15)


def test_where_exactly_nothing_is_lacking_torch_takes_no_slope() -> None:
    prediction, target = np.array([[2.0, 1.0, 1.5]]), np.array([0])
    loss = MultiMarginLoss("sum")
    ours, torchs = our_results(loss, prediction, target), torch_results(loss, prediction, target)
    np.testing.assert_array_equal(ours["grad_prediction"], torchs["grad_prediction"])
    np.testing.assert_allclose(ours["grad_prediction"], [[-1 / 3, 0, 1 / 3]])


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("shape", [(3,), (1,), (1, 1), (5, 1), (1, 4)])
def test_shapes(reduction: str, p: int, shape: tuple[int, ...]) -> None:
    generator = np.random.default_rng(0)
    target = np.asarray(generator.integers(0, shape[-1], shape[:-1]))
    loss = MultiMarginLoss(reduction, p, 0.7, [0.5 + number for number in range(shape[-1])])
    loss.check_target(prediction := generator.normal(size=shape), target)
    assert_as_torch(loss, prediction, target)
    assert loss.denominator(target) == (shape[0] if len(shape) > 1 else 1)


def test_the_mean_over_nothing_is_not_a_number() -> None:
    value, saved = MultiMarginLoss().forward(np.zeros((0, 3)), np.zeros(0, np.int64))
    assert np.isnan(value)
    assert saved.lack.shape == (0, 3)


def test_slices_and_compiled_steps_do_the_same() -> None:
    generator, ends = np.random.default_rng(0), []
    data = generator.normal(size=(20, 5)), generator.integers(0, 3, 20)
    ways: list[dict[str, Any]] = [{"check_every": 0}, {"slicing": Slicing(3)}, {"compiled": True, "check_every": 2}]
    for settings in ways:
        model = Sequential(Linear(5, 3), dtype="float64")
        trainer = Trainer(model, MultiMarginLoss("mean", 2, 0.5, [1.0, 2.0, 0.5]), SGD(model, lr=0.5), **settings)
        for epoch in range(2):
            list(trainer.epoch(data, 10, seed=0, epoch=epoch))
        ends.append(model.param_arena)
    for end in ends[1:]:
        np.testing.assert_allclose(end, ends[0], rtol=1e-11)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"p": 3}, "p must be 1 or 2, not 3"),
        ({"margin": np.inf}, "margin must be finite, not inf"),
        ({"weight": [1.0, -2.0]}, "weight must be finite and at least 0, not -2.0, that of output 1"),
        ({"reduction": "none"}, "reduction must be mean or sum, not 'none'"),
    ],
)
def test_settings_out_of_range(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        MultiMarginLoss(**settings)


@pytest.mark.parametrize(
    ("prediction", "target", "message"),
    [
        ((2, 3), [0, 3], "MultiMarginLoss: label 3 at index 1 is outside 0 ... 2"),
        ((2, 3), [-100, 1], "MultiMarginLoss: label -100 at index 0 is outside 0 ... 2"),
        ((2, 3), [0, 1, 2], "MultiMarginLoss takes a prediction (batch, classes), and as target indices (batch,), "
         "not (2, 3) and int64 (3,)"),
        ((2, 3, 4), [0, 1], "MultiMarginLoss takes a prediction (batch, classes), and as target indices (batch,), "
         "not (2, 3, 4) and int64 (2,)"),
        ((2, 0), [0, 1], "MultiMarginLoss takes a prediction of one class at least, not (2, 0)"),
        ((2, 4), [0, 1], "MultiMarginLoss has a weight for 3 classes, the prediction 4"),
        ((2, 3), [0.0, 1.0], "MultiMarginLoss takes int64 class indices as target, not float64"),
    ],
)  # fmt: skip - a case in two lines
def test_targets_that_do_not_fit(prediction: tuple[int, ...], target: list[float], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=f"^{re.escape(message)}$"):
        MultiMarginLoss(weight=[1.0, 2, 3]).check_target(np.zeros(prediction), np.array(target))
