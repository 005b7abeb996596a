"""Unfold and Fold beside their definition, one window after the other."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from nn_manual import Fold, Unfold
from nn_manual.arrays import Array, Shape
from nn_manual.layers.windows import of_each


def places(layer: Any, size: Shape) -> list[list[tuple[int, int]]]:
    """The places of each window's numbers, row by row, in images of this size without a frame."""
    each = (of_each(value, 2) for value in (layer.kernel_size, layer.dilation, layer.padding, layer.stride))
    kernel, dilation, padding, stride = each
    rooms = zip(size, kernel, dilation, padding, strict=True)
    starts = [
        range(-frame, own + frame - step * (count - 1), pace)
        for (own, count, step, frame), pace in zip(rooms, stride, strict=True)
    ]
    return [
        [(top + dilation[0] * i, left + dilation[1] * j) for i in range(kernel[0]) for j in range(kernel[1])]
        for top in starts[0] for left in starts[1]
    ]  # fmt: skip


def columns(layer: Any, images: Array) -> Array:
    height, width = images.shape[2:]
    windows = places(layer, (height, width))
    output = np.zeros((*images.shape[:2], len(windows[0]), len(windows)))
    for window, numbers in enumerate(windows):
        for number, (row, column) in enumerate(numbers):
            if 0 <= row < height and 0 <= column < width:
                output[:, :, number, window] = images[:, :, row, column]
    return output.reshape(len(images), -1, len(windows))


def summed(layer: Any, given: Array, size: Shape) -> Array:
    windows = places(layer, size)
    parts = given.reshape(len(given), -1, len(windows[0]), len(windows))
    images = np.zeros((*parts.shape[:2], *size))
    for window, numbers in enumerate(windows):
        for number, (row, column) in enumerate(numbers):
            if 0 <= row < size[0] and 0 <= column < size[1]:
                images[:, :, row, column] += parts[:, :, number, window]
    return images


@pytest.mark.parametrize(("layer", "shape"), Unfold.examples(), ids=repr)
def test_unfold_in_loops(layer: Any, shape: Shape) -> None:
    input = np.random.default_rng(0).standard_normal(shape)
    output, saved = layer.forward(input)
    np.testing.assert_array_equal(output, columns(layer, input))
    grad_output = np.random.default_rng(1).standard_normal(output.shape)
    np.testing.assert_allclose(layer.backward(saved, grad_output), summed(layer, grad_output, shape[2:]), atol=1e-14)


@pytest.mark.parametrize(("layer", "shape"), Fold.examples(), ids=repr)
def test_fold_in_loops(layer: Any, shape: Shape) -> None:
    input = np.random.default_rng(0).standard_normal(shape)
    output, saved = layer.forward(input)
    np.testing.assert_allclose(output, summed(layer, input, output.shape[2:]), atol=1e-14)
    grad_output = np.random.default_rng(1).standard_normal(output.shape)
    np.testing.assert_array_equal(layer.backward(saved, grad_output), columns(layer, grad_output))


def test_by_hand() -> None:
    """Two windows of a row: the number in the middle lies in both."""
    assert Unfold([1, 2]).forward(np.array([[[[1.0, 2, 3]]]]))[0].tolist() == [[[1, 2], [2, 3]]]
    assert Fold([1, 3], [1, 2]).forward(np.array([[[1.0, 2], [3, 4]]]))[0].tolist() == [[[[1, 5, 4]]]]


@pytest.mark.parametrize(
    ("layer", "shape", "message"),
    [
        (Unfold(2), (1, 2, 3), "Unfold takes (batch, channels, height, width), the input has shape (1, 2, 3)"),
        (Unfold(2), (1, 0, 3, 3), "Unfold takes images with numbers in them, the input has shape (1, 0, 3, 3)"),
        (Unfold(3), (1, 1, 2, 3), "Unfold has windows of 3 in dimension 2, the input has shape (1, 1, 2, 3) and a"),
        (Fold(3, 2), (1, 6, 4), "Fold takes (batch, a multiple of 4 numbers, windows), the input has shape (1, 6, 4)"),
        (Fold(3, 2), (1, 8), "Fold takes (batch, a multiple of 4 numbers, windows), the input has shape (1, 8)"),
        (Fold(3, 2), (1, 8, 5), "Fold takes 4 windows, the input has shape (1, 8, 5)"),
        (Fold(1, 2), (1, 8, 5), "Fold has windows of 2 in dimension 2, the input has shape (1, 2, 1, 1) and a padding"),
    ],
)
def test_inputs_that_do_not_fit(layer: Any, shape: Shape, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        layer.forward(np.zeros(shape))


@pytest.mark.parametrize("make", [lambda: Fold(0, 2), lambda: Fold([2, 3, 4], 2), lambda: Unfold(2, stride=0)])
def test_sizes_out_of_range(make: Any) -> None:
    with pytest.raises(ValueError, match=r"^(output_size|stride) (must be at least 1|is one number)"):
        make()
