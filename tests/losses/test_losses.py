"""Every loss against torch, differences, its docstring, and exact values where floating point is hard pressed."""

from __future__ import annotations

import math
import re
from dataclasses import fields
from typing import Any

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from comparing import (
    DIFFERENCE_TOLERANCE,
    TOLERANCES,
    assert_equal,
    central_differences,
    combinations,
    evaluate,
    formulas,
    freeze,
    frozen,
)
from hypothesis import given, settings

from nn_manual import CrossEntropyLoss, MSELoss, TraceLoss
from nn_manual.arrays import Array, Shape
from nn_manual.check.kinds import draw
from nn_manual.losses import Loss

REGRESSION = [MSELoss(), MSELoss("sum"), TraceLoss()]
CLASSIFICATION = [CrossEntropyLoss(reduction, s) for reduction in ("mean", "sum") for s in (0.0, 0.1, 1.0)]

each_loss = pytest.mark.parametrize("loss", [*REGRESSION, *CLASSIFICATION], ids=repr)
each_regression = pytest.mark.parametrize("loss", REGRESSION, ids=repr)
each_dtype = pytest.mark.parametrize("dtype", TOLERANCES)


def torch_results(loss: Loss, prediction: Array, target: Array) -> dict[str, Array]:
    """The value and the gradients that torch finds; of the definition where torch has no such loss."""
    tensors = [torch.from_numpy(array.copy()) for array in (prediction, target)]
    leaves = dict(zip(("prediction", "target"), tensors, strict=True))
    for tensor in leaves.values():
        tensor.requires_grad_(tensor.is_floating_point())
    if isinstance(loss, TraceLoss):
        difference = leaves["prediction"] - leaves["target"]
        value = torch.trace(difference.T @ difference)
    else:
        options = {field.name: getattr(loss, field.name) for field in fields(loss)}  # type: ignore[arg-type]  # a dataclass
        value = getattr(torch.nn, type(loss).__name__)(**options)(*leaves.values())
    value.backward()  # type: ignore[no-untyped-call]  # torch's, of a loss found by name
    gradients = {f"grad_{name}": leaf.grad.numpy() for name, leaf in leaves.items() if leaf.grad is not None}
    return {"loss": value.detach().numpy(), **gradients}


def our_results(loss: Any, prediction: Array, target: Array) -> dict[str, Array]:
    """The same of ours, which can write neither to its arguments nor to what it saves."""
    value, saved = loss.forward(frozen(prediction), frozen(target))
    gradients = {"grad_prediction": loss.backward(freeze(saved))}
    if isinstance(loss, MSELoss | TraceLoss):
        gradients["grad_target"] = loss.backward_target(saved)
    return {"loss": value, **gradients}


def assert_as_torch(loss: Loss, prediction: Array, target: Array) -> None:
    ours, reference = our_results(loss, prediction, target), torch_results(loss, prediction, target)
    assert ours.keys() == reference.keys()
    # Fully smoothed, the gradient is softmax - 1 / classes, the difference of nearly equal numbers where the logits are
    # nearly equal: torch's rounding and ours are of these numbers' size.
    scale = 0.0
    if isinstance(loss, CrossEntropyLoss) and loss.label_smoothing == 1:
        scale = 1 / prediction.shape[1] / (len(prediction) if loss.reduction == "mean" else 1)
    for name in ours:
        assert_equal(ours[name], reference[name], scale=scale if name == "grad_prediction" else 0)


def targets(loss: Loss, kind: str, shape: Shape, dtype: str, generator: np.random.Generator) -> Array:
    if isinstance(loss, CrossEntropyLoss):
        return generator.integers(0, shape[1], shape[0])
    return draw(kind, shape, dtype, generator)


@each_loss
@combinations
def test_torch_agrees(loss: Loss, kind: str, other_kind: str, dtype: str) -> None:
    generator = np.random.default_rng(0)
    for shape in [(6, 4), (1, 4), (5, 1), (1, 1)]:
        prediction = draw(kind, shape, dtype, generator)
        target = targets(loss, other_kind, shape, dtype, generator)
        assert_as_torch(loss, prediction, target)


@given(hnp.array_shapes(min_dims=0, max_dims=4, max_side=4), st.sampled_from(["mean", "sum"]))
@settings(max_examples=50, deadline=None, derandomize=True)
def test_mse_takes_any_shape_and_layout(shape: Shape, reduction: str) -> None:
    generator = np.random.default_rng(0)
    prediction, target = (np.asarray(generator.normal(size=shape)) for _ in range(2))
    loss = MSELoss(reduction)
    assert_as_torch(loss, prediction.T, target.T)


@given(st.integers(1, 5), st.integers(1, 5), st.booleans(), st.sampled_from([TraceLoss(), *CLASSIFICATION]))
@settings(max_examples=50, deadline=None, derandomize=True)
def test_strided_matrices(batch: int, outputs: int, backwards: bool, loss: Loss) -> None:
    generator = np.random.default_rng(0)
    prediction = generator.normal(size=(outputs, 2 * batch)).T[:: -2 if backwards else 2]
    target = targets(loss, "random", (batch, outputs), "float64", generator)[::-1]
    assert_as_torch(loss, prediction, target)


@pytest.mark.parametrize("loss", [loss for loss in [*REGRESSION, *CLASSIFICATION] if loss.reduction == "sum"], ids=repr)
@each_dtype
def test_the_sum_over_an_empty_batch_is_zero(loss: Loss, dtype: str) -> None:
    prediction = np.zeros((0, 3), dtype)
    target = targets(loss, "zero", (0, 3), dtype, np.random.default_rng(0))
    assert_as_torch(loss, prediction, target)
    assert loss.forward(prediction, target)[0] == 0


@each_loss
def test_differences_agree(loss: Any) -> None:
    generator = np.random.default_rng(0)
    prediction = draw("random", (5, 3), "float64", generator)
    target = targets(loss, "random", (5, 3), "float64", generator)
    ours = our_results(loss, prediction, target)
    expected = central_differences(lambda prediction: loss.forward(prediction, target)[0], prediction)
    assert_equal(ours["grad_prediction"], expected, tolerance=DIFFERENCE_TOLERANCE)
    if "grad_target" in ours:
        expected = central_differences(lambda target: loss.forward(prediction, target)[0], target)
        assert_equal(ours["grad_target"], expected, tolerance=DIFFERENCE_TOLERANCE)


@each_loss
@each_dtype
@pytest.mark.parametrize("kind", ["random", "tied"])
def test_docstring_agrees(loss: Loss, dtype: str, kind: str) -> None:
    generator = np.random.default_rng(0)
    prediction = draw(kind, (5, 3), dtype, generator)
    target = targets(loss, kind, (5, 3), dtype, generator)
    sizes = {"N": prediction.size, "batch": len(prediction), "classes": prediction.shape[1]}
    known = {"prediction": prediction, "target": target, "logsumexp": np.logaddexp.reduce, **sizes}
    stated = evaluate(loss, known)
    for name, value in our_results(loss, prediction, target).items():
        # A formula with a float64 constant in it, eye, is float64: what is stated has one dtype, ours.
        assert_equal(value, np.asarray(stated[name], dtype))


@pytest.mark.parametrize("loss_class", [MSELoss, TraceLoss, CrossEntropyLoss])
def test_docstring_states_every_gradient(loss_class: type[Loss]) -> None:
    stated = {line.name for line in formulas(loss_class)}
    gradients = {"grad_prediction"} | ({"grad_target"} if hasattr(loss_class, "backward_target") else set())
    assert stated - {"q", "log_probability"} == {"loss", *gradients}


@each_loss
def test_runs_twice_before_either_is_taken_back(loss: Any) -> None:
    generator = np.random.default_rng(0)
    batches = [
        (draw("random", (3, 4), "float64", generator), targets(loss, "random", (3, 4), "float64", generator))
        for _ in range(2)
    ]
    saved = [loss.forward(*batch)[1] for batch in batches]
    for batch, its_saved in zip(batches, saved, strict=True):
        np.testing.assert_array_equal(loss.backward(its_saved), our_results(loss, *batch)["grad_prediction"])


@pytest.mark.parametrize("loss", CLASSIFICATION, ids=repr)
@each_dtype
@pytest.mark.parametrize("scale", [1000, 1e30])
def test_huge_logits(loss: CrossEntropyLoss, dtype: str, scale: float) -> None:
    prediction = np.array([[1, -1, 0], [-1, 1, 1], [-1, -1, -1], [0, 0, 1]], dtype) * np.asarray(scale, dtype)
    for target in [np.array([0, 1, 2, 0]), np.array([1, 0, 0, 2])]:
        assert_as_torch(loss, prediction, target)


@pytest.mark.parametrize("margin", [5.0, 18.420681, 50.0, 80.0])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_confident_prediction_keeps_its_digits(margin: float, dtype: str) -> None:
    """For logits (margin, 0) the loss is log(1 + exp(-margin)), 1e-8 for the second margin, and the gradients are
    -+ 1 / (1 + exp(margin)). What adds to 1 first is left with no digit of it in float32.
    """
    prediction = np.array([[margin, 0], [-margin, 0]], dtype)
    ours = our_results(CrossEntropyLoss("sum"), prediction, np.array([0, 1]))
    distance = float(prediction[0, 0])  # margin rounded to dtype
    gradient = 1 / (1 + math.exp(distance))
    # exp's argument has no rounding error of its own, so each function is off by a rounding or two: 4 in all.
    tolerance = 4 * float(np.finfo(dtype).eps)
    np.testing.assert_allclose(float(ours["loss"]), 2 * math.log1p(math.exp(-distance)), rtol=tolerance)
    expected = [[-gradient, gradient], [gradient, -gradient]]
    np.testing.assert_allclose(ours["grad_prediction"].astype(float), expected, rtol=tolerance)


@pytest.mark.parametrize(("loss_class"), [MSELoss, CrossEntropyLoss])
def test_reductions_are_mean_and_sum(loss_class: Any) -> None:
    for reduction in ("none", "Mean", ""):
        with pytest.raises(ValueError, match=f"^reduction must be mean or sum, not '{reduction}'$"):
            loss_class(reduction)


@pytest.mark.parametrize("label_smoothing", [-0.1, 1.5, math.nan])
def test_label_smoothing_out_of_range(label_smoothing: float) -> None:
    with pytest.raises(ValueError, match=f"^label_smoothing must be between 0 and 1, not {label_smoothing}$"):
        CrossEntropyLoss(label_smoothing=label_smoothing)


@each_regression
def test_nothing_is_broadcast_or_converted(loss: Loss) -> None:
    name = type(loss).__name__
    for shape, other in [((4, 1), (4, 2)), ((4, 1), (4,)), ((1, 3), (4, 3))]:
        message = f"{name} takes equal shapes, not prediction {shape} and target {other}"
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            loss.forward(np.ones(shape), np.ones(other))
    message = f"{name} takes equal dtypes, not prediction float32 and target float64"
    with pytest.raises(TypeError, match=f"^{message}$"):
        loss.forward(np.ones((2, 2), np.float32), np.ones((2, 2)))


@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 4)])
def test_a_trace_needs_matrices(shape: Shape) -> None:
    with pytest.raises(ValueError, match=re.escape(f"TraceLoss takes matrices, not arrays of shape {shape}")):
        TraceLoss().forward(np.ones(shape), np.ones(shape))


def test_labels_out_of_range() -> None:
    prediction = np.zeros((4, 3))
    for label in (-1, 3, -(2**63), 2**63 - 1):
        message = f"CrossEntropyLoss: label {label} at index 2 is outside 0 ... 2"
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            CrossEntropyLoss().forward(prediction, np.array([0, 2, label, label]))


def test_targets_that_are_no_class_indices() -> None:
    for dtype in ("int32", "uint8", "bool", "float64"):
        message = f"^CrossEntropyLoss takes int64 class indices as target, not {dtype}$"
        with pytest.raises(TypeError, match=message):
            CrossEntropyLoss().forward(np.zeros((2, 3)), np.zeros(2, dtype))
    for shape, target_shape in [((2, 3), (2, 3)), ((2, 3), (3,)), ((3,), (3,)), ((2, 3, 4), (2,)), ((2, 3), (2, 1))]:
        message = "CrossEntropyLoss takes a prediction (batch, classes) and a target (batch,), "
        message += f"not {shape} and {target_shape}"
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            CrossEntropyLoss().forward(np.zeros(shape), np.zeros(target_shape, np.int64))
