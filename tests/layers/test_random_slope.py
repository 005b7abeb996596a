"""RReLU: the slopes that it draws, and what it makes of them."""

from __future__ import annotations

import numpy as np
import pytest

from nn_manual import RReLU, Sequential


def test_the_slopes_are_drawn_evenly() -> None:
    """Their mean and standard deviation are those of an even distribution, to four deviations of the estimate."""
    model = Sequential(RReLU(-1.0, 3.0), dtype="float64")
    slopes = -model.forward(np.full((300, 200), -1.0))[0]
    assert -1 <= slopes.min() < -0.99
    assert 2.99 < slopes.max() <= 3
    deviation = 4 / np.sqrt(12)
    assert abs(slopes.mean() - 1) < 4 * deviation / np.sqrt(slopes.size)
    assert abs(slopes.std() - deviation) < 4 * deviation / np.sqrt(slopes.size)


def test_by_hand() -> None:
    model = Sequential(RReLU(0.25, 0.75), dtype="float64")
    input = np.array([[-2.0, 0, 3]])
    output, saved = model.forward(input)
    (slope,) = vars(model.layers[0].noise).values()
    np.testing.assert_array_equal(output, [[-2 * slope[0, 0], 0, 3]])
    np.testing.assert_array_equal(model.backward(saved, np.ones((1, 3))), [[*slope[0, :2], 1]])
    np.testing.assert_array_equal(model(input), [[-1, 0, 3]])  # with the middle of the bounds


def test_bounds_out_of_order() -> None:
    with pytest.raises(ValueError, match=r"^lower must be at most upper=0\.1, not 0\.2$"):
        RReLU(0.2, 0.1)
