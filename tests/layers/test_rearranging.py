"""Layers that move numbers, beside loops over their indices."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from nn_manual import ChannelShuffle, Permute, PixelShuffle, PixelUnshuffle
from nn_manual.arrays import Shape


@pytest.mark.parametrize(("layer", "shape"), PixelShuffle.examples(), ids=repr)
def test_channels_become_pixels_and_back(layer: Any, shape: Shape) -> None:
    input, factor = np.random.default_rng(0).standard_normal(shape), layer.upscale_factor
    output, saved = layer.forward(input)
    for n, c, h, w in np.ndindex(output.shape):
        channel = c * factor**2 + h % factor * factor + w % factor
        assert output[n, c, h, w] == input[n, channel, h // factor, w // factor]
    assert (layer.backward(saved, output) == input).all()
    back = PixelUnshuffle(factor)
    restored, saved = back.forward(output)
    assert (restored == input).all()
    assert (back.backward(saved, input) == output).all()


@pytest.mark.parametrize(("layer", "shape"), ChannelShuffle.examples(), ids=repr)
def test_channels_of_groups_take_turns(layer: Any, shape: Shape) -> None:
    input, groups = np.random.default_rng(0).standard_normal(shape), layer.groups
    output, saved = layer.forward(input)
    for channel in range(shape[1]):
        assert (output[:, channel] == input[:, channel % groups * (shape[1] // groups) + channel // groups]).all()
    assert (layer.backward(saved, output) == input).all()


@pytest.mark.parametrize(("layer", "shape"), Permute.examples(), ids=repr)
def test_dimensions_change_their_order(layer: Any, shape: Shape) -> None:
    input = np.random.default_rng(0).standard_normal(shape)
    output, saved = layer.forward(input)
    assert output.shape == layer.output_shape(shape)
    for index in np.ndindex(output.shape):
        place = [0] * len(shape)
        for dim, number in zip(layer.dims, index, strict=True):
            place[dim] = number
        assert output[index] == input[tuple(place)]
    assert (layer.backward(saved, output) == input).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PixelShuffle(0), "upscale_factor must be at least 1, not 0"),
        (lambda: PixelUnshuffle(-1), "downscale_factor must be at least 1, not -1"),
        (lambda: ChannelShuffle(0), "groups must be at least 1, not 0"),
        (
            lambda: PixelShuffle(2).output_shape((1, 6, 2, 2)),
            "PixelShuffle takes (batch, a multiple of 4 channels, height, width), the input has shape (1, 6, 2, 2)",
        ),
        (
            lambda: PixelUnshuffle(2).output_shape((1, 1, 3, 2)),
            "PixelUnshuffle takes (batch, channels, height, width) with sizes that 2 divides, the input has shape "
            "(1, 1, 3, 2)",
        ),
        (
            lambda: ChannelShuffle(2).output_shape((1, 3, 2)),
            "ChannelShuffle takes (batch, a multiple of 2 channels, ...), the input has shape (1, 3, 2)",
        ),
        *(
            (
                lambda dims=dims: Permute(dims),
                f"dims must be 0, which is the batch, and then each other dimension once, not {dims}",
            )
            for dims in ([], [1, 0], [0, 2], [0, 1, 1], [0, 1, -2], [0, -3, 1])
        ),
        (
            lambda: Permute([0, 2, 1]).output_shape((1, 3, 2, 4)),
            "Permute takes 3 dimensions, the input has shape (1, 3, 2, 4)",
        ),
    ],
)
def test_what_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        make()
