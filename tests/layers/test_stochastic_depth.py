"""Stochastic depth: what is left out and how often, in which part of a batch, and torch with the same mask."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

from nn_manual import Linear, MSELoss, Residual, Sequential, StochasticDepth, Tanh, check_gradients
from nn_manual.arrays import Array

Mode = Literal["batch", "row"]


def masks(p: float, mode: Mode, num_steps: int, num_rows: int) -> Array:
    """The mask of each step and row, which is the same at all places of the row."""
    model, input = Sequential(StochasticDepth(p, mode), dtype="float64"), np.ones((num_rows, 2, 3))
    outputs = []
    for model.num_steps in range(num_steps):
        output = model.forward(input)[0]
        np.testing.assert_array_equal(output, np.broadcast_to(output[:, :1, :1], input.shape))
        outputs.append(output[:, 0, 0])
    return np.array(outputs)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("mode", ["batch", "row"])
def test_how_often_and_what(p: float, mode: Mode) -> None:
    """The number of zeros is within 4 standard deviations of a binomial distribution's mean."""
    drawn = masks(p, mode, 2000, 3)
    assert set(np.unique(drawn)) == {0, 1 / (1 - p)}
    if mode == "batch":
        assert (drawn == drawn[:, :1]).all()
        drawn = drawn[:, :1]
    else:
        assert (drawn != drawn[:, :1]).any()
    deviation = np.sqrt(drawn.size * p * (1 - p))
    assert abs((drawn == 0).sum() - p * drawn.size) < 4 * deviation


@pytest.mark.parametrize("mode", ["batch", "row"])
def test_all_and_nothing(mode: Mode) -> None:
    assert (masks(0.0, mode, 20, 5) == 1).all()
    assert (masks(1.0, mode, 20, 5) == 0).all()


@pytest.mark.parametrize("mode", ["batch", "row"])
def test_a_slice_gets_what_the_whole_batch_gets_there(mode: Mode) -> None:
    model = Sequential(StochasticDepth(0.5, mode), dtype="float64")
    input = np.ones((40, 3))
    whole, _ = model.forward(input)
    for model.first_row in (8, 33):
        np.testing.assert_array_equal(model.forward(input[model.first_row :])[0], whole[model.first_row :])


def test_by_hand() -> None:
    model = Sequential(StochasticDepth(0.5, "row"), dtype="float64")
    input, grad_output = np.arange(1.0, 37).reshape(12, 3), np.full((12, 3), 3.0)
    output, saved = model.forward(input)
    is_kept = output[:, :1] > 0
    assert 0 < is_kept.sum() < 12
    np.testing.assert_array_equal(output, input * 2 * is_kept)
    np.testing.assert_array_equal(model.backward(saved, grad_output), 6 * np.broadcast_to(is_kept, (12, 3)))
    np.testing.assert_array_equal(model(input), input)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("mode", ["batch", "row"])
def test_torch_gets_the_same_mask_at_the_end_of_a_branch(dtype: str, mode: Mode) -> None:
    branch = Linear(3, 3), Tanh(), StochasticDepth(0.4, mode)
    model = Sequential(Residual(*branch), Linear(3, 2), dtype=dtype)
    generator = np.random.default_rng(0)
    batch = generator.standard_normal((5, 3)).astype(dtype), generator.standard_normal((5, 2)).astype(dtype)
    for model.num_steps in range(4):
        report = check_gradients(model, MSELoss(), *batch)
        assert report.passed, str(report)
    assert "0.2.infer" in [comparison.name for comparison in report.comparisons]


def test_what_it_refuses() -> None:
    with pytest.raises(ValueError, match=r"p must be between 0 and 1, not -0\.1"):
        StochasticDepth(-0.1, "row")
    with pytest.raises(ValueError, match="mode must be batch or row, not 'rows'"):
        StochasticDepth(0.1, "rows")  # type: ignore[arg-type]  # what is refused
    with pytest.raises(ValueError, match=r"StochasticDepth takes \(batch, \.\.\.\), the input has shape \(\)"):
        StochasticDepth(0.1, "row").output_shape(())
