"""Losses of outputs that are yes or no."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from loss_results import assert_as_torch, our_results, torch_results

from nn_manual import SGD, Conv2d, Sequential, Trainer
from nn_manual.arrays import Shape
from nn_manual.losses import BCELoss, BCEWithLogitsLoss, Loss, MultiLabelSoftMarginLoss

each_class = pytest.mark.parametrize("loss_class", [BCELoss, BCEWithLogitsLoss, MultiLabelSoftMarginLoss])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_torchs_bounds_at_certain_predictions(dtype: str, reduction: str) -> None:
    """The logarithm ends at -100, the derivative at 1e12 times the error."""
    prediction = np.array([0.0, 1, 0.5, 1e-30, 1e-45, 1 - 2**-24], dtype)
    for target in (np.zeros(6, dtype), np.ones(6, dtype), np.full(6, 0.25, dtype)):
        loss = BCELoss(reduction)
        ours, torchs = our_results(loss, prediction, target), torch_results(loss, prediction, target)
        for name in ours:
            np.testing.assert_allclose(ours[name], torchs[name], rtol=1e-5 if dtype == "float32" else 1e-12)
    assert ours["loss"] > 25


def test_a_confident_right_answer_keeps_its_digits() -> None:
    """Its gradient is exp(-40), and -exp(-40) where the answer is yes; torch's yes - target is 0 there."""
    ours = our_results(BCEWithLogitsLoss("sum"), np.array([-40.0, 40]), np.array([0.0, 1]))
    np.testing.assert_allclose(ours["grad_prediction"], [np.exp(-40), -np.exp(-40)], rtol=1e-15)
    np.testing.assert_allclose(ours["loss"], 2 * np.exp(-40), rtol=1e-15)


def test_large_logits_overflow_nowhere() -> None:
    ours = our_results(BCEWithLogitsLoss("sum"), np.array([-1000.0, 1000, 0]), np.array([1.0, 0, 0]))
    assert ours["loss"] == 2000 + np.log(2)
    assert ours["grad_prediction"].tolist() == [-1, 1, 0.5]


def test_the_mean_of_many_labels_is_that_of_binary_cross_entropy() -> None:
    generator = np.random.default_rng(0)
    prediction, target = generator.standard_normal((4, 3)), generator.random((4, 3))
    many, each = (our_results(loss(), prediction, target) for loss in (MultiLabelSoftMarginLoss, BCEWithLogitsLoss))
    for name in each:
        np.testing.assert_array_equal(many[name], each[name])
    total = our_results(MultiLabelSoftMarginLoss("sum"), prediction, target)["loss"]
    np.testing.assert_allclose(total, 4 * many["loss"], rtol=1e-15)


def test_labels_lie_behind_any_positions() -> None:
    """As torch has it: the last dimension."""
    generator = np.random.default_rng(0)
    prediction, target = generator.standard_normal((4, 2, 3)), generator.random((4, 2, 3))
    for loss in (MultiLabelSoftMarginLoss("sum", [1.0, 2, 3]), BCEWithLogitsLoss("mean", [1.0, 2, 3], [3.0, 1, 0])):
        assert_as_torch(loss, prediction, target)


@each_class
def test_a_target_is_a_probability(loss_class: Any) -> None:
    for wrong, words in [(-0.1, "-0.1"), (1.5, "1.5"), (np.nan, "nan")]:
        message = f"{loss_class.__name__}: target {words} at index (0, 1) must be a probability, from 0 to 1"
        with pytest.raises(ValueError, match=re.escape(message)):
            loss_class().check_target(np.zeros((2, 2)), np.array([[0, wrong], [1, 1]]))


@each_class
def test_a_weight_for_each_output(loss_class: Any) -> None:
    words = "weight has 2 numbers, the prediction 3 outputs: it takes one number for each output, or one for all"
    with pytest.raises(ValueError, match=f"^{loss_class.__name__}: {words}$"):
        loss_class(weight=[1.0, 2]).check_target(np.zeros((2, 3)), np.zeros((2, 3)))
    with pytest.raises(ValueError, match="weight must be finite and at least 0, not -1, that of output 1"):
        loss_class(weight=[1, -1])
    with pytest.raises(ValueError, match="weight must have a number for each output, not none at all"):
        loss_class(weight=[])


ONE_FOR_ALL: list[Loss] = [
    *(BCELoss("mean", [0.3]), BCELoss("sum", [3.0]), MultiLabelSoftMarginLoss("sum", [3.0])),
    *(BCEWithLogitsLoss(pos_weight=[2.0]), BCEWithLogitsLoss("sum", [0.3], [2.0])),
]


@pytest.mark.parametrize("loss", ONE_FOR_ALL, ids=repr)
@pytest.mark.parametrize("shape", [(4,), (4, 3), (4, 1, 5, 5), (4, 2, 5, 3)], ids=str)
def test_one_number_weighs_all_outputs(loss: Any, shape: Shape) -> None:
    """As torch broadcasts it; and as a number for each output, each of them the same."""
    generator = np.random.default_rng(0)
    prediction, target = generator.random(shape), generator.random(shape).round()
    loss.check_target(prediction, target)
    assert_as_torch(loss, prediction, target)
    names = [name for name in ("weight", "pos_weight") if getattr(loss, name, None)]
    each = replace(loss, **{name: getattr(loss, name) * shape[-1] for name in names})
    ours, those = our_results(loss, prediction, target), our_results(each, prediction, target)
    for name in ours:
        np.testing.assert_array_equal(ours[name], those[name])


def test_one_number_weighs_masks_of_images_checked_and_compiled() -> None:
    generator = np.random.default_rng(0)
    input, mask = generator.standard_normal((8, 2, 5, 5)), generator.random((8, 1, 5, 5)) > 0.5
    losses: list[list[float]] = []
    ways: list[dict[str, Any]] = [{"check_every": 0}, {"check_every": 1}, {"check_every": 0, "compiled": True}]
    for settings in ways:
        model = Sequential(Conv2d(2, 1, 3, padding=1), seed=0, dtype="float64")
        trainer = Trainer(model, BCEWithLogitsLoss(pos_weight=[2.0]), SGD(model, lr=0.1), **settings)
        losses.append([step.loss for step in trainer.epoch((input, mask), 4, seed=0, epoch=0)])
        assert losses[-1] == pytest.approx(losses[0], rel=1e-12)


def test_other_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="pos_weight must be finite and at least 0, not inf, that of output 0"):
        BCEWithLogitsLoss(pos_weight=[np.inf])
    with pytest.raises(ValueError, match="pos_weight has 2 numbers, the prediction 1 output: it takes one number for"):
        BCEWithLogitsLoss(pos_weight=[2.0, 1.0]).check_target(np.zeros((3, 1)), np.zeros((3, 1)))
    with pytest.raises(ValueError, match="MultiLabelSoftMarginLoss takes predictions"):
        MultiLabelSoftMarginLoss().check_target(np.zeros(()), np.zeros(()))


@pytest.mark.parametrize("loss", [BCELoss(), BCEWithLogitsLoss(), MultiLabelSoftMarginLoss()], ids=repr)
def test_shapes_and_dtypes_are_those_of_every_regression(loss: Loss) -> None:
    with pytest.raises(ValueError, match="takes equal shapes"):
        loss.check_target(np.zeros((2, 1)), np.zeros(2))
    with pytest.raises(TypeError, match="takes equal dtypes"):
        loss.check_target(np.zeros(2), np.zeros(2, np.int64))
