"""Convolution beside its definition, one number of the output after the other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from nn_manual import (
    CircularPad2d,
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    Sequential,
    ZeroPad2d,
)
from nn_manual.arrays import Shape
from nn_manual.layers import windowed_map
from nn_manual.layers.windows import of_each

CLASSES: list[Any] = [Conv1d, Conv2d, Conv3d]
TRANSPOSED: list[Any] = [ConvTranspose1d, ConvTranspose2d, ConvTranspose3d]
EXAMPLES = [example for owner in CLASSES for example in owner.examples()]
EXAMPLES_OF_TRANSPOSED = [example for owner in TRANSPOSED for example in owner.examples()]


def bound(layer: Any, dtype: str = "float64") -> Any:
    Sequential(layer, dtype=dtype)
    return layer


def products(layer: Any, places_shape: Shape) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]:
    """Which numbers meet, by the definition: for each place of the windows and each number of the weight, the indices
    of the place, of the weight, and of the number of the image, counted from the beginning of the frame.
    """
    weight, num_dims = layer.param.weight, layer.num_dims
    strides, steps = (of_each(value, num_dims) for value in (layer.stride, layer.dilation))
    of_group = places_shape[1] // layer.groups
    for n, channel, *place in np.ndindex(places_shape):
        for c, *number in np.ndindex(weight.shape[1:]):
            image_channel = channel // of_group * weight.shape[1] + c
            axes = zip(place, strides, number, steps, strict=True)
            where = [at * stride + own * step for at, stride, own, step in axes]
            yield (n, channel, *place), (channel, c, *number), (n, image_channel, *where)


def frame(layer: Any) -> list[tuple[int, int]]:
    """How many numbers stand before and behind each dimension."""
    padding, num_dims = layer.padding, layer.num_dims
    if padding != "same":
        return [(0, 0), (0, 0), *((size, size) for size in of_each(0 if padding == "valid" else padding, num_dims))]
    spans = zip(of_each(layer.kernel_size, num_dims), of_each(layer.dilation, num_dims), strict=True)
    zeros = [step * (size - 1) for size, step in spans]
    return [(0, 0), (0, 0), *((count // 2, (count + 1) // 2) for count in zeros)]


#: numpy's name for what stands in the frame.
MODES: dict[str, Any] = {"zeros": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def bias_of(layer: Any) -> Any:
    return layer.param.bias.reshape(-1, *[1] * layer.num_dims) if layer.bias else 0


@pytest.mark.parametrize(("layer", "shape"), EXAMPLES, ids=repr)
def test_loops_agree(layer: Any, shape: Shape) -> None:
    """The definition: each number of the output is the sum over a window of one group of channels."""
    input = np.random.default_rng(0).standard_normal(shape)
    output, _ = bound(layer).forward(input)
    padded = np.pad(input, frame(layer), mode=MODES[layer.padding_mode])
    expected = np.zeros(layer.output_shape(shape))
    for place, number, where in products(layer, expected.shape):
        expected[place] += layer.param.weight[number] * padded[where]
    np.testing.assert_allclose(output, expected + bias_of(layer), rtol=0, atol=1e-14)


@pytest.mark.parametrize(("layer", "shape"), EXAMPLES_OF_TRANSPOSED, ids=repr)
def test_loops_of_the_transpose_agree(layer: Any, shape: Shape) -> None:
    """The definition: each number of the input adds its multiples of the weight to a window of the output."""
    input = np.random.default_rng(0).standard_normal(shape)
    output, _ = bound(layer).forward(input)
    padded = np.pad(np.zeros(output.shape), frame(layer))
    for place, number, where in products(layer, shape):
        padded[where] += layer.param.weight[number] * input[place]
    inside = tuple(slice(size, own - size) for (size, _), own in zip(frame(layer), padded.shape, strict=True))
    np.testing.assert_allclose(output, padded[inside] + bias_of(layer), rtol=0, atol=1e-14)


@pytest.mark.parametrize(("layer", "shape"), EXAMPLES_OF_TRANSPOSED, ids=repr)
def test_the_transpose_takes_a_gradient_back_as_a_convolution_does(layer: Any, shape: Shape) -> None:
    """The convolution with the same weight, from the output to the input: forward is its backward, bit for bit."""
    settings = layer.kernel_size, layer.stride, layer.padding, layer.dilation, layer.groups
    conv = bound(CLASSES[layer.num_dims - 1](layer.out_channels, layer.in_channels, *settings, bias=False))
    input = np.random.default_rng(0).standard_normal(shape)
    output, _ = bound(layer).forward(input)
    conv.param.weight[...] = layer.param.weight
    _, saved = conv.forward(np.zeros(output.shape))
    if conv.output_shape(output.shape) == shape:  # an output_padding below dilation may leave room for more windows
        assert (output == conv.backward(saved, input) + bias_of(layer)).all()


def test_a_case_of_the_transpose_by_hand() -> None:
    """Two numbers, two places apart: each becomes 1 of itself and 10 of itself. The frame takes the first away."""
    layer = bound(ConvTranspose1d(1, 1, 2, stride=2, padding=1, output_padding=1))
    layer.param.weight[...], layer.param.bias[...] = [[[1, 10]]], 0.5
    output, saved = layer.forward(np.array([[[3.0, 4]]]))
    assert output.tolist() == [[[30.5, 4.5, 40.5]]]
    assert layer.backward(saved, np.array([[[1.0, 2, 7]]])).tolist() == [[[10, 72]]]
    assert layer.grad.weight.tolist() == [[[4 * 2, 3 * 1 + 4 * 7]]]
    assert layer.grad.bias.tolist() == [10]


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
@pytest.mark.parametrize("owner", [Conv2d, ConvTranspose2d])
def test_a_batch_in_parts_is_the_same_batch(owner: Any, num_columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def results() -> list[Any]:
        conv, generator = bound(owner(3, 4, 3, padding=1)), np.random.default_rng(0)
        output, saved = conv.forward(generator.standard_normal((7, 3, 5, 4)))
        grad_input = conv.backward(saved, generator.standard_normal(output.shape))
        return [output, grad_input, conv.grad.weight, conv.grad.bias]

    whole = results()
    monkeypatch.setattr(windowed_map, "NUM_COLUMNS", num_columns)
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
        ((1, 1, 2, 2, "same"), "padding is same, which takes a stride of 1, not 2"),
        ((1, 1, 0, 1, "same"), "kernel_size must be at least 1, not 0"),
        ((1, 1, 2, 1, "full"), "padding is a number, one for each dimension, same or valid, not 'full'"),
        (
            (1, 1, 2, 1, 0, 1, 1, True, "mirror"),
            "padding_mode must be one of zeros, reflect, replicate, circular, not 'mirror'",
        ),
        ((1, 1, [1, 2, 3]), "kernel_size is one number, or a list of 2 for height, width, not [1, 2, 3]"),
    ],
)
def test_settings_that_are_refused(settings: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Conv2d(*settings)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((2, 3, 4, 4), "Conv2d has in_channels=2, the input has shape (2, 3, 4, 4)"),
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


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"output_padding": 1}, "output_padding must be below stride=1 or dilation=1, not 1"),
        (
            {"stride": [2, 1], "output_padding": [1, 1]},
            "output_padding must be below stride=[2, 1] or dilation=1, not [1, 1]",
        ),
        ({"output_padding": -1}, "output_padding must be at least 0, not -1"),
        ({"output_padding": [0]}, "output_padding is one number, or a list of 2 for height, width, not [0]"),
        ({"groups": 2}, "groups must divide in_channels=1, 2 doesn't"),
    ],
)
def test_settings_of_the_transpose_that_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        ConvTranspose2d(1, 1, 2, **settings)


def test_a_transpose_without_an_output_is_refused() -> None:
    """torch makes an array without numbers of it."""
    message = (
        "ConvTranspose1d would make 0 numbers in dimension 2: the input has shape (2, 1, 2), kernel_size is 1, "
        "stride 1 and padding 1"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        bound(ConvTranspose1d(1, 1, 1, padding=1)).forward(np.zeros((2, 1, 2)))
    assert ConvTranspose1d(1, 1, 1, padding=1).output_shape((2, 1, 3)) == (2, 1, 1)
    with pytest.raises(ValueError, match=r"^ConvTranspose1d takes images with numbers in them, .* \(2, 1, 0\)$"):
        bound(ConvTranspose1d(1, 1, 5)).forward(np.zeros((2, 1, 0)))


def test_a_frame_that_the_image_cannot_fill_is_refused() -> None:
    conv = bound(Conv1d(1, 1, 3, padding=1, padding_mode="reflect"))
    message = "ReflectionPad1d mirrors at least 2 numbers in dimension 2, the input has shape (1, 1, 1)"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        conv.forward(np.zeros((1, 1, 1)))


@pytest.mark.parametrize("mode", ["zeros", "circular"])
def test_a_frame_changes_the_gradient_of_each_parameter_and_of_the_input(mode: Any) -> None:
    """Beside the convolution of the framed input, with the frame's own gradient."""
    conv = bound(Conv2d(2, 3, [2, 4], padding="same", padding_mode=mode))
    plain = bound(Conv2d(2, 3, [2, 4]))
    plain.param.weight[...], plain.param.bias[...] = conv.param.weight, conv.param.bias
    around = (ZeroPad2d if mode == "zeros" else CircularPad2d)([1, 2, 0, 1])
    generator = np.random.default_rng(0)
    input, grad_output = generator.standard_normal((2, 2, 3, 4)), generator.standard_normal((2, 3, 3, 4))
    framed, saved_frame = around.forward(input)
    (output, saved), (wanted, saved_plain) = conv.forward(input), plain.forward(framed)
    assert (output == wanted).all()
    grad_input = conv.backward(saved, grad_output)
    assert (grad_input == around.backward(saved_frame, plain.backward(saved_plain, grad_output))).all()
    assert (conv.grad.weight == plain.grad.weight).all()
    assert (conv.grad.bias == plain.grad.bias).all()
