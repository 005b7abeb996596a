"""What the judge makes of values that are no numbers: a wrong formula, or a step that is too large."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from nets import batch, break_gradient, net, replace_method

from nn_manual import (
    SGD,
    CrossEntropyLoss,
    GradientMismatch,
    Layer,
    Linear,
    LogSigmoid,
    MaxPool2d,
    MSELoss,
    NotFiniteError,
    Sequential,
    Tanh,
    Trainer,
    check_gradients,
)
from nn_manual.arrays import DTYPES, Array, Shape
from nn_manual.check.catalogue.input_kinds import draw
from nn_manual.check.judge.step_check import StepCheck
from nn_manual.check.judge.step_claim import StepClaim

each_dtype = pytest.mark.parametrize("dtype", DTYPES)


def zero_by_zero(grad: Array) -> Array:
    """NaN where the gradient is 0, as a formula that divides by its own input gives; and at one element more."""
    grad[0] = 0
    return grad * (grad / grad)


@each_dtype
@pytest.mark.parametrize("tensor", ["2.grad_weight", "1.grad_input", "loss.grad_prediction"])
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_a_formula_that_gives_nan_where_torch_has_a_number_is_wrong(tensor: str, dtype: str) -> None:
    place, name = tensor.split(".")
    model, loss = net(dtype), MSELoss()
    break_gradient(loss if place == "loss" else model.layers[int(place)], name, zero_by_zero)
    report = check_gradients(model, loss, *batch(dtype))
    assert report.failures[0].name == tensor
    assert report.not_finite is None
    with pytest.raises(GradientMismatch, match=f"wrong first in .*: {tensor}"):
        Trainer(model, loss, SGD(model)).train_step(*batch(dtype))


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_a_loss_that_gives_nan_where_torch_has_a_number_is_wrong() -> None:
    model, loss = net(), MSELoss()
    replace_method(loss, "forward", lambda right, *a: (np.float32(np.nan), right(*a)[1]))
    with pytest.raises(GradientMismatch, match="wrong first in loss: loss"):
        Trainer(model, loss, SGD(model)).train_step(*batch())


@each_dtype
def test_a_gradient_that_is_zero_and_never_written_is_wrong(dtype: str) -> None:
    """Of a parameter that forward doesn't use: the arena of the model in float64 must not lend it its zeros."""

    class HasASpare(Tanh):
        def parameter_shapes(self) -> dict[str, Shape]:
            return {"spare": (3,)}

        def reference(self, input: torch.Tensor, spare: torch.Tensor) -> torch.Tensor:
            return torch.tanh(input) + 0 * spare.sum()

    report = check_gradients(Sequential(Linear(3, 4), HasASpare(), dtype=dtype), MSELoss(), *batch(dtype))
    assert report.failures[0].name == "1.grad_spare"
    assert report.not_finite is None
    assert report.diagnosis.endswith("it was never written, or added to what was there")


class Normalized(Layer):
    """input / max(norm of the row, 1e-6), with a reference whose gradient is 0 / 0 at a row of zeros."""

    def forward(self, input: Array) -> tuple[Array, tuple[Array, Array]]:
        norm = np.maximum(np.sqrt((input**2).sum(axis=-1, keepdims=True)), input.dtype.type(1e-6))
        return input / norm, (input / norm, norm)

    def backward(self, saved: tuple[Array, Array], grad_output: Array) -> Array:
        output, norm = saved
        along = output * (grad_output * output).sum(axis=-1, keepdims=True)
        grad: Array = (grad_output - np.where(norm > 1e-6, along, 0)) / norm
        return grad

    def reference(self, input: torch.Tensor) -> torch.Tensor:
        return input / (input * input).sum(-1, keepdim=True).sqrt().clamp(min=1e-6)


@each_dtype
def test_a_reference_that_is_not_finite_judges_nothing_in_a_report_and_in_a_step(dtype: str) -> None:
    """The positions are of the reference, which is the layer's own, not torch's."""
    input, target = batch(dtype)
    input[3] = 0
    model = Sequential(Linear(3, 4, bias=False), Normalized(), Linear(4, 4), dtype=dtype)
    words = (
        "1.grad_input of 1 (Normalized) can't be judged: it is finite, and its reference has no finite number at 4 of "
        f"{4 * len(input)} positions: (3, 0), (3, 1), (3, 2), (3, 3)"
    )
    report = check_gradients(model, MSELoss(), input, target)
    assert not report.passed
    assert report.not_finite == words
    assert " ".join(str(report).partition("\n\n")[0].split()) == f"gradient check failed: {words}"
    with pytest.raises(NotFiniteError, match=f"^{re.escape(words)} at step 1$"):
        Trainer(model, MSELoss(), SGD(model)).train_step(input, target)


def test_a_value_that_only_float32_can_not_hold_is_no_wrong_formula() -> None:
    """The square of the doubled input overflows, a quarter of it is a number to torch; in float64 both are."""

    def large_on_the_way(_: Any, layer: Linear, input: Array) -> tuple[Array, Array]:
        large = input @ layer.param.weight.T * input.dtype.type(1e38)
        return large / input.dtype.type(1e38), input

    model = Sequential(Linear(1, 1, bias=False))
    model.param_arena[0] = 10
    replace_method(model.layers[0], "forward", large_on_the_way)
    input, target = np.full((4, 1), 2, np.float32), np.ones((4, 1), np.float32)
    with np.errstate(over="ignore"):
        report = check_gradients(model, MSELoss(), input, target)
        assert report.not_finite == "0.output of 0 (Linear) holds inf at index (0, 0)"
        with pytest.raises(NotFiniteError, match=r"^0\.output of 0 \(Linear\) holds inf at index \(0, 0\) at step 1$"):
            Trainer(model, MSELoss(), SGD(model)).train_step(input, target)


def test_a_state_vector_that_cancels_is_rounding_and_a_wrong_one_is_not() -> None:
    """grad + weight_decay * param is 0 but for rounding. In float64 a wrong factor has digits to show in."""
    model = Sequential(Linear(1, 1, bias=False))
    optimizer = SGD(model, lr=0.1, momentum=0.9, weight_decay=0.3)
    trainer = Trainer(model, MSELoss(), optimizer)
    input = np.ones((3, 1), np.float32)

    def step(param: float, target: float) -> StepCheck | None:
        optimizer.num_steps, model.param_arena[0] = 1, param
        optimizer.vectors["momentum_buffer"][0] = 0
        return trainer.train_step(input, np.full((3, 1), target, np.float32)).check

    def rounded_otherwise(right: Any, self: Any) -> None:
        """As float32's last bit may fall on another processor."""
        right(self)
        buffer = self.vectors["momentum_buffer"]
        buffer += 2.0**-25 if buffer.dtype == np.float32 else 0

    replace_method(optimizer, "step", rounded_otherwise)
    num_rounding = 0
    for seed in range(20):
        param = float(np.random.default_rng(seed).uniform(2, 3))
        check = step(param, 1.15 * param)
        assert check is not None
        num_rounding += "0.weight.momentum_buffer" in check.rounding
    assert num_rounding >= 3
    replace_method(optimizer, "step", lambda right, self: (right(self), self.vectors["momentum_buffer"].__imul__(2)))
    with pytest.raises(GradientMismatch, match=r"optimizer: 0\.weight\.momentum_buffer"):
        step(2.0, 1.15 * 2.0 * 1.00001)


class UsesTheLastPlace(MaxPool2d):
    """Its backward takes the places of the forward before."""

    torch_class: ClassVar[str | None] = "MaxPool2d"

    def forward(self, input: Array) -> tuple[Array, tuple[Array, Shape]]:
        output, (place, shape) = super().forward(input)
        before, self.before = vars(self).get("before", place), place
        return output, (before, shape)


def test_a_layer_that_is_right_where_a_step_is_made_again_is_wrong() -> None:
    """Ties that rounding breaks excuse another place. Made again in float64, the step finds the place of its own
    forward, which is the one before then.
    """
    layers = Linear(3, 4), Tanh(), UsesTheLastPlace(2), Tanh(), Linear(2, 3)
    trainer = Trainer(model := Sequential(*layers, seed=0), MSELoss(), SGD(model, lr=0.1), check_memory=0)
    generator = np.random.default_rng(1)
    steps = [
        (draw("tied", (2, 2, 4, 3), "float32", generator), generator.standard_normal((2, 2, 2, 3), np.float32))
        for _ in range(2)
    ]
    with pytest.raises(GradientMismatch, match=r"backward uses what another forward\s+left behind"):
        _ = [trainer.train_step(*step) for step in steps]


def test_a_slope_that_vanished_beside_torchs_is_rounding() -> None:
    """At 710, torch's slope of LogSigmoid is 4e-309, and ours is 0: exp(710) overflows. The gradient of the
    output brings torch's back among the normal numbers.
    """
    model = Sequential(LogSigmoid(), Linear(1, 1, bias=False), dtype="float64")
    model.param_arena[0] = 1
    report = check_gradients(model, MSELoss(), np.full((1, 1), 710.0), np.full((1, 1), -1e5))
    assert report.agrees
    assert "0.grad_input" in report.rounding


@pytest.mark.parametrize("seed", range(10))
def test_the_gradient_of_an_almost_perfect_prediction_is_rounding(seed: int) -> None:
    """Scores hundreds apart: where the label leads, ours is 1e-200, and torch's 1 - 1. Of four predictions that get
    smaller, only the last ones show what torch's loses there.
    """
    generator = np.random.default_rng(seed)
    input, target = 1e3 * generator.standard_normal((14, 4)), generator.integers(0, 3, 14)
    model = Sequential(Linear(4, 3), seed=seed, dtype="float64")
    assert check_gradients(model, CrossEntropyLoss(), input, target).agrees


def test_beside_a_wrong_formula_no_rounding_is_measured_that_no_report_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    moved: list[np.dtype[Any]] = []

    def counted(self: StepClaim, *arguments: Any) -> Any:
        moved.append(self.dtype)
        return right(self, *arguments)

    right = StepClaim.moved
    monkeypatch.setattr(StepClaim, "moved", counted)
    model = net("float32")
    break_gradient(model.layers[2], "grad_weight", lambda grad: 2 * grad)
    report = check_gradients(model, MSELoss(), *batch("float32"))
    assert report.failures[0].name == "2.grad_weight"
    assert set(moved) == {np.dtype(np.float64)}
