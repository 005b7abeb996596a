"""A layer meets other sizes of each dimension that it takes, odd ones, even ones and 1, and none that it doesn't."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from nn_manual.arrays import DTYPES, Array, Shape
from nn_manual.check.catalogue.cases import layer_cases
from nn_manual.check.catalogue.catalogue import Entry, entry
from nn_manual.check.catalogue.sizes import other_shapes
from nn_manual.layers import Conv2d, Dropout, Embedding, Flatten, Layer, Linear, MaxPool2d, ReLU, Residual
from nn_manual.model import Sequential


@dataclass(eq=False)
class Halved(Layer):
    """The means of two times each, (batch, time, features) to (batch, time // 2, features); an odd time's last is left
    out. Some backwards of it are right for even times alone.
    """

    backward_of: str = "all times"

    def output_shape(self, input_shape: Shape) -> Shape:
        batch_size, num_times, num_features = input_shape
        return (batch_size, num_times // 2, num_features)

    def forward(self, input: Array) -> tuple[Array, Shape]:
        even = input[:, : input.shape[1] // 2 * 2]
        output = (even[:, ::2] + even[:, 1::2]) / 2
        return output, input.shape

    def backward(self, saved: Shape, grad_output: Array) -> Array:
        grad_input = np.zeros(saved, grad_output.dtype)
        share = np.repeat(grad_output, 2, axis=1) / 2
        grad_input[:, : share.shape[1]] = share
        if self.backward_of == "even times" and saved[1] % 2:
            grad_input[:, -1] = grad_output[:, -1] / 2
        return grad_input

    def reference(self, input: Any) -> Any:
        return input[:, : input.shape[1] // 2 * 2].unflatten(1, (-1, 2)).mean(2)


def checked(layer: Layer, input_shape: Shape, dtype: str = "float64", upstream: str = "random") -> Entry:
    return entry("layer", dtype, layer_cases(layer, input_shape, dtype, seed=0, upstreams=[upstream]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_backward_that_is_right_for_even_times_alone(dtype: str) -> None:
    assert checked(Halved(), (2, 4, 3), dtype).failure is None
    found = checked(Halved("even times"), (2, 4, 3), dtype)
    assert found.last_case == "random input, shape 3x5x4, random upstream gradient"
    assert found.failure is not None
    assert found.failure.failures[0].name == "0.grad_input"


def test_a_squeeze_of_another_dimension_than_the_batch() -> None:
    @dataclass(eq=False)
    class Squeezed(Layer):
        def forward(self, input: Array) -> tuple[Array, Shape]:
            return np.tanh(input).squeeze(), input.shape

        def backward(self, saved: Shape, grad_output: Array) -> Array:
            return grad_output.reshape(saved)

        def infer(self, input: Array) -> Array:
            return np.tanh(input)

        def reference(self, input: Any) -> Any:
            return input.tanh()

        def output_shape(self, input_shape: Shape) -> Shape:
            if input_shape[0] == 1:
                raise ValueError("not of a batch of 1")
            return input_shape

    found = checked(Squeezed(), (4, 2, 3))
    assert found.failure is not None


@pytest.mark.parametrize(
    ("layer", "shape", "expected"),
    [
        (ReLU(), (4, 3), [(5, 4), (6, 5), (4, 1)]),
        (Halved(), (2, 4, 3), [(3, 5, 4), (4, 6, 5), (2, 4, 1)]),  # of 1 time nothing is left
        (Linear(3, 2), (4, 3), [(5, 3), (6, 3)]),
        (Linear(3, 2), (4, 6, 3), [(5, 7, 3), (6, 8, 3), (4, 1, 3)]),
        (Conv2d(2, 3, 2), (1, 2, 3, 4), [(2, 2, 4, 5), (3, 2, 5, 6)]),
        (MaxPool2d(2), (2, 1, 4, 4), [(3, 2, 5, 5), (4, 3, 6, 6)]),
        (Embedding(5, 2), (3, 4), [(4, 5), (5, 6), (3, 1)]),
        (Flatten(), (2, 3, 4), [(3, 4, 5), (4, 5, 6), (2, 1, 4), (2, 3, 1)]),
        (Dropout(), (4, 3), [(5, 4), (6, 5), (4, 1)]),
        (Residual(Linear(3, 3)), (4, 3), [(5, 3), (6, 3)]),
        (Sequential(Flatten(), Linear(6, 2)), (4, 2, 3), [(5, 2, 3), (6, 2, 3)]),
        (ReLU(), (4,), []),
    ],
)
def test_the_shapes_that_a_layer_takes(layer: Layer, shape: Shape, expected: list[Shape]) -> None:
    assert list(other_shapes(layer, shape, "float32")) == expected


@dataclass(eq=False)
class Scale(Layer):
    """A factor for each feature, and no word on the sizes that it takes: of 1 feature, NumPy would make all."""

    def parameter_shapes(self) -> dict[str, Shape]:
        return {"weight": (3,)}

    def reset_parameters(self, generator: np.random.Generator) -> None:
        self.param.weight[...] = generator.uniform(0.5, 1.5, 3)

    def forward(self, input: Array) -> tuple[Array, Array]:
        return input * self.param.weight, input

    def backward(self, saved: Array, grad_output: Array) -> Array:
        self.grad.weight[...] = (grad_output * saved).sum(axis=tuple(range(saved.ndim - 1)))
        grad_input: Array = grad_output * self.param.weight
        return grad_input

    def reference(self, input: Any, weight: Any) -> Any:
        return input * weight


def test_a_size_that_no_word_of_the_layer_refuses_is_not_asked_of_it() -> None:
    assert list(other_shapes(Scale(), (4, 3), "float64")) == [(5, 3), (6, 3)]
    assert list(other_shapes(Scale(), (4, 2, 3), "float64")) == [(5, 3, 3), (6, 4, 3), (4, 1, 3)]
    assert checked(Scale(), (4, 2, 3)).failure is None


@dataclass(eq=False)
class Pairs(Layer):
    """The two halves of the features, multiplied: of an odd number, forward raises."""

    def output_shape(self, input_shape: Shape) -> Shape:
        return (*input_shape[:-1], input_shape[-1] // 2)

    def forward(self, input: Array) -> tuple[Array, Any]:
        first, last = np.split(input, 2, axis=-1)
        return first * last, (first, last)

    def backward(self, saved: Any, grad_output: Array) -> Array:
        first, last = saved
        return np.concatenate([grad_output * last, grad_output * first], axis=-1)

    def reference(self, input: Any) -> Any:
        first, last = input.chunk(2, -1)
        return first * last


def test_where_one_more_is_refused_in_one_dimension_the_others_have_one_more() -> None:
    assert list(other_shapes(Pairs(), (3, 4, 6), "float64")) == [(4, 5, 6), (5, 6, 8), (3, 1, 6)]
    assert checked(Pairs(), (3, 4, 6)).failure is None


def test_without_numbers_there_is_nothing_to_compare() -> None:
    """The standard deviation of one number is no number where it is that of a sample."""

    class Standardized(Layer):
        def forward(self, input: Array) -> tuple[Array, Any]:
            with np.errstate(all="ignore"):
                centered = input - input.mean(axis=-1, keepdims=True)
                deviation = np.sqrt((centered**2).sum(axis=-1, keepdims=True) / (input.shape[-1] - 1))
                return centered / deviation, None

        def backward(self, saved: Any, grad_output: Array) -> Array:
            raise NotImplementedError

    assert list(other_shapes(Standardized(), (4, 3), "float64")) == [(5, 4), (6, 5)]
