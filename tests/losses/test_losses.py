"""Every loss against torch, differences and its docstring."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from comparing import (
    DIFFERENCE_TOLERANCE,
    TOLERANCES,
    assert_equal,
    central_differences,
    combinations,
    evaluate,
)
from every_component import each
from hypothesis import given, settings
from loss_results import CLASSIFICATION, REGRESSION, assert_as_torch, our_results, targets, with_weights

from nn_manual import SGD, CrossEntropyLoss, Linear, MSELoss, Sequential, TraceLoss, Trainer, check_gradients
from nn_manual.arrays import Array, Shape
from nn_manual.check.catalogue.input_kinds import draw
from nn_manual.check.catalogue.targets import probabilities
from nn_manual.defaults import defines
from nn_manual.exercises.kinds.formula_words import words_of_paths
from nn_manual.exercises.kinds.formulas import formulas
from nn_manual.losses import CTCLoss, KLDivLoss, Loss
from nn_manual.registry import components

each_loss = pytest.mark.parametrize("loss", [*REGRESSION, *CLASSIFICATION], ids=repr)
each_regression = pytest.mark.parametrize("loss", REGRESSION, ids=repr)
each_dtype = pytest.mark.parametrize("dtype", TOLERANCES)


def test_every_loss_is_in_a_list() -> None:
    assert {type(loss) for loss in [*REGRESSION, *CLASSIFICATION]} == set(components(Loss).values())


@each("loss", [(loss,) for loss in [*REGRESSION, *CLASSIFICATION]])
@combinations
def test_torch_agrees(loss: Loss, kind: str, other_kind: str, dtype: str) -> None:
    generator = np.random.default_rng(0)
    for shape in [(6, 4), (1, 4), (5, 1), (1, 1)]:
        prediction = draw(kind, shape, dtype, generator, loss.domain)
        target = targets(loss, other_kind, shape, dtype, generator)
        assert_as_torch(loss, prediction, target)


def test_the_denominator_is_what_puts_batches_together() -> None:
    target = np.array([0, 1, 1, 2, -100])
    assert MSELoss().denominator(np.ones((5, 2))) == TraceLoss().denominator(np.ones((5, 2))) == 5
    assert CrossEntropyLoss().denominator(target) == 4
    assert CrossEntropyLoss(ignore_index=1).denominator(target[:4]) == 2
    assert CrossEntropyLoss(weight=[0.5, 2, 4]).denominator(target) == 0.5 + 2 + 2 + 4
    assert CrossEntropyLoss(weight=[0.5, 2, 4]).counted(target).tolist() == [True, True, True, True, False]
    assert MSELoss().counted(np.ones((2, 3))).tolist() == [[True] * 3] * 2
    assert CrossEntropyLoss().denominator(target.reshape(1, 5)) == 4
    # Of probabilities, a number for each row: 2 examples of 4 positions.
    assert CrossEntropyLoss(weight=[0.5, 2, 4]).denominator(np.ones((2, 3, 4))) == 8
    prediction = np.random.default_rng(0).standard_normal((5, 3))
    for loss in (CrossEntropyLoss(weight=[0.5, 2, 4]), CrossEntropyLoss("mean", 0.1, [0.5, 2, 4], -100)):
        parts = [(prediction[:2], target[:2]), (prediction[2:], target[2:])]
        values, weights = zip(*((loss.forward(*part)[0], loss.denominator(part[1])) for part in parts), strict=True)
        assert np.dot(values, weights) / sum(weights) == pytest.approx(loss.forward(prediction, target)[0], rel=1e-15)


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


@pytest.mark.parametrize("loss", [*REGRESSION, *CLASSIFICATION, *with_weights(3)], ids=repr)
def test_differences_agree(loss: Any) -> None:
    generator = np.random.default_rng(0)
    prediction = draw("random", (5, 3), "float64", generator, loss.domain)
    target = targets(loss, "random", (5, 3), "float64", generator)
    ours = our_results(loss, prediction, target)
    expected = central_differences(lambda prediction: loss.forward(prediction, target)[0], prediction)
    assert_equal(ours["grad_prediction"], expected, tolerance=DIFFERENCE_TOLERANCE)
    if "grad_target" in ours:
        expected = central_differences(lambda target: loss.forward(prediction, target)[0], target)
        assert_equal(ours["grad_target"], expected, tolerance=DIFFERENCE_TOLERANCE)


@pytest.mark.parametrize("loss", [*REGRESSION, *CLASSIFICATION, *with_weights(3)], ids=repr)
@each_dtype
@pytest.mark.parametrize("kind", ["random", "tied"])
def test_docstring_agrees(loss: Loss, dtype: str, kind: str) -> None:
    generator = np.random.default_rng(0)
    prediction = draw(kind, (5, 3), dtype, generator, loss.domain)
    target = targets(loss, kind, (5, 3), dtype, generator)
    sizes = {"N": prediction.size, "rows": len(prediction), "classes": prediction.shape[1]}
    sizes |= {"batch": len(prediction), "labels": prediction.shape[1]}
    of_outputs = {name: getattr(loss, name) for name in ("weight", "pos_weight") if hasattr(loss, name)}
    sizes |= {name: np.array(weight or np.ones(3), dtype) for name, weight in of_outputs.items()}
    targets_of = {"indices": target}
    if isinstance(loss, CrossEntropyLoss) and loss.ignore_index < 0:
        targets_of["probabilities"] = probabilities(kind, (5, 3), dtype, generator)
    for form, target in targets_of.items():
        known = {"prediction": prediction, "target": target, "logsumexp": np.logaddexp.reduce, **sizes}
        known |= words_of_paths(loss) if isinstance(loss, CTCLoss) else {}
        stated = evaluate(loss, known, target=form)
        for name, value in our_results(loss, prediction, target).items():
            # A formula with a float64 constant in it, eye, is float64: what is stated has one dtype, ours.
            assert_equal(value, np.asarray(stated[name], dtype))


def test_help_shows_the_formulas_first() -> None:
    own = [name for name in vars(Loss) if not name.startswith("_")]
    assert own == ["forward", "backward", "reference", "examples"]


@pytest.mark.parametrize("loss_class", components(Loss).values())
def test_docstring_states_every_gradient(loss_class: type[Loss]) -> None:
    stated = {line.name for line in formulas(loss_class)}
    gradients = {"grad_prediction"} | ({"grad_target"} if defines(loss_class, "backward_target") else set())
    assert {name for name in stated if name.startswith("grad_") or name == "loss"} == {"loss", *gradients}


@each_loss
def test_runs_twice_before_either_is_taken_back(loss: Any) -> None:
    generator = np.random.default_rng(0)
    shape, dtype = (3, 4), "float64"
    batches = [
        (draw("random", shape, dtype, generator, loss.domain), targets(loss, "random", shape, dtype, generator))
        for _ in range(2)
    ]
    saved = [loss.forward(*batch)[1] for batch in batches]
    for batch, its_saved in zip(batches, saved, strict=True):
        np.testing.assert_array_equal(loss.backward(its_saved), our_results(loss, *batch)["grad_prediction"])


@pytest.mark.parametrize("loss_class", [each for each in components(Loss).values() if each is not TraceLoss])
def test_reductions_are_mean_and_sum(loss_class: Any) -> None:
    known = "mean or sum or batchmean" if loss_class is KLDivLoss else "mean or sum"
    for reduction in ("none", "Mean", ""):
        with pytest.raises(ValueError, match=f"^reduction must be {known}, not '{reduction}'$"):
            loss_class(reduction=reduction)


@each_regression
def test_nothing_is_broadcast_or_converted(loss: Loss) -> None:
    name = type(loss).__name__
    for shape, other in [((4, 1), (4, 2)), ((4, 1), (4,)), ((1, 3), (4, 3))]:
        message = f"{name} takes equal shapes, not prediction {shape} and target {other}"
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            loss.check_target(np.ones(shape), np.ones(other))
    message = f"{name} takes equal dtypes, not prediction float32 and target float64"
    with pytest.raises(TypeError, match=f"^{message}$"):
        loss.check_target(np.ones((2, 2), np.float32), np.ones((2, 2)))


@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 4)])
def test_a_trace_needs_matrices(shape: Shape) -> None:
    with pytest.raises(ValueError, match=re.escape(f"TraceLoss takes matrices, not arrays of shape {shape}")):
        TraceLoss().check_target(np.ones(shape), np.ones(shape))


@dataclass(eq=False)
class Squares(Loss):
    """MSELoss, without a word about its reduction."""

    def forward(self, prediction: Array, target: Array) -> tuple[Any, Array]:
        difference = prediction - target
        return (difference**2).mean(), difference

    def backward(self, saved: Array) -> Array:
        return saved * (2 / saved.size)

    def reference(self, prediction: Any, target: Any) -> Any:
        return ((prediction - target) ** 2).mean()


def test_a_loss_that_does_not_name_its_reduction_is_a_mean() -> None:
    """In steps, in the loss of an epoch whose last batch is smaller, in evaluation and in the check."""
    generator = np.random.default_rng(0)
    input, target = generator.standard_normal((10, 4)), generator.standard_normal((10, 2))
    records = []
    for loss in (Squares(), MSELoss()):
        model = Sequential(Linear(4, 2), dtype="float64")
        assert check_gradients(model, loss, input, target).passed
        trainer = Trainer(model, loss, SGD(model, lr=0.1))
        (record,) = trainer.fit((input, target), epochs=1, batch_size=4, verbose=False)
        records.append((record["train_loss"], trainer.evaluate((input, target)).loss))
    assert records[0] == records[1]
