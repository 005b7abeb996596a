"""Cross-entropy: weights, ignored rows, and exact values where floating point is hard pressed."""

from __future__ import annotations

import inspect
import math
import re
from typing import Any

import numpy as np
import pytest
from comparing import TOLERANCES, combinations, evaluate
from loss_results import (
    CROSS_ENTROPIES,
    WEIGHTS,
    assert_as_torch,
    cross_entropies_with_weights,
    our_results,
    torch_results,
)
from slow_cases import crossed

from nn_manual import CrossEntropyLoss
from nn_manual.arrays import Shape
from nn_manual.check.catalogue.input_kinds import draw
from nn_manual.check.catalogue.targets import indices, probabilities

each_dtype = pytest.mark.parametrize("dtype", TOLERANCES)


@pytest.mark.parametrize("loss", cross_entropies_with_weights(WEIGHTS[:4]), ids=repr)
@combinations
def test_torch_agrees_with_weights_and_ignored_rows(
    loss: CrossEntropyLoss, kind: str, other_kind: str, dtype: str
) -> None:
    generator = np.random.default_rng(len(kind) + len(other_kind))
    for batch in (6, 2):
        prediction = draw(kind, (batch, 4), dtype, generator)
        target = generator.integers(0, 4, batch)
        target[0], target[1] = 2, loss.ignore_index
        assert_as_torch(loss, prediction, target)


@pytest.mark.parametrize("loss", [*CROSS_ENTROPIES, *cross_entropies_with_weights(WEIGHTS[:4])], ids=repr)
@pytest.mark.parametrize(
    ("positions", "kinds"),
    crossed([(), (3,), (2, 3)], [("random", "tied"), ("tied", "random"), ("tiny", "scattered")]),
)
@each_dtype
def test_torch_agrees_with_positions_and_probabilities(
    loss: CrossEntropyLoss, positions: Shape, kinds: tuple[str, str], dtype: str
) -> None:
    kind, other_kind = kinds
    generator = np.random.default_rng(len(positions))
    for batch in (5, 1):
        shape = (batch, 4, *positions)
        prediction, target = draw(kind, shape, dtype, generator), indices(kind, shape, dtype, generator)
        target.flat[0] = 3
        loss.check_target(prediction, target)
        assert_as_torch(loss, prediction, target)
        if loss.ignore_index < 0:
            target = probabilities(other_kind, shape, dtype, generator)
            loss.check_target(prediction, target)
            assert_as_torch(loss, prediction, target)


@pytest.mark.parametrize("loss", [*CROSS_ENTROPIES, *cross_entropies_with_weights(WEIGHTS[:4])], ids=repr)
def test_docstring_in_floating_point_agrees(loss: CrossEntropyLoss) -> None:
    """Whichever class of a row is its place."""
    generator = np.random.default_rng(0)
    prediction, target = generator.normal(size=(6, 4)), generator.integers(0, 4, 6)
    sizes = {"rows": 6, "classes": 4, "weight": np.array(loss.weight or [1.0] * 4)}
    known = {"prediction": prediction, "target": target, "logsumexp": np.logaddexp.reduce, **sizes}
    values: dict[str, Any] = {**known, **evaluate(loss, known, target="indices")}
    values |= {"largest": (range(6), prediction.argmax(axis=1)), "place": (range(6), values["label"])}
    text = inspect.cleandoc(CrossEntropyLoss.__doc__ or "").partition("In floating point")[2]
    for line in re.findall(r"^    (.*)", text, re.MULTILINE):
        formula, _, condition = line.partition(" where ")
        if not condition or condition == f"reduction = {loss.reduction}":
            exec(formula, vars(np).copy(), values)
    ours = our_results(loss, prediction, target)
    np.testing.assert_allclose(values["grad_prediction"], ours["grad_prediction"], rtol=0, atol=1e-14)
    expected = values["log_probability"][values["place"]]
    np.testing.assert_allclose(values["log_probability_at_place"], expected, rtol=1e-14)


@pytest.mark.parametrize("loss", CROSS_ENTROPIES, ids=repr)
def test_strided_positions(loss: CrossEntropyLoss) -> None:
    generator = np.random.default_rng(0)
    prediction = generator.normal(size=(3, 2, 4, 6)).transpose(3, 2, 1, 0)[::-2]
    target = probabilities("random", (3, 2, 4, 3), "float64", generator).transpose(3, 2, 1, 0)
    assert_as_torch(loss, prediction, target)
    assert_as_torch(loss, prediction, generator.integers(0, 4, (3, 2, 3)).transpose(2, 1, 0))


@pytest.mark.parametrize("shape", [(6,), (2, 3), (3, 1, 2)])
def test_indices_behind_rows_are_read_in_row_order(shape: Shape) -> None:
    generator = np.random.default_rng(0)
    prediction, target = generator.normal(size=(6, 4)), generator.integers(0, 4, 6)
    target[1] = -100
    for loss in (CrossEntropyLoss(), CrossEntropyLoss("sum", 0.1, WEIGHTS[:4])):
        expected, reshaped = our_results(loss, prediction, target), target.reshape(shape)
        loss.check_target(prediction, reshaped)
        for name, value in our_results(loss, prediction, reshaped).items():
            np.testing.assert_array_equal(value, expected[name])
        assert_as_torch(loss, prediction, reshaped)
        assert loss.denominator(reshaped) == loss.denominator(target)


def test_probabilities_of_one_class_are_its_index() -> None:
    """Small numbers among them: a confident prediction keeps its digits in both forms."""
    margins = np.array([5.0, 18.420681, 50.0, 80.0], np.float32)
    prediction = np.stack([margins, 0 * margins, 0 * margins], axis=1)
    for label in (0, 1):
        target = np.full(4, label)
        expected = our_results(CrossEntropyLoss("sum", weight=[2, 3, 1]), prediction, target)
        probability = np.eye(3, dtype=np.float32)[target]
        found = our_results(CrossEntropyLoss("sum", weight=[2, 3, 1]), prediction, probability)
        # A few roundings of each number: the formulas differ in the order of their terms.
        for name, value in found.items():
            np.testing.assert_allclose(value, expected[name], rtol=4 * float(np.finfo(np.float32).eps), atol=0)


def test_probabilities_need_not_add_up_to_one() -> None:
    prediction = np.random.default_rng(0).normal(size=(3, 4))
    for target in (np.zeros((3, 4)), np.ones((3, 4)), np.full((3, 4), 0.1)):
        for loss in (CrossEntropyLoss(), CrossEntropyLoss("mean", 0.1, WEIGHTS[:4])):
            assert_as_torch(loss, prediction, target)


@pytest.mark.parametrize("weight", [None, WEIGHTS[:3]])
@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
@each_dtype
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")  # 0 / 0 is what is tested
def test_where_nothing_counts_a_mean_is_no_number_and_its_gradient_zero(
    weight: list[float] | None, label_smoothing: float, dtype: str
) -> None:
    prediction, target = np.ones((2, 3), dtype), np.full(2, -100)
    for reduction, expected in (("mean", math.nan), ("sum", 0.0)):
        loss = CrossEntropyLoss(reduction, label_smoothing, weight)
        ours, reference = our_results(loss, prediction, target), torch_results(loss, prediction, target)
        for results in (ours, reference):
            np.testing.assert_array_equal(results["loss"], expected)
            assert not results["grad_prediction"].any()
        assert ours["loss"].dtype == ours["grad_prediction"].dtype == dtype
        assert loss.denominator(target) == 0


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")  # as above
def test_what_smoothing_gives_to_other_classes_doesnt_count_where_no_target_does() -> None:
    loss = CrossEntropyLoss("mean", 0.1, [0.0, 1.0])
    results = our_results(loss, np.ones((2, 2)), np.zeros(2, np.int64))
    assert math.isnan(results["loss"])
    assert not results["grad_prediction"].any()


@pytest.mark.parametrize("loss", CROSS_ENTROPIES, ids=repr)
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


@pytest.mark.parametrize("label_smoothing", [0.0, 1e-3])
def test_a_confident_prediction_keeps_its_digits_whatever_it_weighs(label_smoothing: float) -> None:
    """The gradient at the target, of weight 3, and at the other class, of weight 0.5, beside the formula in float64:
    w1 = 3 (1 - e) + e / 2 * 3, and so on. Where nothing is smoothed they are -+ 3 / (1 + exp(18)).
    """
    loss, margin = CrossEntropyLoss("sum", label_smoothing, [3, 0.5]), 18.0
    ours = our_results(loss, np.array([[margin, 0]], np.float32), np.array([0]))["grad_prediction"]
    other = 1 / (1 + math.exp(margin))
    q = [3 * (1 - label_smoothing / 2), 0.5 * label_smoothing / 2]
    expected = [[q[1] - sum(q) * other, sum(q) * other - q[1]]]
    # Of the larger of the two terms that are subtracted, a few roundings.
    np.testing.assert_allclose(ours, expected, rtol=0, atol=4 * float(np.finfo(np.float32).eps) * max(other * 3, q[1]))


@pytest.mark.parametrize("label_smoothing", [-0.1, 1.5, math.nan])
def test_label_smoothing_out_of_range(label_smoothing: float) -> None:
    with pytest.raises(ValueError, match=f"^label_smoothing must be between 0 and 1, not {label_smoothing}$"):
        CrossEntropyLoss(label_smoothing=label_smoothing)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1, -0.5], "weight must be finite and at least 0, not -0.5, that of class 1"),
        ([math.nan, 1], "weight must be finite and at least 0, not nan, that of class 0"),
        ([1, 2, math.inf], "weight must be finite and at least 0, not inf, that of class 2"),
        ([0, 0], "weight must be above 0 for one class at least, not [0.0, 0.0]"),
        ([], "weight must be above 0 for one class at least, not []"),
    ],
)
def test_weight_out_of_range(weight: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        CrossEntropyLoss(weight=weight)


def test_labels_out_of_range() -> None:
    prediction = np.zeros((4, 3))
    for label in (-1, 3, -(2**63), 2**63 - 1):
        message = f"CrossEntropyLoss: label {label} at index 2 is outside 0 ... 2"
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            CrossEntropyLoss().check_target(prediction, np.array([0, 2, label, label]))


def test_targets_that_are_no_class_indices() -> None:
    for dtype in ("int32", "uint8", "bool", "float64"):
        message = "CrossEntropyLoss takes int64 class indices as target, or probabilities in the prediction's dtype, "
        with pytest.raises(TypeError, match=f"^{message}float32, not {dtype}$"):
            CrossEntropyLoss().check_target(np.zeros((2, 3), np.float32), np.zeros(2, dtype))


@pytest.mark.parametrize(
    ("shape", "target_shape", "dtype"),
    [
        ((2, 3), (2, 3), "int64"),
        ((2, 3), (3,), "int64"),
        ((3,), (3,), "int64"),
        ((), (), "int64"),
        ((3,), (1,), "int64"),
        ((2, 3, 4), (2,), "int64"),
        ((2, 3, 4), (8,), "int64"),
        ((2, 3, 4), (4, 2), "int64"),
        ((2, 3), (2,), "float64"),
        ((2, 3), (6,), "float64"),
        ((2, 3, 4), (2, 4, 3), "float64"),
        ((3,), (4,), "float64"),
        ((3,), (), "float64"),
    ],
)
def test_targets_of_other_shapes(shape: Shape, target_shape: Shape, dtype: str) -> None:
    message = "CrossEntropyLoss takes a prediction (batch, classes, ...), and as target indices (batch, ...) or "
    message += f"probabilities in the prediction's shape, not {shape} and {dtype} {target_shape}"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        CrossEntropyLoss().check_target(np.zeros(shape), np.zeros(target_shape, dtype))


@pytest.mark.parametrize("value", [-0.25, 1.5, math.nan, math.inf])
def test_probabilities_out_of_range(value: float) -> None:
    target = np.full((2, 3, 2), 1 / 3)
    CrossEntropyLoss().check_target(np.zeros((2, 3, 2)), target)
    target[1, 2, 0] = target[1, 2, 1] = value
    message = f"CrossEntropyLoss: probability {value} at index (1, 2, 0) is outside 0 ... 1"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        CrossEntropyLoss().check_target(np.zeros((2, 3, 2)), target)


def test_a_class_that_is_ignored_takes_indices() -> None:
    for ignored in (0, 255):  # torch says it in forward
        message = f"^CrossEntropyLoss has ignore_index {ignored}: probabilities have no index to be ignored$"
        with pytest.raises(ValueError, match=message):
            CrossEntropyLoss(ignore_index=ignored).check_target(np.zeros((2, 3)), np.zeros((2, 3)))
    CrossEntropyLoss(ignore_index=-1).check_target(np.zeros((2, 3)), np.zeros((2, 3)))


def test_a_label_out_of_range_is_named_by_its_whole_index() -> None:
    target = np.array([[0, 1], [2, 3]])
    for shape in ((4, 3), (2, 3, 2)):
        message = r"^CrossEntropyLoss: label 3 at index \(1, 1\) is outside 0 \.\.\. 2$"
        with pytest.raises(ValueError, match=message):
            CrossEntropyLoss().check_target(np.zeros(shape), target)


def test_labels_that_are_ignored_may_be_anything() -> None:
    prediction = np.zeros((3, 3))
    for ignored in (-100, -1, 2, 255):
        CrossEntropyLoss(ignore_index=ignored).check_target(prediction, np.array([0, ignored, 2]))
    with pytest.raises(ValueError, match=r"label 3 at index 2 is outside 0 \.\.\. 2$"):
        CrossEntropyLoss(ignore_index=255).check_target(prediction, np.array([0, 255, 3]))


def test_as_many_weights_as_classes() -> None:
    with pytest.raises(ValueError, match=r"^CrossEntropyLoss has a weight for 2 classes, the prediction 3$"):
        CrossEntropyLoss(weight=[1, 2]).check_target(np.zeros((2, 3)), np.zeros(2, np.int64))
    for target in (np.zeros((2, 4), np.int64), np.zeros((2, 3, 4))):
        with pytest.raises(ValueError, match=r"^CrossEntropyLoss has a weight for 4 classes, the prediction 3$"):
            CrossEntropyLoss(weight=[1, 2, 3, 4]).check_target(np.zeros((2, 3, 4)), target)


def test_denominators_of_several_batches() -> None:
    """Where all count, and where some don't; of none there are none."""
    targets = np.array([[[0, 1, 2], [2, 1, 0]], [[1, 1, 1], [0, 0, 0]]])
    loss = CrossEntropyLoss()
    assert loss.denominators(targets) == [6, 6]
    targets[1, 0, :2] = -100
    assert loss.denominators(targets) == [6, 4] == [loss.denominator(target) for target in targets]
    assert loss.denominators(targets[:0]) == []
