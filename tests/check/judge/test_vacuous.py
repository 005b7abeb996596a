"""A comparison that could not have failed is an error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from nets import batch, net

from nn_manual import (
    SGD,
    CrossEntropyLoss,
    Dropout,
    GradientChecker,
    GradientMismatch,
    Layer,
    Linear,
    MSELoss,
    ReLU,
    Residual,
    Sequential,
    Sigmoid,
    StochasticDepth,
    Tanh,
    Trainer,
    check_gradients,
)
from nn_manual.arrays import DTYPES, Array, Shape
from nn_manual.check.catalogue.upstream import UpstreamLoss
from nn_manual.check.compare.comparison import Quantity
from nn_manual.check.compare.tolerances import MEANINGLESS
from nn_manual.data import Examples
from nn_manual.step.slices.cut import Slicing


def test_a_zero_input_proves_nothing_about_the_weight() -> None:
    input, target = batch()
    report = check_gradients(Sequential(Linear(3, 4)), MSELoss(), 0 * input, target)
    assert report.agrees
    assert not report.passed
    assert report.vacuous == ("0 (Linear): 0.grad_weight is zero everywhere",)
    lines = str(report).splitlines()
    assert lines[0] == "gradient check failed: it proves nothing about 0 (Linear): 0.grad_weight is zero"
    assert lines[-2:] == [
        "vacuous, a wrong formula would have agreed, too:",
        "0 (Linear): 0.grad_weight is zero everywhere",
    ]


def test_a_dead_relu_proves_nothing_of_what_lies_before_it() -> None:
    model = net()
    model.layers[2].param.bias[...] = -100
    report = check_gradients(model, MSELoss(), *batch())
    assert [sentence.split(": ")[1].split()[0] for sentence in report.vacuous] == [
        *("3.output", "4.grad_weight", "3.grad_input", "2.grad_weight", "2.grad_bias", "2.grad_input"),
        *("1.grad_input", "0.grad_weight", "0.grad_bias", "0.grad_input"),
    ]


def test_in_training_a_tensor_is_proven_by_any_step_in_which_it_is_not_zero() -> None:
    model, loss = Sequential(Linear(3, 4), Tanh(), Linear(4, 4), seed=1), MSELoss()
    model.layers[2].param.weight[...] = 0
    optimizer = SGD(model, lr=0.1)
    checker = GradientChecker(model, loss, optimizer)

    def step() -> tuple[str, ...]:
        with checker.recording():
            checker.run(*batch())
            optimizer.step()
        checker.compare()
        return checker.unproven()

    assert [sentence.split(": ")[1] for sentence in step()] == [
        "2.grad_input is zero everywhere",
        "1.grad_input is zero everywhere",
        "0.grad_weight is zero everywhere",
        "0.grad_bias is zero everywhere",
    ]
    assert step() == ()
    model.param_arena[...] = 0
    assert step() == ()


def test_a_branch_that_a_random_draw_left_out() -> None:
    branch = Residual(Linear(3, 3), StochasticDepth(0.9, "batch"))
    report = check_gradients(Sequential(Linear(3, 3), branch, Linear(3, 4)), MSELoss(), *batch())
    assert report.vacuous[:2] == (
        "1.1 (StochasticDepth): its random draw is 0 alone, and leaves the branch out; another seed draws anew",
        "1.1 (StochasticDepth): 1.1.output is zero everywhere",
    )
    seed_1 = Sequential(Linear(3, 3), Residual(Linear(3, 3), StochasticDepth(0.1, "batch")), Linear(3, 4), seed=1)
    assert check_gradients(seed_1, MSELoss(), *batch()).vacuous == ()


def test_a_gradient_that_must_be_zero_is_proven_in_training() -> None:
    model = Sequential(Linear(3, 4), Sign(), Linear(4, 4))
    checker = GradientChecker(model, MSELoss())
    with checker.recording():
        checker.run(*batch())
    checker.compare()
    assert checker.unproven() == ()


def test_a_prediction_that_is_right_already_proves_nothing() -> None:
    model, (input, _) = net(), batch()
    report = check_gradients(model, MSELoss(), input, model(input))
    assert "loss: loss is zero everywhere" in report.vacuous
    assert "0 (Linear): 0.grad_weight is zero everywhere" in report.vacuous


@dataclass(eq=False)
class Sign(Layer):
    """output = sign(input), whose gradient is zero wherever it exists."""

    def forward(self, input: Array) -> tuple[Array, None]:
        return np.sign(input), None

    def backward(self, saved: None, grad_output: Array) -> Array:  # noqa: ARG002
        return np.zeros_like(grad_output)

    def reference(self, input: torch.Tensor) -> torch.Tensor:
        return torch.sign(input)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_gradient_that_must_be_zero_is_no_error(dtype: str) -> None:
    report = check_gradients(Sequential(Linear(3, 4), Sign(), Linear(4, 4), dtype=dtype), MSELoss(), *batch(dtype))
    assert report.passed, str(report)
    assert [c.name for c in report.comparisons if c.scale == 0] == [
        *("1.grad_input", "0.grad_weight", "0.grad_bias", "0.grad_input")
    ]


@pytest.mark.parametrize("value", [1.0, 0.25])
def test_an_upstream_gradient_of_ones_proves_nothing(value: float) -> None:
    input, target = batch()
    report = check_gradients(net(), UpstreamLoss(), input, np.full_like(target, value))
    assert report.vacuous == (f"4 (Linear): its grad_output is {value:g} everywhere",)
    assert not report.passed
    one_number = check_gradients(Sequential(Linear(3, 1)), UpstreamLoss(), input[:1], np.full((1, 1), 2, np.float32))
    assert one_number.passed, "a gradient of one element can't be anything else"


@dataclass(eq=False)
class SharesItsOutput(Tanh):
    """Its reference returns our own array."""

    def forward(self, input: Array) -> tuple[Array, Array]:
        self.output, saved = super().forward(input)
        return self.output, saved

    def reference(self, input: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(self.output).requires_grad_(input.requires_grad)


def test_a_tensor_compared_with_itself_is_an_error() -> None:
    model = Sequential(Linear(3, 4), SharesItsOutput())
    report = check_gradients(model, MSELoss(), *batch())
    assert report.problem == "1 (SharesItsOutput): 1.output is compared with itself: torch's shares its memory"
    checker = GradientChecker(model, MSELoss())
    with checker.recording():
        checker.run(*batch())
    with pytest.raises(GradientMismatch, match="compared with itself"):
        checker.compare()


@dataclass(eq=False)
class Identity(Layer):
    """output = input, the very array; torch's Identity does the same with ours."""

    def forward(self, input: Array) -> tuple[Array, None]:
        return input, None

    def backward(self, saved: None, grad_output: Array) -> Array:  # noqa: ARG002
        return grad_output


@pytest.mark.parametrize("layers", [(Identity(),), (Identity(), Linear(3, 4)), (Linear(3, 4), Identity(), Identity())])
def test_a_layer_that_passes_its_input_on_is_not_compared_with_itself(layers: tuple[Layer, ...]) -> None:
    input, target = batch()
    report = check_gradients(Sequential(*layers), MSELoss(), input, target[:, : 3 if len(layers) == 1 else 4])
    assert report.passed, str(report)


@dataclass(eq=False)
class Nothing(Layer):
    """A layer that throws everything away."""

    def output_shape(self, input_shape: Shape) -> Shape:
        return (*input_shape[:-1], 0)

    def forward(self, input: Array) -> tuple[Array, Any]:
        return input[..., :0], input.shape

    def backward(self, saved: Shape, grad_output: Array) -> Array:
        return np.zeros(saved, grad_output.dtype)

    def reference(self, input: torch.Tensor) -> torch.Tensor:
        return input[..., :0]


def test_an_empty_tensor_is_an_error() -> None:
    model, target = Sequential(Linear(3, 4), Nothing()), np.zeros((4, 0), np.float32)
    report = check_gradients(model, UpstreamLoss(), batch()[0], target)
    assert report.problem == "1 (Nothing): 1.output is empty, shape (4, 0): nothing to compare"


def test_an_empty_batch_is_an_error() -> None:
    (input, target), checker = batch(), GradientChecker(net(), UpstreamLoss())
    with checker.recording():
        checker.run(input[:0], target[:0])
    with pytest.raises(GradientMismatch) as caught:
        checker.compare()
    assert caught.value.report.problem == "0 (Linear): 0.output is empty, shape (0, 4): nothing to compare"


@pytest.mark.parametrize("tolerance", [MEANINGLESS, 1.0, float("inf"), float("nan")])
def test_a_tolerance_at_which_twice_the_value_passes_is_refused(tolerance: float) -> None:
    with pytest.raises(ValueError, match=r"0\.grad_weight: at a tolerance of .* of the norm, half the value passes"):
        Quantity("0.grad_weight", "0 (Linear)", tolerance)


def test_relu_alone_on_negative_inputs() -> None:
    input = -np.abs(batch()[0])
    report = check_gradients(Sequential(ReLU()), UpstreamLoss(), input, input.copy())
    assert [sentence.split(": ")[1] for sentence in report.vacuous] == [
        *("0.output is zero everywhere", "loss is zero everywhere", "loss.grad_target is zero everywhere"),
        "0.grad_input is zero everywhere",
    ]


@dataclass(eq=False)
class OfPositive(Layer):
    """A logarithm whose reference refuses what it isn't made for."""

    def forward(self, input: Array) -> tuple[Array, Array]:
        return np.log(input), input

    def backward(self, saved: Array, grad_output: Array) -> Array:
        return grad_output / saved

    def reference(self, input: Any) -> Any:
        if (input <= 0).any():
            raise ValueError("only positive numbers")
        return torch.log(input)


def test_where_a_reference_takes_no_random_numbers_zeros_are_unproven() -> None:
    ones = np.ones((2, 3))
    report = check_gradients(Sequential(OfPositive(), dtype="float64"), UpstreamLoss(), ones, ones)
    assert report.agrees
    assert "0 (OfPositive): 0.output is zero everywhere" in report.vacuous


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"slicing": Slicing(2)}, {"compiled": True}], ids=["plain", "cut", "jit"])
def test_an_unchecked_last_batch_of_another_size_leaves_a_random_layer_to_be_judged(settings: dict[str, Any]) -> None:
    """It alone leaves a random layer to a later batch."""
    model = Sequential(Linear(3, 4), Sigmoid(), Dropout(0.5), Linear(4, 2))
    model.param_arena[...] = 0
    trainer = Trainer(model, CrossEntropyLoss(), SGD(model, lr=0.1), check_every=2, **settings)
    train = Examples(np.random.default_rng(0).standard_normal((14, 3)).astype(np.float32), np.arange(14) % 2)
    assert [len(list(trainer.epoch(train, 6, seed=0, epoch=0))), trainer.model.num_steps] == [3, 3]
    assert trainer.checker is not None
    assert "0 (Linear): 0.output is zero everywhere" in trainer.checker.unproven()
