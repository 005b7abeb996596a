"""Layers that treat their noise and their buffers as they should pass, and the check leaves the model as it was."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from nets import batch
from stateful import Averaged, Center, Drop, Wrapped, model_of

from nn_manual import BatchNorm1d, Dropout, Layer, Linear, MSELoss, Padded, Sequential, check_gradients
from nn_manual.arrays import DTYPES, Shape
from nn_manual.layers import PaddedMultiheadAttention, PaddedTimePool, PaddedTransformerEncoderLayer, TransformerEncoder


@pytest.mark.parametrize("make", [Drop, Center, Averaged, lambda: Wrapped(BatchNorm1d(4)), lambda: Drop(0), Dropout])
@pytest.mark.parametrize("dtype", DTYPES)
def test_right_ones_pass(make: Any, dtype: str) -> None:
    report = check_gradients(model_of(make(), dtype), MSELoss(), *batch(dtype))
    assert report.passed, str(report)
    assert "1.infer" in [comparison.name for comparison in report.comparisons]


def test_the_model_is_left_as_it_was() -> None:
    model = model_of(Averaged())
    before = {name: array.copy() for name, array in model.state_dict().items()}
    input, target = batch()
    kept = input.copy()
    check_gradients(model, MSELoss(), input, target)
    assert all(np.array_equal(array, before[name]) for name, array in model.state_dict().items())
    assert np.array_equal(input, kept)


class Small(Drop):
    """A mask of one number for each example."""

    def noise_shapes(self, input_shape: Shape) -> dict[str, Shape]:
        return {"mask": (input_shape[0], 1)}


@pytest.mark.parametrize("seed", range(20))
def test_a_small_mask_may_come_out_the_same_in_two_steps(seed: int) -> None:
    model = Sequential(Linear(3, 4), Small(0.2), Linear(4, 4), seed=seed)
    report = check_gradients(model, MSELoss(), *batch())
    assert report.problem is None, report.problem


@pytest.mark.parametrize(
    "layer",
    [
        PaddedMultiheadAttention(4, 2),
        PaddedTransformerEncoderLayer(4, 2, 3),
        TransformerEncoder(PaddedTransformerEncoderLayer(4, 2, 3, norm_first=True), 2),
    ],
)
def test_padding_that_would_overflow_if_it_counted_warns_of_nothing(layer: Layer) -> None:
    """Where the same numbers stand in other places, padding counts."""
    generator = np.random.default_rng(0)
    input, lengths = generator.standard_normal((3, 5, 4)).astype(np.float32), np.array([5, 1, 3])
    input[np.arange(5) >= lengths[:, np.newaxis]] = 1e30
    model = Sequential(layer, PaddedTimePool("mean"), Linear(4, 2))
    report = check_gradients(model, MSELoss(), Padded(input, lengths), np.ones((3, 2), np.float32))
    assert report.passed, str(report)
