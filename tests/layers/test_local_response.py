"""LocalResponseNorm by hand, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from nn_manual import LocalResponseNorm


def test_by_hand() -> None:
    """Of an even number of channels, the one before counts: 1 / (1 + 1), 2 / (1 + 1 + 4), 3 / (1 + 4 + 9)."""
    layer = LocalResponseNorm(2, alpha=2.0, beta=1.0)
    output, saved = layer.forward(np.array([[[1.0], [2], [3]]]))
    np.testing.assert_allclose(output.ravel(), [1 / 2, 2 / 6, 3 / 14], rtol=1e-15)
    grad_input = layer.backward(saved, np.array([[[0.0], [1], [0]]]))
    np.testing.assert_allclose(grad_input.ravel(), [-2 * 2 / 36, 1 / 6 - 2 * 4 / 36, 0], rtol=1e-14)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LocalResponseNorm(0), "^size must be at least 1, not 0$"),
        (lambda: LocalResponseNorm(2).forward(np.zeros((2, 3))), r"takes \(batch, channels, ...\), the input has"),
    ],
)
def test_what_is_refused(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(ValueError, match=message):
        make()
