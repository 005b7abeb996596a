"""Bilinear of an input with itself: by hand, and what doesn't fit."""

from __future__ import annotations

import numpy as np
import pytest

from nn_manual import Bilinear, Sequential


def test_by_hand() -> None:
    """3 x**2 + 5 x y + 7 y x + 2 y**2 + 1 at (10, 100): its slopes are 6 x + 12 y and 12 x + 4 y."""
    model = Sequential(Bilinear(2, 2, 1), dtype="float64")
    model.load_state_dict({"0.weight": np.array([[[3.0, 5.0], [7.0, 2.0]]]), "0.bias": np.array([1.0])})
    output, saved = model.forward(np.array([[10.0, 100.0]]))
    np.testing.assert_array_equal(output, [[300 + 12_000 + 20_000 + 1]])
    np.testing.assert_array_equal(model.backward(saved, np.array([[2.0]])), [[2 * 1260.0, 2 * 520.0]])
    np.testing.assert_array_equal(model.layers[0].grad.weight, [[[200.0, 2_000.0], [2_000.0, 20_000.0]]])
    np.testing.assert_array_equal(model.layers[0].grad.bias, [2.0])


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((0, 2, 2), "in1_features must be at least 1, not 0"),
        ((2, 2, -1), "out_features must be at least 1, not -1"),
        ((2, 3, 2), "in2_features must be in1_features=2, since it is the same input, not 3"),
    ],
)
def test_sizes_out_of_range(sizes: tuple[int, int, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Bilinear(*sizes)


def test_another_input() -> None:
    model = Sequential(Bilinear(2, 2, 3))
    with pytest.raises(ValueError, match=r"0 \(Bilinear\) takes in1_features=2 in the last dimension, .* \(4, 3\)"):
        model.forward(np.zeros((4, 3), np.float32))
    _, saved = model.forward(np.zeros((4, 2), np.float32))
    with pytest.raises(ValueError, match=r"takes a gradient of its output's shape \(4, 3\), not \(4, 1\)"):
        model.backward(saved, np.zeros((4, 1), np.float32))
