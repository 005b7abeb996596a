"""The hinge loss of labels: its kink, its shapes, rows with all labels or none, and what it refuses."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from loss_results import assert_as_torch, our_results, torch_results

from nn_manual import SGD, Linear, Sequential, Trainer
from nn_manual.arrays import Shape
from nn_manual.losses import MultiLabelMarginLoss
from nn_manual.step.slices.cut import Slicing

each_reduction = pytest.mark.parametrize("reduction", ["mean", "sum"])


def test_by_hand() -> None:
    prediction = np.array([[0.5, 1.5, 2.0, 0.25], [4.0, 0.0, 3.5, 9.0]])
    target = np.array([[1.0, 0, 0, 1], [1, 0, 0, 1]])
    ours = our_results(MultiLabelMarginLoss("sum"), prediction, target)
    # To 1.5 and 2 the first row's 0.5 lacks 2 and 2.5, and 0.25 lacks 2.25 and 2.75; the second row's 4 lacks 0.5.
    assert ours["loss"] == (2 + 2.5 + 2.25 + 2.75 + 0.5) / 4
    np.testing.assert_array_equal(ours["grad_prediction"], np.array([[-2, 2, 2, -2], [-1, 0, 1, 0]]) / 4)
    mean = our_results(MultiLabelMarginLoss(), prediction, target)
    assert mean["loss"] == ours["loss"] / 2
    np.testing.assert_array_equal(mean["grad_prediction"], ours["grad_prediction"] / 2)


@pytest.mark.parametrize(
    ("prediction", "target", "grad"),
    [
        ([2.0, 1.0, 1.5], [1.0, 0, 0], [-1, 0, 1]),
        ([1.0, 2.0, 1.0, 2.0], [0.0, 1, 0, 1], [0, 0, 0, 0]),
        ([1.0, 2.0, 1.5, 1.0], [0.0, 1, 0, 1], [1, -1, 2, -2]),
        ([0.0, 0.0, 0.0, 0.0], [0.0, 1, 1, 1], [3, -1, -1, -1]),
    ],
)
def test_where_exactly_nothing_is_lacking_torch_takes_no_slope(
    prediction: list[float], target: list[float], grad: list[int]
) -> None:
    given = np.array([prediction]), np.array([target])
    loss = MultiLabelMarginLoss("sum")
    ours, torchs = our_results(loss, *given), torch_results(loss, *given)
    np.testing.assert_array_equal(ours["grad_prediction"], np.array([grad]) / len(grad))
    np.testing.assert_array_equal(torchs["grad_prediction"], ours["grad_prediction"])


@each_reduction
@pytest.mark.parametrize("labels", [0.0, 1.0])
@pytest.mark.parametrize("shape", [(3,), (4, 3), (2, 1)])
def test_without_a_pair_there_is_no_loss(reduction: str, labels: float, shape: Shape) -> None:
    prediction = np.random.default_rng(0).standard_normal(shape)
    ours = our_results(MultiLabelMarginLoss(reduction), prediction, np.full(shape, labels))
    assert ours["loss"] == 0
    np.testing.assert_array_equal(ours["grad_prediction"], np.zeros(shape))
    assert_as_torch(MultiLabelMarginLoss(reduction), prediction, np.full(shape, labels))


@each_reduction
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(3,), (1,), (1, 1), (5, 1), (1, 4), (7, 300)])
def test_shapes(reduction: str, dtype: str, shape: Shape) -> None:
    """Of many numbers, the gradient has exactly torch's counts, though some scores tie."""
    generator = np.random.default_rng(0)
    loss = MultiLabelMarginLoss(reduction)
    prediction = (generator.integers(-40, 40, shape) / 16).astype(dtype)
    target = generator.integers(0, 2, shape).astype(dtype)
    loss.check_target(prediction, target)
    assert_as_torch(loss, prediction, target)
    one = shape[-1] * (len(prediction) if reduction == "mean" and len(shape) > 1 else 1)
    ours, theirs = (
        np.rint(results(loss, prediction, target)["grad_prediction"] * one) for results in (our_results, torch_results)
    )
    np.testing.assert_array_equal(ours, theirs)


def test_a_small_lack_far_from_0_keeps_its_digits() -> None:
    """Each gap is the difference of neighbours, and nothing cancels behind it."""
    prediction = np.array([[1e6 + 1, 1e6 + 0.0625, 1e6 + 0.125, 1e6 + 0.1875]], np.float32)
    value = our_results(MultiLabelMarginLoss("sum"), prediction, np.array([[1, 0, 0, 0]], np.float32))["loss"]
    assert value == np.float32((0.0625 + 0.125 + 0.1875) / 4)


def test_the_mean_over_no_rows_is_not_a_number() -> None:
    value, saved = MultiLabelMarginLoss().forward(np.zeros((0, 3)), np.zeros((0, 3)))
    assert np.isnan(value)
    assert MultiLabelMarginLoss().backward(saved).shape == (0, 3)


def test_slices_and_compiled_steps_do_the_same() -> None:
    generator, ends = np.random.default_rng(0), []
    data = generator.standard_normal((20, 5)), generator.integers(0, 2, (20, 4)).astype(float)
    ways: list[dict[str, Any]] = [{"check_every": 0}, {"slicing": Slicing(3)}, {"compiled": True, "check_every": 2}]
    for settings in ways:
        model = Sequential(Linear(5, 4), dtype="float64")
        trainer = Trainer(model, MultiLabelMarginLoss(), SGD(model, lr=0.5), **settings)
        for epoch in range(2):
            list(trainer.epoch(data, 10, seed=0, epoch=epoch))
        ends.append(model.param_arena)
    for end in ends[1:]:
        np.testing.assert_allclose(end, ends[0], rtol=1e-11)


def test_targets_are_made_of_any_numbers() -> None:
    made = MultiLabelMarginLoss().as_target(np.array([[-1.5, 0.0, 1e-30, 7]], np.float32))
    assert made.dtype == np.float32
    np.testing.assert_array_equal(made, [[0, 0, 1, 1]])


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ([[0.0, 1, 0], [1, 0.5, 0]], "MultiLabelMarginLoss: target 0.5 at index (1, 1) must be 1 or 0"),
        ([0.0, -1], "MultiLabelMarginLoss: target -1.0 at index 1 must be 1 or 0"),
        (np.zeros((2, 0)), "MultiLabelMarginLoss takes a prediction of one class at least, not (2, 0)"),
        (0.0, "MultiLabelMarginLoss takes a prediction (batch, classes), not ()"),
        (np.zeros((2, 3, 4)), "MultiLabelMarginLoss takes a prediction (batch, classes), not (2, 3, 4)"),
    ],
)
def test_targets_that_do_not_fit(target: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        MultiLabelMarginLoss().check_target(np.zeros(np.shape(target)), np.array(target))
