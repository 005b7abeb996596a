"""Sines and cosines of positions: exact values, a rotation from time to time, and any length."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from nn_manual import Sequential, SinusoidalPositions
from nn_manual.arrays import Shape


def test_by_loops() -> None:
    output, saved = SinusoidalPositions(5).forward(np.zeros((2, 7, 5)))
    for t in range(7):
        for pair in (0, 2, 4):
            angle = t / 10000 ** (pair / 5)
            row = output[1, t]
            assert row[pair] == pytest.approx(math.sin(angle), abs=1e-15)
            if pair < 4:
                assert row[pair + 1] == pytest.approx(math.cos(angle), abs=1e-15)
    np.testing.assert_array_equal(output[0], output[1])
    grad_output = np.random.default_rng(0).standard_normal((2, 7, 5))
    np.testing.assert_array_equal(SinusoidalPositions(5).backward(saved, grad_output), grad_output)


def test_positions_are_added() -> None:
    input = np.random.default_rng(0).standard_normal((2, 3, 4))
    layer = SinusoidalPositions(4)
    np.testing.assert_array_equal(layer.forward(input)[0], input + layer.forward(np.zeros((1, 3, 4)))[0])


def test_a_step_in_time_turns_each_pair() -> None:
    """By one angle, wherever it begins."""
    waves = SinusoidalPositions(2).forward(np.zeros((1, 100, 2)))[0][0]
    turn = np.array([[math.cos(1), -math.sin(1)], [math.sin(1), math.cos(1)]])
    np.testing.assert_allclose(waves[1:], waves[:-1] @ turn, rtol=0, atol=1e-13)


def test_rounded_once() -> None:
    """In float32, an angle of thousands would have lost its fraction."""
    input = np.zeros((1, 5000, 6))
    double, single = (Sequential(SinusoidalPositions(6), dtype=each)(input.astype(each)) for each in ("f8", "f4"))
    assert single.dtype == np.float32
    np.testing.assert_array_equal(single, double.astype(np.float32))


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 5), (1, 2, 3, 4)], ids=str)
def test_refused_shapes(shape: Shape) -> None:
    words = f"SinusoidalPositions takes (batch, time, embedding_dim=4), the input has shape {shape}"
    with pytest.raises(ValueError, match=re.escape(words)):
        SinusoidalPositions(4).forward(np.zeros(shape))


def test_refused_size() -> None:
    with pytest.raises(ValueError, match=r"^embedding_dim must be at least 1, not 0$"):
        SinusoidalPositions(0)
