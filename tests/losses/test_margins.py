"""Losses of labels 1 and -1."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from loss_results import our_results, torch_results

from nn_manual.losses import HingeEmbeddingLoss, Loss, SoftMarginLoss


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_torchs_soft_margin_where_it_does_not_overflow(reduction: str) -> None:
    prediction = np.random.default_rng(0).uniform(-5, 5, (4, 3))
    target = np.where(np.arange(12).reshape(4, 3) % 3, 1.0, -1.0)
    ours = our_results(SoftMarginLoss(reduction), prediction, target)
    leaf = torch.tensor(prediction, requires_grad=True)
    value = torch.nn.SoftMarginLoss(reduction=reduction)(leaf, torch.tensor(target))
    value.backward()
    assert leaf.grad is not None
    np.testing.assert_allclose(ours["loss"], value.item(), rtol=1e-14)
    np.testing.assert_allclose(ours["grad_prediction"], leaf.grad.numpy(), rtol=1e-13)


def test_a_soft_margin_overflows_nowhere() -> None:
    """Where torch's own class returns infinity, and NaN as its gradient."""
    ours = our_results(SoftMarginLoss("sum"), np.array([-1000.0, 1000.0, 800.0]), np.array([1.0, 1.0, -1.0]))
    assert ours["loss"] == 1800
    assert ours["grad_prediction"].tolist() == [-1, 0, 1]


def test_at_the_margin_torch_takes_the_slope_below_it() -> None:
    prediction, target = np.array([0.5, 0.5, 0.25, 0.75]), np.array([1.0, -1, -1, -1])
    loss = HingeEmbeddingLoss("sum", 0.5)
    ours, torchs = our_results(loss, prediction, target), torch_results(loss, prediction, target)
    assert ours["grad_prediction"].tolist() == torchs["grad_prediction"].tolist() == [1, -1, -1, 0]
    assert ours["loss"] == torchs["loss"] == 0.75


@pytest.mark.parametrize("loss", [SoftMarginLoss(), HingeEmbeddingLoss()], ids=repr)
@pytest.mark.parametrize(("target", "words"), [(0.0, "0.0 at index (1, 0)"), (np.nan, "nan at index (1, 0)")])
def test_other_labels_are_refused(loss: Loss, target: float, words: str) -> None:
    targets = np.array([[1.0, -1], [target, 2]])
    with pytest.raises(ValueError, match=re.escape(f"{type(loss).__name__}: target {words} must be 1 or -1")):
        loss.check_target(np.zeros((2, 2)), targets)


def test_a_margin_is_finite() -> None:
    with pytest.raises(ValueError, match=r"^margin must be finite, not inf$"):
        HingeEmbeddingLoss(margin=np.inf)
