"""Layers without a reference: the right ones pass, each wrong one is named, and what can't be judged is reported."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from own_layers import FORMULAS, own_layer
from slow_cases import crossed, slow

from nn_manual import GradientMismatch, Layer, Linear, MSELoss, ReLU, Sequential, Tanh
from nn_manual.arrays import Array
from nn_manual.check.catalogue.input_kinds import draw
from nn_manual.check.catalogue.upstream import UpstreamLoss
from nn_manual.check.twin.by_differences import OperandDifferences, differences, differentiated, judge_by
from nn_manual.check.whole_step.checker import GradientChecker
from nn_manual.check.whole_step.gradients import check_gradients
from nn_manual.ops.differences import Directions

DTYPES = ("float32", "float64")
#: Kinds of input at which a value of some layers is zero everywhere are left out.
KINDS = ("random", "negative", "scattered")
KINDS_OF_UPSTREAM = ("random", "tiny", "scattered")


def net(layer: Layer, dtype: str, seed: int, features: int) -> Sequential:
    """The layer between others, with a ReLU before it that must not be blamed; the bias keeps it from being 0."""
    (num_outputs,) = layer.output_shape((features,))
    model = Sequential(
        Linear(3, features), ReLU(), Linear(features, features), layer, Linear(num_outputs, 2), seed=seed, dtype=dtype
    )
    model.load_state_dict(model.state_dict() | {"0.bias": np.ones(features)})
    return model


@pytest.mark.parametrize(("name", "features", "dtype"), crossed(list(FORMULAS), [2, 4], list(DTYPES)))
def test_a_right_layer_passes(name: str, features: int, dtype: str) -> None:
    for seed, kind in enumerate(KINDS):
        generator = np.random.default_rng([seed, features])
        layer = own_layer(name, features, FORMULAS[name].backward)
        model = Sequential(layer, seed=seed, dtype=dtype)
        grad_output = draw("random", layer.output_shape((5, features)), dtype, generator)
        report = check_gradients(model, UpstreamLoss(), draw(kind, (5, features), dtype, generator), grad_output)
        assert report.agrees, f"{kind}\n{report}"
        assert report.passed or all("zero everywhere" in sentence for sentence in report.vacuous)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FORMULAS)
def test_a_right_layer_trains_in_a_net_and_a_wrong_one_is_named(name: str, dtype: str) -> None:
    """It alone has layers that are compared with differences in whole trainings, right ones and wrong ones."""
    for seed, features in ((0, 2), (1, 4)):
        generator = np.random.default_rng([seed, 7])
        input, target = draw("random", (5, 3), dtype, generator), draw("random", (5, 2), dtype, generator)
        for backward in (FORMULAS[name].backward, *FORMULAS[name].wrong):
            checker = GradientChecker(net(own_layer(name, features, backward), dtype, seed, features), UpstreamLoss())
            with checker.recording():
                checker.run(input, target)
            if backward is FORMULAS[name].backward:
                assert not checker.compare().not_judged
                continue
            with pytest.raises(GradientMismatch) as mismatch:
                checker.compare()
            assert mismatch.value.report.failures[0].layer == f"3 ({name})", str(mismatch.value)


class Elementwise(Layer):
    """output = function(input), with any backward that is a function of the input."""

    def __init__(self, function: Any, slope: Any) -> None:
        self.function, self.slope = function, slope

    def forward(self, input: Array) -> tuple[Array, Any]:
        return np.asarray(self.function(input), input.dtype), input

    def backward(self, saved: Any, grad_output: Array) -> Array:
        return np.asarray(grad_output * self.slope(saved), grad_output.dtype)


def report_at(input: Array, function: Any, slope: Any) -> Any:
    grad_output = np.random.default_rng(0).standard_normal(input.shape)
    model = Sequential(Elementwise(function, slope), dtype="float64")
    return check_gradients(model, UpstreamLoss(), input, grad_output)


@pytest.mark.parametrize(("at_kink", "passes"), [(0.0, True), (0.5, True), (1.0, True), (-0.01, False), (1.01, False)])
def test_at_a_kink_every_slope_between_those_beside_it_passes_with_a_note(at_kink: float, passes: bool) -> None:
    input = np.array([[0.0, 1.0, -2.0], [3.0, 0.0, 0.5]])
    report = report_at(input, lambda x: np.maximum(x, 0), lambda x: np.where(x == 0, at_kink, x > 0))
    assert report.passed == passes, str(report)
    if at_kink in (0.0, 1.0):
        note = "0.grad_input: 2 of 6 positions are at a kink, where every slope between those left and right passes"
        assert report.sources[1:] == (note,)
    elif not passes:
        assert report.failures[0].reference in (0.0, pytest.approx(report.failures[0].reference))
        assert "differences give" in str(report)


def test_what_differences_cannot_judge_is_neither_right_nor_wrong() -> None:
    """A function that jumps: no step gives a slope there."""
    input = np.array([[0.0, 1.0, -2.0]])
    report = report_at(input, lambda x: x + (x > 0), np.ones_like)
    assert report.agrees
    assert not report.passed
    assert report.vacuous[0].startswith("0 (Elementwise): differences can't judge 0.grad_input, their error is ")
    assert report.vacuous[0].endswith("; give the layer a reference in torch")
    wrong_elsewhere = report_at(input, lambda x: x + (x > 0), lambda x: np.where(x < -1, 2, 1))
    assert [failure.index for failure in wrong_elsewhere.failures] == [(0, 2)]


@pytest.mark.slow
@pytest.mark.parametrize("upstream", KINDS_OF_UPSTREAM)
@pytest.mark.parametrize("dtype", DTYPES)
def test_where_a_lookup_jumps_the_slopes_beside_the_jump_are_judged_at_their_own_scale(
    dtype: str, upstream: str
) -> None:
    """Half of the positions lie at a jump, of 1 at -1 and of 4 at 1: there no step gives a slope."""

    def looked_up(x: Array) -> Array:
        table: Array = np.array([0.0, 1.0, 5.0])
        output: Array = table[(x > -1).astype(int) + (x > 1)] + x
        return output

    for seed in range(3):
        generator = np.random.default_rng(seed)
        input = draw("tied", (6, 4), dtype, generator)
        grad_output = draw(upstream, input.shape, dtype, generator)
        for slope in (1.0, 1.01):
            model = Sequential(Elementwise(looked_up, lambda x, slope=slope: np.full_like(x, slope)), dtype=dtype)
            report = check_gradients(model, UpstreamLoss(), input, grad_output)
            smooth = np.abs(np.where(input == 0, grad_output, 0)).max() > 1e-3 * np.abs(grad_output).max()
            assert report.agrees == (slope == 1.0 or not smooth), str(report)
            assert any("differences can't judge" in sentence for sentence in report.vacuous) or not report.agrees


def test_a_training_says_that_a_forward_without_a_reference_is_not_proven() -> None:
    model = Sequential(Linear(3, 3), Elementwise(lambda x: x * x, lambda x: 2 * x), Linear(3, 2), seed=0)
    checker = GradientChecker(model, MSELoss())
    assert checker.unproven() == ()  # before a step nobody knows
    with checker.recording():
        input, target = (np.random.default_rng(size).standard_normal((4, size), np.float32) for size in (3, 2))
        checker.run(input, target)
    checker.compare()
    sentence = "1 (Elementwise): what its forward computes, since it has no reference; its gradients fit it"
    assert checker.unproven() == (sentence,)


def test_a_training_step_says_what_it_could_not_judge() -> None:
    model = Sequential(Linear(3, 3), Elementwise(lambda x: x + (x > 0), np.ones_like), Tanh(), dtype="float64")
    model.load_state_dict({"0.weight": np.eye(3), "0.bias": np.zeros(3)})
    checker = GradientChecker(model, UpstreamLoss())
    with checker.recording():
        checker.run(np.array([[0.0, 1.0, -3.0]]), np.ones((1, 3)))
    assert checker.compare().not_judged == {"1.grad_input"}
    of_forward = "1 (Elementwise): what its forward computes"
    assert [sentence.partition(",")[0] for sentence in checker.unproven()] == [
        "1 (Elementwise): differences can't judge 1.grad_input", of_forward
    ]
    with checker.recording():
        checker.run(np.array([[0.5, 1.0, -2.0]]), np.ones((1, 3)))
    assert checker.compare().not_judged == frozenset()
    assert [sentence.partition(",")[0] for sentence in checker.unproven()] == [of_forward]


def test_a_sum_that_cancels_is_zero_up_to_rounding() -> None:
    zero, noise = np.zeros(3), np.array([1e-14, -3e-14, 0])
    found = OperandDifferences(noise, np.full(3, 1e-13), zero, terms=1.0)
    for ours in (-noise, np.full(3, 1e-9)):
        assert judge_by(found, ours, 1e-7).error == 0
        np.testing.assert_array_equal(judge_by(found, ours, 1e-7).reference, zero)


@pytest.mark.parametrize("dtype", ["float32", slow("float64")])
def test_a_gradient_that_is_always_zero_is_rounding_and_not_vacuous(dtype: str) -> None:
    """That of the bias of attention's keys, which the softmax takes away."""
    generator = np.random.default_rng(0)
    layer = own_layer("Attention", 4, FORMULAS["Attention"].backward)
    input, target = draw("random", (5, 3), dtype, generator), draw("random", (5, 2), dtype, generator)
    report = check_gradients(net(layer, dtype, 0, 4), UpstreamLoss(), input, target)
    assert report.passed, str(report)
    assert "3.grad_key_bias" in report.rounding


def test_the_error_of_differences_stays_in_their_layer() -> None:
    """In float64 the layers before are compared as tightly as ever, and their gradient came through ours."""
    layer = own_layer("OverFeatures", 2, FORMULAS["OverFeatures"].backward)
    generator = np.random.default_rng(0)
    input, target = generator.standard_normal((5, 3)), generator.standard_normal((5, 2))
    report = check_gradients(net(layer, "float64", 0, 2), UpstreamLoss(), input, target)
    assert report.passed, str(report)
    assert {c.tolerance for c in report.comparisons if c.layer != "3 (OverFeatures)"} == {1e-12}


def test_a_forward_may_warn_where_values_are_drawn_at_random() -> None:
    """That is how a report finds out what is always zero: a logarithm then meets numbers below 0."""
    model = Sequential(Elementwise(np.log, np.reciprocal), dtype="float64")
    report = check_gradients(model, UpstreamLoss(), np.ones((2, 3)), np.zeros((2, 3)))
    assert report.agrees, str(report)


def test_differences_of_several_operands_and_outputs() -> None:
    """`terms` are the values over those of the operand, or the largest slope of all that are measured together."""

    def values(operands: Any) -> Array:
        x, y = operands
        if y < 1:
            raise ArithmeticError
        return np.append(x * y, y**2)

    x, y, upstream = np.array([1.0, -0.01]), np.array(1.005), np.array([1.0, 2.0, 3.0])
    found = differences(values, [x, y], {0: Directions.of_each(2), 1: Directions.of_each(1)}, upstream)
    np.testing.assert_allclose(found[0].value, [1.005, 2.01], rtol=1e-12)
    np.testing.assert_allclose(found[1].value, [1 - 0.02 + 3 * 2.01], rtol=1e-9)  # a step down by 1e-2 raises
    assert found[0].terms == found[1].terms == pytest.approx(7.01)
    total = 1.005 + 0.0201 + 3 * 1.005**2
    assert differences(values, [x, y], {0: Directions.of_each(2)}, upstream)[0].terms == pytest.approx(total)
    assert differences(values, [x, y], {1: Directions.of_each(1)}, upstream, 5)[1].terms == pytest.approx(5 * 7.01)


def test_autograd_asks_for_the_gradients_that_are_wanted() -> None:
    x, y = torch.ones(2, requires_grad=True), torch.ones(3)
    asked: list[Any] = []

    def gradients(operands: list[Array], wanted: list[int], upstream: Array) -> dict[int, Array]:
        asked.append((operands[0].dtype, wanted, upstream.tolist()))
        return {0: np.array([1.0, 2.0])[::-1]}

    one, other = differentiated(gradients, [torch.zeros(2), torch.zeros(())], [x, y])
    (grad,) = torch.autograd.grad(one.sum() + 5 * other, x)
    assert asked == [(np.dtype("float64"), [0], [1.0, 1.0, 5.0])]
    assert grad.dtype == torch.float32
    assert grad.tolist() == [2.0, 1.0]
