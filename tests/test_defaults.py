"""What a class has of its own, though the default of its base stands before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nn_manual import Layer, MSELoss, Sequential, Tanh, check_gradients
from nn_manual.arrays import Array
from nn_manual.defaults import defines, is_of_package
from nn_manual.losses import Loss


class Math:
    """What a class behind the layer's base says."""

    def reference(self, input: Any) -> Any:
        return input / (1 + input.abs())

    def infer_reference(self, input: Any) -> Any:
        return input / (1 + input.abs())

    def kink_distance(self, input: Array) -> Array:
        distance: Array = np.abs(input - 1)
        return distance


@dataclass(eq=False)
class Squash(Layer, Math):
    """output = input / (1 + 2 |input|), which is not its reference"""

    def forward(self, input: Array) -> tuple[Array, Array]:
        return input / (1 + 2 * np.abs(input)), input

    def backward(self, saved: Array, grad_output: Array) -> Array:
        grad_input: Array = grad_output / np.square(1 + 2 * np.abs(saved))
        return grad_input


class Named:
    torch_class: ClassVar[str | None] = "Tanh"


@dataclass(eq=False)
class Sine(Layer, Named):
    """output = sin(input), which is not torch.nn.Tanh"""

    def forward(self, input: Array) -> tuple[Array, Array]:
        return np.sin(input), input

    def backward(self, saved: Array, grad_output: Array) -> Array:
        grad_input: Array = grad_output * np.cos(saved)
        return grad_input


class Halving:
    def backward_target(self, saved: Any) -> Array:
        return np.full_like(saved, 0.25)

    def reference(self, prediction: Any, target: Any) -> Any:
        return (prediction - target).sum() / 2


@dataclass(eq=False)
class HalfSum(Loss, Halving):
    """loss = sum(prediction - target) / 2; its grad_target is wrong"""

    reduction: str = "sum"

    def forward(self, prediction: Array, target: Array) -> tuple[Any, Array]:
        return (prediction - target).sum() / 2, prediction

    def backward(self, saved: Array) -> Array:
        return np.full_like(saved, 0.5)


def test_what_stands_behind_the_base_counts() -> None:
    input, target = np.random.default_rng(0).standard_normal((2, 8, 3))
    for layer in (Squash(), Sine()):
        report = check_gradients(Sequential(layer, dtype="float64"), MSELoss(), input, target)
        assert report.failures[0].name == "0.output"
    assert defines(Squash(), "infer_reference")
    np.testing.assert_array_equal(Squash().kink_distance(np.array([3.0, 1])), [2, 0])
    report = check_gradients(Sequential(Tanh(), dtype="float64"), HalfSum(), input, target)
    assert [failure.name for failure in report.failures] == ["loss.grad_target"]


def test_a_default_is_nothing_of_its_own_and_neither_is_none() -> None:
    class Without(Squash):
        reference = None  # type: ignore[assignment]  # as a user takes it away

    assert defines(Squash(), "reference")
    assert not defines(Without(), "reference")
    assert not defines(Tanh(), "reference")
    assert not defines(Tanh, "infer")
    assert not defines(Tanh(), "input_shapes")  # which only composites have


def test_a_class_and_a_function_of_the_package_and_others() -> None:
    assert is_of_package(Layer)
    assert is_of_package(defines)
    assert not is_of_package(np.ndarray)
    assert not is_of_package(test_a_class_and_a_function_of_the_package_and_others)
