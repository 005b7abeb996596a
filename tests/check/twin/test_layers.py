"""Layers that torch doesn't have: compared with a reference of their own, or with central differences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from slow_cases import crossed

from nn_manual import GradientMismatch, Layer, Linear, Sequential, Tanh
from nn_manual.arrays import Array, Shape
from nn_manual.check.catalogue.upstream import UpstreamLoss
from nn_manual.check.compare.tolerances import CENTRAL_DIFFERENCES, SUM_OF_PRODUCTS
from nn_manual.check.judge.report import GradientReport
from nn_manual.check.twin.layers import Source, counterpart_of
from nn_manual.check.whole_step.checker import GradientChecker
from nn_manual.check.whole_step.gradients import check_gradients


@dataclass(eq=False)
class Swish(Layer):
    """output = weight * input / (1 + exp(-slope * input)), with one weight a feature; `factor` spoils the backward."""

    features: int
    slope: float = 1.5
    factor: float = 1.0

    def parameter_shapes(self) -> dict[str, Shape]:
        return {"weight": (self.features,)}

    def reset_parameters(self, generator: np.random.Generator) -> None:
        self.param.weight[...] = generator.uniform(1, 2, self.features)

    def forward(self, input: Array) -> tuple[Array, Any]:
        gate = 1 / (1 + np.exp(-self.slope * input))
        return self.param.weight * input * gate, (input, gate)

    def backward(self, saved: Any, grad_output: Array) -> Array:
        input, gate = saved
        self.grad.weight[...] = self.factor * (grad_output * input * gate).sum(axis=0)
        grad_input: Array = grad_output * self.param.weight * (gate + self.slope * input * gate * (1 - gate))
        return grad_input


class InTorch(Swish):
    def reference(self, input: Any, weight: Any) -> Any:
        return weight * input * torch.sigmoid(self.slope * input)


#: torch.nn has a class of this name, which takes other keyword arguments.
class Softshrink(Swish):
    pass


CLASSES: dict[type[Swish], Source] = {
    Swish: Source.FORWARD,
    Softshrink: Source.FORWARD,
    InTorch: Source.REFERENCE,
}
DTYPES = ("float32", "float64")


def report_of(layer: Layer, dtype: str = "float64") -> GradientReport:
    """Of a net with the layer in the middle, on a batch of 4."""
    generator = np.random.default_rng(0)
    model = Sequential(Linear(3, 5), layer, Tanh(), Linear(5, 2), seed=1, dtype=dtype)
    input, grad_output = generator.standard_normal((4, 3)), generator.standard_normal((4, 2))
    return check_gradients(model, UpstreamLoss(), input.astype(dtype), grad_output.astype(dtype))


def report_line(report: GradientReport) -> str:
    return " ".join(str(report).split())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layer_class", CLASSES)
def test_a_right_layer_passes_and_the_report_says_by_what(layer_class: type[Swish], dtype: str) -> None:
    report = report_of(layer_class(5), dtype)
    assert report.passed, str(report)
    # outputs of 4 layers, the loss, gradients of prediction and target, of 5 parameters, grad_input of 4 layers
    assert len(report.comparisons) == 4 + 1 + 2 + 5 + 4
    assert counterpart_of(layer_class(5)).source is CLASSES[layer_class]
    sentence = f"1 ({layer_class.__name__}) is compared with {CLASSES[layer_class].value}"
    assert report.sources[0].startswith(sentence)
    assert sentence in report_line(report)
    headline = f"1 ({layer_class.__name__}) has no reference: its gradients are proven, its forward isn't; worst"
    assert (headline in report_line(report)) == (CLASSES[layer_class] is Source.FORWARD)
    assert str(report).startswith("16 tensors " + ("agree;" if headline in report_line(report) else "equal torch's;"))


@pytest.mark.parametrize(("layer_class", "dtype"), crossed(list(CLASSES), list(DTYPES)))
def test_a_wrong_gradient_is_named(layer_class: type[Swish], dtype: str) -> None:
    wrong = report_of(layer_class(5, factor=1.001), dtype)
    assert [failure.name for failure in wrong.failures] == ["1.grad_weight"]
    assert wrong.failures[0].layer == f"1 ({layer_class.__name__})"
    origins = {Source.TORCH: "torch has", Source.REFERENCE: "its reference has", Source.FORWARD: "differences give"}
    assert [words for words in origins.values() if words in str(wrong)] == [origins[CLASSES[layer_class]]]


def test_torchs_own_layers_need_no_sentence() -> None:
    assert report_of(Tanh()).sources == ()


def test_the_tolerance_is_that_of_central_differences_only_where_they_are() -> None:
    """Outputs, and the layers before and behind, are as exact as ever."""
    allowed = {comparison.name: comparison.tolerance for comparison in report_of(Swish(5)).comparisons}
    loose = {name for name, tolerance in allowed.items() if tolerance == CENTRAL_DIFFERENCES}
    assert loose == {"1.grad_weight", "1.grad_input"}
    assert {allowed[name] for name in allowed.keys() - loose} == {SUM_OF_PRODUCTS["float64"]}
    in_torch = report_of(InTorch(5)).comparisons
    assert {comparison.tolerance for comparison in in_torch} == {SUM_OF_PRODUCTS["float64"]}


def test_central_differences_are_far_within_their_tolerance() -> None:
    worst = max(c.relative for c in report_of(Swish(5)).comparisons if c.tolerance == CENTRAL_DIFFERENCES)
    assert 0 < worst < CENTRAL_DIFFERENCES / 1e4


def test_a_reference_shows_a_wrong_forward() -> None:
    class Wrong(InTorch):
        def forward(self, input: Array) -> tuple[Array, Any]:
            output, saved = super().forward(input)
            return output * 1.001, saved

    assert report_of(Wrong(5)).failures[0].name == "1.output"


def test_a_class_that_is_no_dataclass_is_compared_if_it_has_no_settings() -> None:
    class Tanhshrink(Layer):
        def forward(self, input: Array) -> tuple[Array, Any]:
            return input - np.tanh(input), input

        def backward(self, saved: Any, grad_output: Array) -> Array:
            grad_input: Array = grad_output * np.tanh(saved) ** 2
            return grad_input

    class Softshrink(Tanhshrink):
        def __init__(self, lambd: float) -> None:
            self.lambd = lambd

    assert counterpart_of(Tanhshrink()).sentence == "torch.nn.Tanhshrink"
    other = counterpart_of(Softshrink(0.5))
    assert other.source is Source.FORWARD
    words = "Softshrink is no dataclass, so nobody knows its settings: write @dataclass(eq=False) above it"
    assert other.misfit == words


def test_training_steps_are_compared() -> None:
    """Only what training computes: no gradient of the input, and the first layer without one."""
    generator = np.random.default_rng(0)
    input = generator.standard_normal((4, 3)).astype(np.float32)
    target = generator.standard_normal((4, 2)).astype(np.float32)
    for factor, passes in ((1.0, True), (1.001, False)):
        model = Sequential(Swish(3, factor=factor), Linear(3, 2), seed=1)
        checker = GradientChecker(model, UpstreamLoss())
        for _ in range(2):
            with checker.recording():
                checker.run(input, target)
            if passes:
                assert len(checker.compare().tensors) == 2 + 1 + 1 + 3 + 1
                continue
            with pytest.raises(GradientMismatch, match=r"wrong first in 0 \(Swish\): 0.grad_weight"):
                checker.compare()
