"""Dropout: the rate and the scale of its masks, and that what draws them is the model, before forward."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nn_manual import AlphaDropout, Dropout, FeatureAlphaDropout, Linear, MSELoss, Sequential, check_gradients
from nn_manual.arrays import Array


def mask_of(model: Sequential, shape: tuple[int, ...]) -> Array:
    return model.forward(np.ones(shape, model.dtype))[0]


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_rate_and_scale(p: float) -> None:
    mask = mask_of(Sequential(Dropout(p), dtype="float64"), (400, 500))
    assert set(np.unique(mask)) == {0, 1 / (1 - p)}
    num_zeros = (mask == 0).sum()
    deviation = np.sqrt(mask.size * p * (1 - p))
    assert abs(num_zeros - p * mask.size) < 4 * deviation
    for axis in (0, 1):  # no row and no column is special
        rates = (mask == 0).mean(axis=axis)
        expected = np.sqrt(p * (1 - p) / mask.shape[axis])
        assert 0.85 * expected < rates.std() < 1.15 * expected


def test_all_and_nothing() -> None:
    assert (mask_of(Sequential(Dropout(0)), (5, 4)) == 1).all()
    assert (mask_of(Sequential(Dropout(1)), (5, 4)) == 0).all()


def test_by_hand() -> None:
    model = Sequential(Dropout(0.5), dtype="float64")
    input, grad_output = np.arange(1.0, 7).reshape(2, 3), np.full((2, 3), 3.0)
    output, saved = model.forward(input)
    np.testing.assert_array_equal(output, input * 2 * (output > 0))
    np.testing.assert_array_equal(model.backward(saved, grad_output), 6 * (output > 0))
    np.testing.assert_array_equal(model(input), input)


def test_seed_and_step_determine_it() -> None:
    model, same, other = (Sequential(Dropout(), seed=seed) for seed in (1, 1, 2))
    first = mask_of(model, (20, 30))
    np.testing.assert_array_equal(mask_of(model, (20, 30)), first)
    np.testing.assert_array_equal(mask_of(same, (20, 30)), first)
    assert (mask_of(other, (20, 30)) != first).any()
    model.num_steps = 7
    later = mask_of(model, (20, 30))
    assert (later != first).any()
    model.num_steps = 0
    np.testing.assert_array_equal(mask_of(model, (20, 30)), first)
    np.testing.assert_array_equal(mask_of(model, (12, 30)), first[:12])  # a part of the batch draws what the whole does


def test_both_dtypes_drop_the_same() -> None:
    single, double = (mask_of(Sequential(Dropout(0.3), dtype=dtype), (20, 30)) for dtype in ("float32", "float64"))
    np.testing.assert_array_equal(single == 0, double == 0)


def test_layers_draw_for_themselves() -> None:
    model = Sequential(Dropout(), Sequential(Dropout()), dtype="float64")
    _, ((first, _), ((second, _),)) = model.forward(np.ones((20, 30)))
    assert (first != second).any()


@pytest.mark.parametrize("p", [-0.1, 1.5, float("nan")])
def test_a_rate_out_of_range(p: float) -> None:
    with pytest.raises(ValueError, match="p must be between 0 and 1"):
        Dropout(p)


def test_what_an_earlier_forward_saved_stays() -> None:
    model = Sequential(Dropout(), dtype="float64")
    output, saved = model.forward(np.ones((4, 3)))
    model.num_steps = 1
    model.forward(np.ones((4, 3)))
    np.testing.assert_array_equal(model.backward(saved, np.ones((4, 3))), output)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_torch_gets_the_same_mask(dtype: str) -> None:
    model = Sequential(Linear(3, 8), Dropout(0.3), Linear(8, 2), dtype=dtype)
    generator = np.random.default_rng(0)
    batch = generator.standard_normal((5, 3)).astype(dtype), generator.standard_normal((5, 2)).astype(dtype)
    report = check_gradients(model, MSELoss(), *batch)
    assert report.passed, str(report)
    assert "1.infer" in [comparison.name for comparison in report.comparisons]


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("layer", [AlphaDropout, FeatureAlphaDropout])
def test_mean_and_variance_stay(layer: type[AlphaDropout], p: float) -> None:
    """Of numbers with mean 0 and variance 1, to 1%; and what is dropped has one value."""
    input = np.random.default_rng(0).standard_normal((400, 500))
    output, _ = Sequential(layer(p), dtype="float64").forward(input)
    assert abs(output.mean()) < 0.01 * 1.8
    assert abs(output.var() - 1) < 0.02
    scale = 1 / math.sqrt((1 - p) * (1 + p * 1.7580993408473766**2))
    is_dropped = np.isclose(output, -scale * 1.7580993408473766 * (1 - p))
    assert abs(is_dropped.mean() - p) < 0.01
    kept = scale * (input + 1.7580993408473766 * p)
    np.testing.assert_allclose(output[~is_dropped], kept[~is_dropped], rtol=1e-12, atol=1e-12)


def test_alpha_dropout_of_all_and_nothing() -> None:
    input = np.random.default_rng(0).standard_normal((5, 4))
    np.testing.assert_array_equal(Sequential(AlphaDropout(0), dtype="float64").forward(input)[0], input)
    assert (Sequential(AlphaDropout(1), dtype="float64").forward(input)[0] == 0).all()


def test_a_channel_is_dropped_whole() -> None:
    output, _ = Sequential(FeatureAlphaDropout(), dtype="float64").forward(np.ones((20, 30, 2, 3)))
    assert (output == output[:, :, :1, :1]).all()
    assert len(np.unique(output)) == 2
    with pytest.raises(ValueError, match=r"^FeatureAlphaDropout takes \(batch, channels, ...\), the input has shape"):
        FeatureAlphaDropout().output_shape((3,))
