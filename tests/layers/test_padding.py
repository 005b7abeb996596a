"""Padding beside numpy's pad, and its gradient beside sums over the places where a number stands."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from nn_manual import ConstantPad2d, ReflectionPad1d, ReflectionPad2d, ReplicationPad1d, ZeroPad2d
from nn_manual.arrays import Array, Shape
from nn_manual.layers import Layer
from nn_manual.layers.padding import Padding
from nn_manual.registry import components

#: numpy's name for what stands in the frame.
MODES: dict[str, Any] = {"Circular": "wrap", "Reflection": "reflect", "Replication": "edge"}
EXAMPLES = [
    example for owner in components(Layer).values() if issubclass(owner, Padding) for example in owner.examples()
]


def padded(layer: Any, input: Array, constant: float) -> Array:
    mode = MODES.get(type(layer).__name__.partition("Pad")[0], "constant")
    value = {"constant_values": constant} if mode == "constant" else {}
    return np.pad(input, [(0, 0), (0, 0), *layer.sides], mode=mode, **value)


@pytest.mark.parametrize(("layer", "shape"), EXAMPLES, ids=repr)
def test_numpy_agrees(layer: Any, shape: Shape) -> None:
    input = np.random.default_rng(0).standard_normal(shape)
    output, saved = layer.forward(input)
    assert (output == padded(layer, input, getattr(layer, "value", 0))).all()
    indices = padded(layer, np.arange(input.size).reshape(shape), -1)  # which number stands in each place
    grad_output = np.random.default_rng(1).standard_normal(output.shape)
    wanted = np.array([grad_output[indices == index].sum() for index in range(input.size)]).reshape(shape)
    np.testing.assert_allclose(layer.backward(saved, grad_output), wanted, rtol=0, atol=1e-14)


def test_the_sides_begin_with_the_last_dimension() -> None:
    assert ZeroPad2d([1, 2, 3, 4]).output_shape((5, 6, 10, 20)) == (5, 6, 17, 23)
    output, _ = ConstantPad2d([1, 0, 0, 0], 7.5).forward(np.zeros((1, 1, 1, 1)))
    assert output.tolist() == [[[[7.5, 0]]]]


def test_the_gradient_of_a_mirrored_number_is_a_sum() -> None:
    layer = ReflectionPad1d(2)
    output, saved = layer.forward(np.array([[[1.0, 2, 3]]]))
    assert output.tolist() == [[[3, 2, 1, 2, 3, 2, 1]]]
    grad_output = np.array([[[1.0, 10, 100, 1000, 10000, 100000, 1000000]]])
    assert layer.backward(saved, grad_output).tolist() == [[[1000100, 101010, 10001]]]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: ZeroPad2d([1, 2]),
            "padding is one number, or a list of 4, before and behind each dimension, the last dimension first, not "
            "[1, 2]",
        ),
        (lambda: ReplicationPad1d(-1), "padding must be at least 0, not -1"),
        (
            lambda: ReflectionPad2d(1).output_shape((1, 1, 3)),
            "ReflectionPad2d takes (batch, channels, height, width), the input has shape (1, 1, 3)",
        ),
    ],
)
def test_what_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        make()
