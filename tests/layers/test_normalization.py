from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch

from nn_manual import GELU, LayerNorm, Linear, MSELoss, Sequential, check_gradients
from nn_manual.check.catalogue.upstream import UpstreamLoss
from nn_manual.model.initializers import Constant


def bound(layer: LayerNorm, dtype: str = "float64") -> LayerNorm:
    """The layer with its own first parameters."""
    Sequential(layer, dtype=dtype)
    return layer


@pytest.mark.parametrize("shape", [[3], [3, 4]])
def test_no_initializer_fills_it(shape: list[int]) -> None:
    """However many dimensions the weight has, the first outputs are the normalized numbers themselves."""
    norm = LayerNorm(shape)
    Sequential(norm, initializer=Constant(0.5))
    assert (norm.param.weight == 1).all()
    assert (norm.param.bias == 0).all()


def test_a_small_case_by_hand() -> None:
    """Without eps, [1, 3] and [-4, 4] are normalized to [-1, 1] and divided by 1 and 4."""
    norm = LayerNorm(2, eps=0)
    Sequential(norm, dtype="float64").load_state_dict({"0.weight": np.array([2.0, 3.0]), "0.bias": np.array([10.0, 0])})
    output, saved = norm.forward(np.array([[1.0, 3.0], [-4.0, 4.0]]))
    assert output.tolist() == [[8, 3], [8, 3]]
    assert norm.backward(saved, np.array([[1.0, 5.0], [0.0, 7.0]])).tolist() == [[0, 0], [0, 0]]
    assert norm.grad.weight.tolist() == [-1, 12]
    assert norm.grad.bias.tolist() == [1, 12]


def test_three_numbers_by_hand() -> None:
    """[0, 3, 6] has mean 3 and variance 6. With an eps of 3 it is divided by 3, to [-1, 0, 1]. Of the gradient
    [3, 0, 0] the mean is 1, and that of its product with these -1: (3 - 1 - 1, 0 - 1 + 0, 0 - 1 + 1) / 3.
    """
    norm = LayerNorm(3, eps=3, elementwise_affine=False)
    output, saved = norm.forward(np.array([0.0, 3.0, 6.0]))
    assert output.tolist() == [-1, 0, 1]
    np.testing.assert_allclose(norm.backward(saved, np.array([3.0, 0.0, 0.0])), [1 / 3, -1 / 3, 0], atol=1e-15)


@pytest.mark.parametrize(
    ("shape", "options", "names"),
    [
        (3, {}, ["weight", "bias"]),
        ([2, 3], {}, ["weight", "bias"]),
        ((2, 3), {"bias": False}, ["weight"]),
        (3, {"elementwise_affine": False}, []),
        ([1], {"elementwise_affine": False, "bias": False}, []),
    ],
)
def test_parameters_and_their_first_values_are_torchs(shape: Any, options: dict[str, Any], names: list[str]) -> None:
    ours, theirs = bound(LayerNorm(shape, **options)), torch.nn.LayerNorm(shape, **options)
    assert list(ours.parameter_shapes().items()) == [(n, tuple(p.shape)) for n, p in theirs.named_parameters()]
    assert list(ours.parameter_shapes()) == names
    for name, parameter in theirs.named_parameters():
        np.testing.assert_array_equal(getattr(ours.param, name), parameter.detach().numpy())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("value", [0.1, -3e4])
def test_equal_numbers_leave_nothing_but_the_bias(dtype: str, value: float) -> None:
    """But for the rounding of their mean, which is divided by sqrt(eps)."""
    norm = bound(LayerNorm(7), dtype)
    norm.param.bias[...] = 5
    output, saved = norm.forward(np.full((2, 7), value, dtype))
    assert np.abs(output - 5).max() <= np.finfo(dtype).eps * abs(value) / np.sqrt(norm.eps)
    assert np.all(np.isfinite(norm.backward(saved, np.ones((2, 7), dtype))))


def test_a_mean_far_from_0_costs_no_digits_but_its_own() -> None:
    """mean(x**2) - mean(x)**2 would lose all digits. The mean is rounded by 6e-8 of 1000, and the deviations are 1."""
    generator = np.random.default_rng(0)
    input = (1000 + generator.standard_normal((5, 64))).astype(np.float32)
    output, _ = bound(LayerNorm(64), "float32").forward(input)
    exact, _ = bound(LayerNorm(64), "float64").forward(input.astype(np.float64))
    assert np.abs(output - exact).max() < 1e-3


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("loss", [MSELoss(), UpstreamLoss()])
@pytest.mark.parametrize("features", [1, 2, 3])
def test_few_features_raise_no_false_alarm(features: int, loss: Any, dtype: str) -> None:
    """Of one number nothing is left, of two a sign: the gradient is zero, or what eps leaves of terms that cancel."""
    generator = np.random.default_rng(1)
    input, target = generator.standard_normal((6, 4)).astype(dtype), generator.standard_normal((6, 2)).astype(dtype)
    model = Sequential(Linear(4, features), LayerNorm(features), GELU(), Linear(features, 2), dtype=dtype)
    report = check_gradients(model, loss, input, target)
    assert report.agrees, str(report)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0,), "normalized_shape must be a size of at least 1, or a list of such sizes, not 0"),
        (([],), "normalized_shape must be a size of at least 1, or a list of such sizes, not []"),
        (([3, -1],), "normalized_shape must be a size of at least 1, or a list of such sizes, not [3, -1]"),
        ((3, -1e-5), "eps must be at least 0, not -1e-05"),
        ((3, float("nan")), "eps must be at least 0, not nan"),
    ],
)
def test_settings_out_of_range(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        LayerNorm(*arguments)


@pytest.mark.parametrize("shape", [(), (3,), (5, 4), (4, 3), (3, 2, 4), (2, 3, 5)])
def test_an_input_of_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    message = f"LayerNorm takes normalized_shape=[3, 4] in the last dimensions, the input has shape {shape}"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        LayerNorm([3, 4]).output_shape(shape)
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        bound(LayerNorm([3, 4])).forward(np.ones(shape))
    one_size = f"LayerNorm takes normalized_shape=7 in the last dimension, the input has shape {shape}"
    with pytest.raises(ValueError, match=f"^{re.escape(one_size)}$"):
        LayerNorm(7).output_shape(shape)
