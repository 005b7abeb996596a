"""Convolution beside its definition, one number of the output after the other."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from nn_manual import Conv2d, Sequential
from nn_manual.arrays import Array, Shape
from nn_manual.layers import convolution
from nn_manual.layers.windows import pair

EXAMPLES = Conv2d.examples()


def bound(layer: Conv2d, dtype: str = "float64") -> Conv2d:
    Sequential(layer, dtype=dtype)
    return layer


def by_loops(conv: Conv2d, input: Array, shape: Shape) -> Array:
    """The definition: each number of the output is the sum over a window of one group of channels."""
    (stride_y, stride_x), (top, left) = pair(conv.stride), pair(conv.padding)
    (step_y, step_x), weight = pair(conv.dilation), conv.param.weight
    padded = np.pad(input, [(0, 0), (0, 0), (top, top), (left, left)])
    channels_out, channels_in = shape[1] // conv.groups, input.shape[1] // conv.groups
    output = np.zeros(shape)
    for n, o, y, x in np.ndindex(shape):
        output[n, o, y, x] = conv.param.bias[o] if conv.bias else 0
        for c, row, column in np.ndindex(weight.shape[1:]):
            channel = o // channels_out * channels_in + c
            place = y * stride_y + row * step_y, x * stride_x + column * step_x
            output[n, o, y, x] += weight[o, c, row, column] * padded[n, channel, *place]
    return output


@pytest.mark.parametrize(("layer", "shape"), EXAMPLES, ids=repr)
def test_loops_agree(layer: Conv2d, shape: Shape) -> None:
    input = np.random.default_rng(0).standard_normal(shape)
    output, _ = bound(layer).forward(input)
    np.testing.assert_allclose(output, by_loops(layer, input, layer.output_shape(shape)), rtol=0, atol=1e-14)


def test_a_case_by_hand() -> None:
    """A kernel of one row looks to the right: 1 of the number and 10 of its neighbour. The frame is zeros."""
    conv = bound(Conv2d(1, 1, [1, 2], padding=[0, 1], bias=False))
    conv.param.weight[...] = [[[[1, 10]]]]
    output, saved = conv.forward(np.array([[[[1.0, 2, 3], [4, 5, 6]]]]))
    assert output.tolist() == [[[[10, 21, 32, 3], [40, 54, 65, 6]]]]
    grad_input = conv.backward(saved, np.array([[[[1.0, 0, 0, 2], [0, 3, 0, 0]]]]))
    assert grad_input.tolist() == [[[[10, 0, 2], [3, 30, 0]]]]
    assert conv.grad.weight.tolist() == [[[[2 * 3 + 3 * 4, 1 * 1 + 3 * 5]]]]


@pytest.mark.parametrize("num_columns", [1, 100])
def test_a_batch_in_parts_is_the_same_batch(num_columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def results() -> list[Any]:
        conv, generator = bound(Conv2d(3, 4, 3, padding=1)), np.random.default_rng(0)
        output, saved = conv.forward(generator.standard_normal((7, 3, 5, 4)))
        grad_input = conv.backward(saved, generator.standard_normal(output.shape))
        return [output, grad_input, conv.grad.weight, conv.grad.bias]

    whole = results()
    monkeypatch.setattr(convolution, "NUM_COLUMNS", num_columns)
    for ours, wanted in zip(results(), whole, strict=True):
        np.testing.assert_allclose(ours, wanted, rtol=0, atol=1e-13)


def test_initial_values_are_torchs() -> None:
    conv = bound(Conv2d(8, 64, [2, 4], groups=4))
    for values in (conv.param.weight, conv.param.bias):
        assert 0.22 < np.abs(values).max() <= 1 / 16**0.5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ((0, 1, 1), "in_channels must be at least 1, not 0"),
        ((1, 1, 0), "kernel_size must be at least 1, not 0"),
        ((1, 1, 1, 0), "stride must be at least 1, not 0"),
        ((1, 1, 1, 1, -1), "padding must be at least 0, not -1"),
        ((1, 1, 1, 1, 0, [1, 0]), "dilation must be at least 1, not [1, 0]"),
        ((3, 4, 1, 1, 0, 1, 2), "groups must divide in_channels=3, 2 doesn't"),
        ((4, 3, 1, 1, 0, 1, 2), "groups must divide out_channels=3, 2 doesn't"),
        ((1, 1, [1, 2, 3]), "kernel_size is one number, or two for height and width, not [1, 2, 3]"),
    ],
)
def test_settings_that_are_refused(settings: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Conv2d(*settings)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((2, 3, 4, 4), "Conv2d takes (batch, in_channels=2, height, width), the input has shape (2, 3, 4, 4)"),
        ((2, 4, 4), "Conv2d takes (batch, in_channels=2, height, width), the input has shape (2, 4, 4)"),
        (
            (2, 2, 5, 3),
            "Conv2d has windows of 5 in dimension 3, the input has shape (2, 2, 5, 3) and a padding of 0",
        ),
    ],
)
def test_inputs_that_do_not_fit(shape: Shape, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        bound(Conv2d(2, 1, 3, dilation=2)).forward(np.zeros(shape))
