"""Layers with a slope of their own at kinks, beside torch's: `kinks = "any"`."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
import pytest
import torch

from nn_manual import SGD, GradientMismatch, Layer, Linear, MSELoss, ReLU, Sequential, Trainer, check_gradients
from nn_manual.arrays import Array, Shape
from nn_manual.check.catalogue.cases import layer_cases

#: Two of its entries are at the kink.
INPUT = np.array([[0.0, -1.0, 2.0], [0.5, 0.0, -0.25]])


def relu(at_kink: float, *, kinks: Literal["", "any"] = "any", elsewhere: float = 0.0, name: str = "ReLU") -> Layer:
    """A ReLU with this slope at its kink, and another one than 0 below it."""

    def backward(self: Any, saved: Array, grad_output: Array) -> Array:  # noqa: ARG001 - a layer's
        slope = np.select([saved > 0, saved == 0], [1.0, at_kink], elsewhere).astype(saved.dtype)
        grad_input: Array = grad_output * slope
        return grad_input

    def forward(self: Any, input: Array) -> Any:  # noqa: ARG001 - as above
        return np.maximum(input, 0), input

    own = {"forward": forward, "backward": backward, "kinks": kinks, "torch_class": "ReLU", "__module__": "mine"}
    layer: Layer = type(name, (ReLU,), own)()
    return layer


def report_of(layer: Layer, dtype: str = "float64", input: Array = INPUT) -> Any:
    model = Sequential(layer, Linear(3, 2), seed=0, dtype=dtype)
    target = np.random.default_rng(0).standard_normal((len(input), 2)).astype(dtype)
    return check_gradients(model, MSELoss(), input.astype(dtype), target)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("slope", [0.0, 0.5, 1.0])
def test_every_slope_between_both_sides_is_right(slope: float, dtype: str) -> None:
    report = report_of(relu(slope), dtype)
    assert report.passed, report
    said = "0.grad_input: 2 of 6 positions are at a kink, where every slope between those left and right passes"
    assert (said in report.sources) == (slope != 0)


@pytest.mark.parametrize("slope", [-0.5, 1.5, np.nan])
def test_no_other_slope_is(slope: float) -> None:
    report = report_of(relu(slope))
    assert [failure.name for failure in report.failures] == ["0.grad_input"]
    assert report.not_finite is None


def test_beside_a_kink_nothing_is_excused() -> None:
    assert [failure.name for failure in report_of(relu(0.5, elsewhere=0.5)).failures] == ["0.grad_input"]


@pytest.mark.parametrize("at_kink", [0.0, 0.5])
def test_what_a_kink_of_another_number_changes_is_not_excused(at_kink: float) -> None:
    """The first of each row opens or closes the whole row; the others are at no kink."""

    class Gated(Layer):
        kinks: ClassVar[Literal["", "any"]] = "any"

        def kink_distance(self, input: Array) -> Array:
            return np.where(np.arange(input.shape[-1]) == 0, np.abs(input), np.inf)

        def forward(self, input: Array) -> Any:
            return input * (input[:, :1] > 0), input[:, :1]

        def backward(self, saved: Array, grad_output: Array) -> Array:
            opened = np.select([saved > 0, saved == 0], [1.0, at_kink]).astype(saved.dtype)
            grad_input: Array = grad_output * opened
            return grad_input

        def reference(self, input: torch.Tensor) -> torch.Tensor:
            return input * (input[:, :1] > 0)

    report = report_of(Gated())
    assert [failure.name for failure in report.failures] == (["0.grad_input"] if at_kink else [])


def test_without_it_the_layer_has_torchs_slope() -> None:
    report = report_of(relu(0.5, kinks=""))
    assert [failure.name for failure in report.failures] == ["0.grad_input"]
    assert "differs at ties or kinks only, 2 of 6 positions" in report.diagnosis


@pytest.mark.parametrize("kinks", ["", "any"])
def test_in_training_the_slope_travels_on(kinks: Literal["", "any"]) -> None:
    """A layer of zeros before it: its gradients are made from the slopes at the kink."""
    linear = Linear(3, 3)
    model = Sequential(linear, relu(0.5, kinks=kinks), Linear(3, 2), seed=0)
    linear.param.weight[...] = linear.param.bias[...] = 0
    trainer = Trainer(model, MSELoss(), SGD(model, lr=0.1))
    generator = np.random.default_rng(0)
    batch = [generator.standard_normal(shape).astype(np.float32) for shape in ((4, 3), (4, 2))]
    if not kinks:
        with pytest.raises(GradientMismatch, match=r"wrong first in 1 \(ReLU\): 1.grad_input"):
            trainer.train_step(*batch)
        return
    for _ in range(3):
        trainer.train_step(*batch)
    assert linear.param.weight.any()


@pytest.mark.parametrize("kinks", ["", "any"])
def test_in_steps_that_are_proven_together(kinks: Literal["", "any"]) -> None:
    """Some examples are zero, and stay at the kink in each step."""
    model = Sequential(Linear(3, 3, bias=False), relu(0.5, kinks=kinks), Linear(3, 2), seed=0)
    trainer = Trainer(model, MSELoss(), SGD(model, lr=0.1))
    generator = np.random.default_rng(0)
    input, target = (generator.standard_normal((12, size)).astype(np.float32) for size in (3, 2))
    input[::3] = 0
    steps = trainer.epoch((input, target), 2, seed=0, epoch=0)
    if kinks:
        assert len(list(steps)) == 6
    else:
        with pytest.raises(GradientMismatch, match=r"wrong first in 1 \(ReLU\): 1.grad_input"):
            list(steps)


@pytest.mark.parametrize("slope", [0.5, 1.5])
def test_in_the_catalogue_and_the_plugin(slope: float) -> None:
    """They let inputs lie at the kink."""
    cases = list(layer_cases(relu(slope), (4, 3), "float64", seed=0, upstreams=["random"]))
    failures = [case.failure for case in cases if case.failure is not None]
    assert bool(failures) == (slope > 1), failures[0]


def test_it_is_for_elementwise_layers() -> None:
    class Largest(Layer):
        kinks: ClassVar[Literal["", "any"]] = "any"

        def kink_distance(self, input: Array) -> Array:
            return np.abs(input)

        def output_shape(self, input_shape: Shape) -> Shape:
            return (*input_shape[:-1], 1)

        def forward(self, input: Array) -> Any:
            return input.max(-1, keepdims=True), input

        def backward(self, saved: Array, grad_output: Array) -> Array:
            grad_input: Array = grad_output * (saved == saved.max(-1, keepdims=True))
            return grad_input

        def reference(self, input: torch.Tensor) -> torch.Tensor:
            return input.amax(-1, keepdim=True)

    model = Sequential(Largest(), Linear(1, 2), seed=0)
    report = check_gradients(model, MSELoss(), INPUT.astype("float32"), np.ones((2, 2), "float32"))
    assert report.problem == '0 (Largest): kinks = "any" is for elementwise layers, its output has another shape'


@pytest.mark.parametrize(
    ("kinks", "words"), [("all", "kinks is \"any\", or isn't there, and not 'all'"), ("any", "it needs kink_distance")]
)
def test_what_a_class_may_not_say(kinks: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        type("Mine", (Layer,), {"kinks": kinks})
