"""Losses of differences, counts and distributions: what is special about each."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from loss_results import assert_as_torch, our_results, torch_results

from nn_manual.losses import (
    GaussianNLLLoss,
    HuberLoss,
    KLDivLoss,
    L1Loss,
    PoissonNLLLoss,
    SmoothL1Loss,
)


def test_the_slope_at_a_tie_is_0() -> None:
    loss = L1Loss("sum")
    ours = our_results(loss, np.array([1.0, 2, 0]), np.array([1.0, 1, 3]))
    assert ours["grad_prediction"].tolist() == [0, 1, -1]
    assert ours["loss"] == 4


def test_where_the_pieces_of_an_error_meet() -> None:
    """At delta and beta both pieces have one slope."""
    prediction, target = np.array([0.5, -0.5, 0.25, 2]), np.zeros(4)
    for loss in (HuberLoss("sum", 0.5), SmoothL1Loss("sum", 0.5)):
        assert_as_torch(loss, prediction, target)
    assert our_results(HuberLoss("sum", 0.5), prediction, target)["grad_prediction"].tolist() == [0.5, -0.5, 0.25, 0.5]
    assert our_results(SmoothL1Loss("sum", 0.5), prediction, target)["grad_prediction"].tolist() == [1, -1, 0.5, 1]


def test_without_beta_it_is_the_absolute_error() -> None:
    generator = np.random.default_rng(0)
    prediction, target = generator.standard_normal((4, 3)), generator.choice([-1.0, 0, 1], (4, 3))
    loss, prediction[0] = SmoothL1Loss(beta=0.0), target[0]
    assert_as_torch(loss, prediction, target)
    for name, value in our_results(L1Loss(), prediction, target).items():
        np.testing.assert_array_equal(our_results(loss, prediction, target)[name], value)


def test_a_likelihood_is_that_of_scipy() -> None:
    from scipy import stats

    generator = np.random.default_rng(0)
    mean, target = generator.standard_normal(5), generator.standard_normal(5)
    ours = our_results(GaussianNLLLoss("sum", 0.3, full=True), mean, target)["loss"]
    np.testing.assert_allclose(ours, -stats.norm.logpdf(target, mean, 0.3**0.5).sum(), rtol=1e-14)
    counts = np.array([0.0, 1, 2, 30, 200])
    ours = our_results(PoissonNLLLoss("sum", full=True), np.log(counts + 1), counts)["loss"]
    exact = -stats.poisson.logpmf(counts, counts + 1).sum()
    assert abs(ours - exact) < 0.05  # Stirling's approximation of log(2!) alone is off by 0.041


def test_a_divergence_is_that_of_scipy() -> None:
    from scipy import stats

    generator = np.random.default_rng(0)
    p, q = (values / values.sum(axis=1, keepdims=True) for values in generator.random((2, 4, 3)))
    q[0] = [0, 0, 1]
    expected = stats.entropy(q, p, axis=1).mean()
    np.testing.assert_allclose(our_results(KLDivLoss("batchmean"), np.log(p), q)["loss"], expected, rtol=1e-14)
    q = np.maximum(q, 1e-300)
    ours = our_results(KLDivLoss("batchmean", log_target=True), np.log(p), np.log(q))["loss"]
    np.testing.assert_allclose(ours, expected, rtol=1e-14)


@pytest.mark.parametrize("shape", [(), (3,), (0,), (0, 3), (2, 3, 4)])
@pytest.mark.parametrize("reduction", ["mean", "sum", "batchmean"])
def test_any_shape_of_a_divergence(shape: tuple[int, ...], reduction: str) -> None:
    generator = np.random.default_rng(0)
    prediction, target = (np.asarray(generator.random(shape)) for _ in range(2))
    if reduction == "batchmean" and not shape:
        return  # torch has no batch there
    ours, torchs = (of(KLDivLoss(reduction), prediction, target) for of in (our_results, torch_results))
    for name in ours:
        np.testing.assert_allclose(ours[name], torchs[name], rtol=1e-14)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: HuberLoss(delta=0), "delta must be positive and finite, not 0"),
        (lambda: HuberLoss(delta=np.inf), "delta must be positive and finite, not inf"),
        (lambda: SmoothL1Loss(beta=-1), "beta must be at least 0 and finite, not -1"),
        (lambda: GaussianNLLLoss(var=0), "var must be positive and finite, not 0"),
        (lambda: PoissonNLLLoss(eps=0), "eps must be positive and finite, not 0"),
    ],
)
def test_settings_out_of_range(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        make()


def test_targets_out_of_range() -> None:
    one = np.ones(2)
    with pytest.raises(ValueError, match=r"^PoissonNLLLoss: target -1\.0 at index 1 must be a count, 0 or more$"):
        PoissonNLLLoss().check_target(one, np.array([0, -1.0]))
    with pytest.raises(ValueError, match=r"^KLDivLoss: target -1\.0 at index 1 must be a probability, 0 or more$"):
        KLDivLoss().check_target(one, np.array([0, -1.0]))
    KLDivLoss(log_target=True).check_target(one, np.array([0, -1.0]))
    with pytest.raises(ValueError, match=r"^PoissonNLLLoss: target -1\.0 must be a count"):
        PoissonNLLLoss().check_target(np.array(1.0), np.array(-1.0))
