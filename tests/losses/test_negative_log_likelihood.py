"""NLLLoss: weights, ignored rows, positions, and LogSoftmax before it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from comparing import TOLERANCES, assert_equal, combinations
from loss_results import WEIGHTS, assert_as_torch, likelihoods_with_weights, our_results, torch_results

from nn_manual import CrossEntropyLoss, LogSoftmax, NLLLoss, Sequential
from nn_manual.arrays import Shape
from nn_manual.check.catalogue.input_kinds import draw

LOSSES = [NLLLoss(), NLLLoss("sum"), *likelihoods_with_weights(WEIGHTS[:4])]
each_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)


@each_loss
@combinations
def test_torch_agrees(loss: NLLLoss, kind: str, other_kind: str, dtype: str) -> None:
    generator = np.random.default_rng(len(kind) + len(other_kind))
    for batch in (6, 2):
        prediction, target = draw(kind, (batch, 4), dtype, generator), generator.integers(0, 4, batch)
        target[0], target[1] = 2, loss.ignore_index
        assert_as_torch(loss, prediction, target)


@each_loss
@pytest.mark.parametrize("positions", [(), (3,), (2, 3)])
@pytest.mark.parametrize("dtype", TOLERANCES)
def test_torch_agrees_with_positions(loss: NLLLoss, positions: Shape, dtype: str) -> None:
    generator = np.random.default_rng(len(positions))
    for batch in (5, 1):
        prediction = draw("random", (batch, 4, *positions), dtype, generator)
        target = generator.integers(0, 4, (batch, *positions))
        target.flat[0] = 3
        loss.check_target(prediction, target)
        assert_as_torch(loss, prediction, target)


@each_loss
def test_behind_log_softmax_it_is_cross_entropy(loss: NLLLoss) -> None:
    generator = np.random.default_rng(0)
    logits, target = generator.normal(size=(6, 4)), generator.integers(0, 4, 6)
    model = Sequential(LogSoftmax(1), dtype="float64")
    output, saved = model.forward(logits)
    ours = our_results(loss, output, target)
    expected = our_results(CrossEntropyLoss(loss.reduction, 0.0, loss.weight, loss.ignore_index), logits, target)
    assert_equal(ours["loss"], expected["loss"])
    assert_equal(model.backward(saved, ours["grad_prediction"]), expected["grad_prediction"])
    assert loss.denominator(target) == CrossEntropyLoss("mean", 0.0, loss.weight, loss.ignore_index).denominator(target)


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")  # 0 / 0 is what is tested
@pytest.mark.parametrize("weight", [None, WEIGHTS[:3]])
def test_where_nothing_counts_a_mean_is_no_number_and_its_gradient_zero(weight: list[float] | None) -> None:
    prediction, target = np.ones((2, 3)), np.full(2, -100)
    for reduction, expected in (("mean", math.nan), ("sum", 0.0)):
        loss = NLLLoss(reduction, weight)
        for results in (our_results(loss, prediction, target), torch_results(loss, prediction, target)):
            np.testing.assert_array_equal(results["loss"], expected)
            assert not results["grad_prediction"].any()


def test_what_it_refuses() -> None:
    prediction = np.zeros((2, 3))
    with pytest.raises(TypeError, match=r"^NLLLoss takes int64 class indices as target, not float64$"):
        NLLLoss().check_target(prediction, prediction)
    words = r"^NLLLoss takes a prediction \(batch, classes, \.\.\.\), and as target indices \(batch, \.\.\.\), not "
    with pytest.raises(ValueError, match=words + r"\(2, 3\) and int64 \(3,\)"):
        NLLLoss().check_target(prediction, np.zeros(3, np.int64))
    with pytest.raises(ValueError, match=r"^NLLLoss: label 3 at index 1 is outside 0 \.\.\. 2$"):
        NLLLoss().check_target(prediction, np.array([0, 3]))
    with pytest.raises(ValueError, match=r"^NLLLoss has a weight for 2 classes, the prediction 3$"):
        NLLLoss(weight=[1, 2]).check_target(prediction, np.array([0, 1]))
    with pytest.raises(ValueError, match=r"^weight must be finite and at least 0, not -1\.0, that of class 1$"):
        NLLLoss(weight=[1, -1])
    with pytest.raises(ValueError, match=r"^reduction must be mean or sum, not 'none'$"):
        NLLLoss("none")
