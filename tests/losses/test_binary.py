"""Losses of outputs that are yes or no."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from loss_results import assert_as_torch, our_results, torch_results

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
    with pytest.raises(ValueError, match="weight has 2 numbers, the prediction 3 outputs"):
        loss_class(weight=[1.0, 2]).check_target(np.zeros((2, 3)), np.zeros((2, 3)))
    with pytest.raises(ValueError, match="weight must be finite and at least 0, not -1, that of output 1"):
        loss_class(weight=[1, -1])
    with pytest.raises(ValueError, match="weight must have a number for each output, not none at all"):
        loss_class(weight=[])


def test_other_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="pos_weight must be finite and at least 0, not inf, that of output 0"):
        BCEWithLogitsLoss(pos_weight=[np.inf])
    with pytest.raises(ValueError, match="pos_weight has 1 numbers, the prediction 2 outputs"):
        BCEWithLogitsLoss(pos_weight=[2.0]).check_target(np.zeros((3, 2)), np.zeros((3, 2)))
    with pytest.raises(ValueError, match="MultiLabelSoftMarginLoss takes predictions"):
        MultiLabelSoftMarginLoss().check_target(np.zeros(()), np.zeros(()))


@pytest.mark.parametrize("loss", [BCELoss(), BCEWithLogitsLoss(), MultiLabelSoftMarginLoss()], ids=repr)
def test_shapes_and_dtypes_are_those_of_every_regression(loss: Loss) -> None:
    with pytest.raises(ValueError, match="takes equal shapes"):
        loss.check_target(np.zeros((2, 1)), np.zeros(2))
    with pytest.raises(TypeError, match="takes equal dtypes"):
        loss.check_target(np.zeros(2), np.zeros(2, np.int64))
