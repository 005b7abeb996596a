"""Layers that only change the shape, and what they refuse."""

from __future__ import annotations

import re

import numpy as np
import pytest

from nn_manual import Flatten, Layer, Unflatten
from nn_manual.arrays import Shape


@pytest.mark.parametrize(
    ("layer", "shape", "wanted"),
    [
        (Flatten(), (5, 2, 3), (5, 6)),
        (Flatten(), (5, 2), (5, 2)),
        (Flatten(0, 1), (5, 2, 3), (10, 3)),
        (Flatten(-2), (5, 2, 3, 4), (5, 2, 12)),
        (Flatten(0), (5, 2, 3), (30,)),
        (Unflatten(1, [2, 3]), (5, 6), (5, 2, 3)),
        (Unflatten(-1, [-1, 2]), (5, 3, 6), (5, 3, 3, 2)),
        (Unflatten(0, [5]), (5, 6), (5, 6)),
    ],
)
def test_numbers_keep_their_order(layer: Layer, shape: Shape, wanted: Shape) -> None:
    input = np.arange(float(np.prod(shape))).reshape(shape)
    output, saved = layer.forward(input)
    assert output.shape == layer.output_shape(shape) == wanted
    assert (output.ravel() == input.ravel()).all()
    assert (layer.backward(saved, output) == input).all()


@pytest.mark.parametrize(
    ("layer", "shape", "message"),
    [
        (Flatten(2), (5, 2), "Flatten joins the dimensions 2 to -1, the input has shape (5, 2)"),
        (Flatten(1, 0), (5, 2), "Flatten joins the dimensions 1 to 0, the input has shape (5, 2)"),
        (Flatten(0, 5), (5, 2), "Flatten joins the dimensions 0 to 5, the input has shape (5, 2)"),
        (Unflatten(1, [2, 3]), (5, 7), "Unflatten makes [2, 3] of dimension 1, the input has shape (5, 7)"),
        (Unflatten(1, [-1, 3]), (5, 7), "Unflatten makes [-1, 3] of dimension 1, the input has shape (5, 7)"),
        (Unflatten(2, [2, 3]), (5, 6), "Unflatten makes [2, 3] of dimension 2, the input has shape (5, 6)"),
    ],
)
def test_inputs_that_do_not_fit(layer: Layer, shape: Shape, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        layer.forward(np.zeros(shape))


@pytest.mark.parametrize("sizes", [[], [0, -1], [-1, -1], [2, -3]])
def test_sizes_that_are_none(sizes: list[int]) -> None:
    message = r"^unflattened_size must be sizes of at least 0, or one -1 and sizes of at least 1, not"
    with pytest.raises(ValueError, match=message):
        Unflatten(1, sizes)
