"""Fractional max pooling: torch with the same samples, windows by hand, what is drawn, and what is refused."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from nn_manual import FractionalMaxPool2d, FractionalMaxPool3d, Sequential
from nn_manual.arrays import Array

OWNERS: dict[int, Any] = {2: FractionalMaxPool2d, 3: FractionalMaxPool3d}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("settings", "shape"),
    [
        ({"kernel_size": 2, "output_ratio": 0.5}, (2, 3, 9, 12)),
        ({"kernel_size": [2, 3], "output_size": [4, 3]}, (3, 2, 7, 6)),
        ({"kernel_size": 3, "output_ratio": [0.7, 0.3]}, (2, 2, 10, 11)),
        ({"kernel_size": [1, 4], "output_size": [5, 1]}, (2, 2, 5, 4)),
        ({"kernel_size": [4, 2, 3], "output_size": [10, 3, 2]}, (2, 2, 16, 7, 5)),
        ({"kernel_size": 2, "output_ratio": 0.5}, (1, 3, 5, 6, 7)),
    ],
)
def test_as_torch(settings: dict[str, Any], shape: tuple[int, ...], dtype: str) -> None:
    """With numbers that tie, and with some that are none."""
    num_dims, generator = len(shape) - 2, np.random.default_rng(0)
    for share_of_nan in (0.0, 0.1):
        input = generator.integers(0, 9, shape).astype(dtype)
        input[generator.random(shape) < share_of_nan] = np.nan
        samples = generator.random((*shape[:2], num_dims)).astype(dtype)
        ours = OWNERS[num_dims](**settings)
        ours.noise = SimpleNamespace(samples=samples)
        theirs = getattr(torch.nn, type(ours).__name__)(**settings, _random_samples=torch.from_numpy(samples))
        leaf = torch.from_numpy(input.copy()).requires_grad_()
        expected = theirs(leaf)
        output, saved = ours.forward(input)
        np.testing.assert_array_equal(output, expected.detach().numpy())
        assert output.shape == ours.output_shape(shape)
        grad_output = generator.standard_normal(output.shape).astype(dtype)
        expected.backward(torch.from_numpy(grad_output))
        assert leaf.grad is not None
        np.testing.assert_allclose(ours.backward(saved, grad_output), leaf.grad.numpy(), rtol=1e-6)


def test_windows_by_hand() -> None:
    """Along the width, of 7 numbers, windows are (7 - 2) / (3 - 1) = 2.5 apart: in evaluation they begin at 0, at
    floor(1.5 * 2.5) - floor(0.5 * 2.5) = 2, and at 5. Along the height, of 5, they begin at 0, 2 and 3.
    """
    image = np.arange(35.0).reshape(1, 1, 5, 7)
    assert Sequential(FractionalMaxPool2d(2, 3), dtype="float64")(image)[0, 0].tolist() == [
        [8, 10, 13], [22, 24, 27], [29, 31, 34],
    ]  # fmt: skip


def test_the_first_sample_is_the_widths() -> None:
    """As in torch: with 0.3, the second window along 7 numbers begins at floor(3.25) = 3, and with 0.1 at floor(2.75).
    """
    image: Array = np.arange(7.0)[np.newaxis].repeat(7, axis=0)
    pool = FractionalMaxPool2d(2, 3)
    pool.noise = SimpleNamespace(samples=np.array([[[0.3, 0.1]]]))
    assert pool.forward(image[np.newaxis, np.newaxis])[0][0, 0, 0].tolist() == [1, 4, 6]
    assert pool.forward(image.T[np.newaxis, np.newaxis])[0][0, 0, :, 0].tolist() == [1, 3, 6]


def test_each_channel_draws_its_own_windows() -> None:
    model = Sequential(FractionalMaxPool2d(1, 5), seed=0)
    image = np.broadcast_to(np.arange(8, dtype=np.float32), (4, 3, 8, 8))
    output, _ = model.forward(image)
    columns = {tuple(map(float, row)) for row in output[:, :, 0].reshape(12, 5)}
    assert len(columns) > 3
    assert all(row[0] == 0 and row[-1] == 7 for row in columns)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: FractionalMaxPool2d(2),
            "output_size or output_ratio must be given, and not both: they are None and None",
        ),
        (
            lambda: FractionalMaxPool2d(2, 3, 0.5),
            "output_size or output_ratio must be given, and not both: they are 3 and 0.5",
        ),
        (lambda: FractionalMaxPool2d(0, 3), "kernel_size must be at least 1, not 0"),
        (lambda: FractionalMaxPool3d(2, [3, 0, 1]), "output_size must be at least 1, not [3, 0, 1]"),
        (
            lambda: FractionalMaxPool2d(2, output_ratio=1.0),
            "output_ratio must be between 0 and 1, or a list of 2 such numbers, not 1.0",
        ),
        (
            lambda: FractionalMaxPool2d(2, output_ratio=[0.5]),
            "output_ratio must be between 0 and 1, or a list of 2 such numbers, not [0.5]",
        ),
        (
            lambda: FractionalMaxPool2d(3, 4).output_shape((1, 1, 6, 5)),
            "FractionalMaxPool2d makes (4, 4) windows of (3, 3) here: it takes images with channels, and with (6, 6) "
            "numbers at least, the input has shape (1, 1, 6, 5)",
        ),
        (
            lambda: FractionalMaxPool3d(1, output_ratio=0.3).output_shape((1, 1, 4, 3, 4)),
            "FractionalMaxPool3d makes (1, 0, 1) windows of (1, 1, 1) here: it takes images with channels, and with "
            "(2, 1, 2) numbers at least, the input has shape (1, 1, 4, 3, 4)",
        ),
        (
            lambda: FractionalMaxPool2d(1, 2).output_shape((3, 4, 4)),
            "FractionalMaxPool2d takes (batch, channels, height, width), the input has shape (3, 4, 4)",
        ),
    ],
)
def test_what_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        make()
