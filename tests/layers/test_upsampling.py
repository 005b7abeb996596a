"""Interpolation beside its definition, one number of the output after the other."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any

import numpy as np
import pytest

from nn_manual import Upsample
from nn_manual.arrays import Array, Shape


def weights(layer: Upsample, size: int, output_size: int, factor: float | None, i: int) -> dict[int, float]:
    """The weight of each number along a dimension in the `i`-th of the output."""
    scale = 1 / factor if factor else size / output_size
    if layer.mode == "nearest":
        return {min(math.floor(i * scale), size - 1): 1.0}
    place = scale * (i + 0.5) - 0.5
    if layer.align_corners:
        place = i * (size - 1) / (output_size - 1) if output_size > 1 else 0.0
    if layer.mode != "bicubic":
        place = max(place, 0.0)
    found: dict[int, float] = {}
    for neighbour in range(math.floor(place) - 1, math.floor(place) + 3):
        distance, inside = abs(place - neighbour), min(max(neighbour, 0), size - 1)
        found[inside] = found.get(inside, 0.0) + (cubic(distance) if layer.mode == "bicubic" else max(0, 1 - distance))
    return found


def cubic(x: float) -> float:
    """Keys' kernel with the slope -0.75 at distance 1."""
    if x <= 1:
        return 1.25 * x**3 - 2.25 * x**2 + 1
    return -0.75 * (x**3 - 5 * x**2 + 8 * x - 4) if x < 2 else 0.0


@pytest.mark.parametrize(("layer", "shape"), Upsample.examples(), ids=repr)
def test_loops_agree(layer: Any, shape: Shape) -> None:
    input = np.random.default_rng(0).standard_normal(shape)
    output, saved = layer.forward(input)
    grad_output = np.random.default_rng(1).standard_normal(output.shape)
    expected, grad_input = np.zeros(output.shape), np.zeros(shape)
    given = layer.scale_factor
    factors = given if isinstance(given, list) else [given] * (len(shape) - 2)
    for n, c, *place in np.ndindex(output.shape):
        axes = zip(shape[2:], output.shape[2:], factors, place, strict=True)
        for each in itertools.product(*(weights(layer, *axis).items() for axis in axes)):
            where, weight = (n, c, *(index for index, _ in each)), math.prod(own for _, own in each)
            expected[n, c, *place] += weight * input[where]
            grad_input[where] += weight * grad_output[n, c, *place]
    np.testing.assert_allclose(output, expected, rtol=0, atol=1e-14)
    np.testing.assert_allclose(layer.backward(saved, grad_output), grad_input, rtol=0, atol=1e-14)


def test_a_constant_stays() -> None:
    for layer, shape in Upsample.examples():
        np.testing.assert_allclose(layer.forward(np.full(shape, 3.0))[0], 3, rtol=1e-15)


def test_cases_by_hand() -> None:
    """The nearest of two; a line between two points, and between two squares."""
    input: Array = np.array([[[1.0, 3]]])
    assert Upsample(4).forward(input)[0].tolist() == [[[1, 1, 3, 3]]]
    assert Upsample(3, mode="linear", align_corners=True).forward(input)[0].tolist() == [[[1, 2, 3]]]
    assert Upsample(4, mode="linear").forward(input)[0].tolist() == [[[1, 1.5, 2.5, 3]]]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "Upsample takes either size or scale_factor"),
        ({"size": 2, "scale_factor": 2}, "Upsample takes either size or scale_factor"),
        ({"size": [2, 0]}, "size must be at least 1, not [2, 0]"),
        ({"scale_factor": 0.0}, "scale_factor must be above 0, not 0.0"),
        ({"scale_factor": math.inf}, "scale_factor must be above 0, not inf"),
        ({"scale_factor": []}, "scale_factor must be above 0, not []"),
        ({"size": 2, "align_corners": True}, "align_corners is for the other modes than nearest"),
        ({"size": 2, "mode": "area"}, "mode must be one of nearest, linear, bilinear, bicubic, trilinear, not 'area'"),
    ],
)
def test_settings_that_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Upsample(**settings)


@pytest.mark.parametrize(
    ("layer", "shape", "message"),
    [
        (
            Upsample(2, mode="bilinear"), (1, 1, 3),
            "Upsample with mode=bilinear takes (batch, channels, height, width), the input has shape (1, 1, 3)",
        ),
        (Upsample([2, 3]), (1, 1, 3), "Upsample has [2, 3] for 1 dimension, the input has shape (1, 1, 3)"),
        (
            Upsample(scale_factor=1.5, mode="linear"), (1, 1, 3),
            "Upsample takes a scale_factor that makes whole sizes, or a size: 1.5 would make [4.5], the input has "
            "shape (1, 1, 3)",
        ),
    ],
)  # fmt: skip
def test_inputs_that_do_not_fit(layer: Upsample, shape: Shape, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        layer.forward(np.zeros(shape))
