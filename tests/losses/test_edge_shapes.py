"""Predictions without elements, without dimensions, of one row and of one element: as torch, loss by loss."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from loss_results import our_results, torch_results

from nn_manual import CrossEntropyLoss, MSELoss, TraceLoss
from nn_manual.arrays import Shape
from nn_manual.losses import Loss, NLLLoss
from nn_manual.losses.class_targets import OfClasses

SHAPES: list[Shape] = [(3,), (1,), (0, 3), (1, 3), (1, 1), (0, 3, 2), (2, 3, 0), (2, 3, 1)]
REGRESSION = [
    *itertools.product([MSELoss(), MSELoss("sum")], [(), (0,), (1,), (0, 3), (3, 0), (1, 1), (2, 0, 3)]),
    *itertools.product([TraceLoss()], [(0, 3), (3, 0), (1, 1)]),
]
CLASSIFICATION = [
    CrossEntropyLoss(reduction, smoothing, ignore_index=ignored)
    for reduction in ("mean", "sum") for smoothing in (0.0, 0.1) for ignored in (-100, 0)
] + [NLLLoss(reduction, ignore_index=ignored) for reduction in ("mean", "sum") for ignored in (-100, 0)]  # fmt: skip


def assert_as_torch(loss: Loss, prediction: np.ndarray, target: np.ndarray) -> None:
    loss.check_target(prediction, target)
    with np.errstate(invalid="ignore"):  # the mean over nothing is not a number
        ours = our_results(loss, prediction, target)
    for name, theirs in torch_results(loss, prediction, target).items():
        assert np.shape(ours[name]) == theirs.shape
        np.testing.assert_allclose(ours[name], theirs, rtol=1e-12, atol=1e-14)
    if loss.reduction == "mean" and not prediction.size:
        assert np.isnan(ours["loss"])
    assert loss.denominator(target) >= 0


@pytest.mark.parametrize(("loss", "shape"), REGRESSION, ids=repr)
def test_regression(loss: Loss, shape: Shape) -> None:
    generator = np.random.default_rng(0)
    assert_as_torch(loss, *(np.asarray(generator.standard_normal(shape)) for _ in range(2)))


@pytest.mark.parametrize("shape", SHAPES, ids=repr)
@pytest.mark.parametrize("loss", CLASSIFICATION, ids=repr)
def test_classification(loss: OfClasses, shape: Shape) -> None:
    generator = np.random.default_rng(0)
    prediction = generator.standard_normal(shape)
    axis = min(1, len(shape) - 1)
    labels = np.asarray(generator.integers(0, shape[axis], shape[:axis] + shape[axis + 1 :]))
    assert_as_torch(loss, prediction, labels)
    if loss.TAKES_PROBABILITIES and loss.ignore_index < 0:
        assert_as_torch(loss, prediction, generator.random(shape))


@pytest.mark.parametrize("shape", [(0,), (2, 0), (2, 0, 3)])
def test_a_prediction_without_classes_is_refused(shape: Shape) -> None:
    with pytest.raises(ValueError, match="CrossEntropyLoss takes a prediction of one class at least, not "):
        CrossEntropyLoss().check_target(np.zeros(shape), np.zeros(shape))
