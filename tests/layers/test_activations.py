import math
from typing import Any

import numpy as np
import pytest

from nn_manual import (
    CELU,
    ELU,
    GELU,
    SELU,
    Hardshrink,
    Hardsigmoid,
    Hardswish,
    Hardtanh,
    Layer,
    LeakyReLU,
    LogSigmoid,
    Mish,
    ReLU,
    ReLU6,
    Softplus,
    Softshrink,
    Softsign,
    Tanh,
    Tanhshrink,
    Threshold,
)


def test_relu_at_its_kink_passes_nothing() -> None:
    input = np.array([-2.0, -0.0, 0.0, 5e-324, 3.0])
    output, saved = ReLU().forward(input)
    assert output.tolist() == [0.0, 0.0, 0.0, 5e-324, 3.0]
    assert ReLU().backward(saved, np.array([7.0, 7.0, -7.0, -7.0, 7.0])).tolist() == [0.0, 0.0, 0.0, -7.0, 7.0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_relu_stops_what_is_not_finite(dtype: str) -> None:
    """As torch does: where the output is 0 the gradient is 0, for any upstream gradient."""
    _, saved = ReLU().forward(np.array([-1, 0, -0.0, 2, -2, 2, 3], dtype))
    grad_input = ReLU().backward(saved, np.array([np.inf, -np.inf, np.inf, np.inf, np.nan, np.nan, -5], dtype))
    assert grad_input.dtype == dtype
    assert str(grad_input.tolist()) == "[0.0, 0.0, 0.0, inf, 0.0, nan, -5.0]"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tanh_at_its_ends_passes_nothing(dtype: str) -> None:
    input = np.array([-1e30, -100, 0, 100, 1e30], dtype)
    output, saved = Tanh().forward(input)
    assert output.tolist() == [-1.0, -1.0, 0.0, 1.0, 1.0]
    grad_input = Tanh().backward(saved, np.full(5, -3, dtype))
    assert grad_input.dtype == dtype
    assert grad_input.tolist() == [0.0, 0.0, -3.0, 0.0, 0.0]


#: Numbers, and x F(x) and F(x) + x F'(x) there, by mpmath with 40 digits.
GELU_VALUES = {
    "none": [
        (-8.0, -4.976768459417427e-15, -3.979607261086796e-14),
        (-5.0, -1.4332578593959695e-06, -7.146946001792295e-06),
        (-2.0, -0.04550026389635842, -0.0852318010781969),
        (-0.5, -0.15426876936299344, 0.13250487534383715),
        (-1e-06, -4.999996010577196e-07, 0.4999992021154392),
        (0.5, 0.34573123063700656, 0.8674951246561629),
        (3.0, 2.99595030590511, 1.011945647204184),
        (5.0, 4.999998566742141, 1.000007146946002),
    ],
    "tanh": [
        (-8.0, -3.1077829375011112e-21, -4.7147845041068414e-20),
        (-5.0, -2.291796196629506e-07, -1.5463619875325946e-06),
        (-2.0, -0.04540230591222498, -0.08609925662361838),
        (-0.5, -0.15428599017485609, 0.1326300964653577),
        (-1e-06, -4.999996010577196e-07, 0.4999992021154392),
        (0.5, 0.34571400982514394, 0.8673699035346423),
        (3.0, 2.996362607918227, 1.0115841666309697),
        (5.0, 4.999999770820381, 1.0000015463619876),
    ],
}


@pytest.mark.parametrize("approximate", GELU_VALUES)
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-5), ("float64", 2e-14)])
def test_gelu_keeps_the_digits_of_its_tails(approximate: Any, dtype: str, tolerance: float) -> None:
    """Each number on its own scale: the rounding of an exponent of 50, at -8, is 3e-6 in float32."""
    at, outputs, slopes = (np.array(column, dtype) for column in zip(*GELU_VALUES[approximate], strict=True))
    gelu = GELU(approximate)
    output, saved = gelu.forward(at)
    grad_input = gelu.backward(saved, np.full_like(at, 2))
    assert output.dtype == grad_input.dtype == dtype
    np.testing.assert_allclose(output, outputs, rtol=tolerance)
    np.testing.assert_allclose(grad_input, 2 * slopes, rtol=tolerance)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gelu_far_out_is_a_relu(approximate: Any, dtype: str) -> None:
    gelu = GELU(approximate)
    output, saved = gelu.forward(np.array([-1e9, -300, 0, 300, 1e9], dtype))
    assert output.tolist() == [0, 0, 0, 300, 1e9]
    assert gelu.backward(saved, np.full(5, -3, dtype)).tolist() == [0, 0, -1.5, -3, -3]


def test_gelu_has_no_other_approximation() -> None:
    with pytest.raises(ValueError, match=r"^approximate must be 'none' or 'tanh', not 'erf'$"):
        GELU("erf")  # type: ignore[arg-type]  # the mistake


#: Inputs at which pieces meet, the outputs there and the slopes that torch takes.
AT_BREAKPOINTS: list[tuple[Layer, list[float], list[float], list[float]]] = [
    (ReLU6(), [0, 6], [0, 6], [0, 0]),
    (Hardtanh(-0.5, 2), [-0.5, 2], [-0.5, 2], [0, 0]),
    (Threshold(0.5, -2), [0.5], [-2], [0]),
    (LeakyReLU(-0.5), [0], [0], [-0.5]),
    (Hardshrink(0.5), [-0.5, 0.5], [0, 0], [0, 0]),
    (Softshrink(0.5), [-0.5, 0.5], [0, 0], [0, 0]),
    (Hardsigmoid(), [-3, 3], [0, 1], [0, 0]),
    (Hardswish(), [-3, 3], [0, 3], [0, 1]),
    (ELU(0.5), [0], [0], [0.5]),
    (CELU(0.5), [0], [0], [1]),
    (SELU(), [0], [0], [SELU.SCALE * SELU.ALPHA]),
    (Softplus(2, 1), [0.5], [(1 + math.log1p(math.exp(-1))) / 2], [1 / (1 + math.exp(-1))]),
]


@pytest.mark.parametrize(("layer", "points", "outputs", "slopes"), AT_BREAKPOINTS, ids=repr)
def test_where_pieces_meet(layer: Layer, points: list[float], outputs: list[float], slopes: list[float]) -> None:
    input = np.array(points)
    output, saved = layer.forward(input)
    np.testing.assert_allclose(output, outputs, rtol=1e-15)
    np.testing.assert_allclose(layer.backward(saved, np.full(len(points), -2.0)), -2 * np.array(slopes), rtol=1e-15)
    distances = [np.inf] if isinstance(layer, CELU) else [0] * len(points)
    assert layer.kink_distance(input).tolist() == distances
    assert layer.kink_distance(input + 0.125).tolist() == [np.inf if math.isinf(each) else 0.125 for each in distances]


@pytest.mark.parametrize(
    "layer", [ReLU6(), Hardtanh(), Threshold(1, 0), Hardshrink(2), Softshrink(2), Hardsigmoid(), Hardswish()]
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_flat_piece_stops_what_is_not_finite(layer: Layer, dtype: str) -> None:
    _, saved = layer.forward(np.array([-7 if isinstance(layer, Hardsigmoid | Hardswish | Hardtanh) else 0] * 2, dtype))
    grad_input = layer.backward(saved, np.array([np.inf, np.nan], dtype))
    assert grad_input.dtype == dtype
    assert grad_input.tolist() == [0.0, 0.0]


#: Far out, where exponentials overflow or vanish: inputs, outputs and slopes.
FAR_OUT: list[tuple[Layer, list[float], list[float]]] = [
    (ELU(0.5), [-0.5, 1e9], [0, 1]),
    (CELU(0.5), [-0.5, 1e9], [0, 1]),
    (SELU(), [-SELU.SCALE * SELU.ALPHA, 1e9 * SELU.SCALE], [0, SELU.SCALE]),
    (Softplus(), [0, 1e9], [0, 1]),
    (Softplus(threshold=math.inf), [0, 1e9], [0, 1]),
    (LogSigmoid(), [-1e9, 0], [1, 0]),
    (Mish(), [0, 1e9], [0, 1]),
    (Softsign(), [-1 + 1e-9, 1 - 1e-9], [1e-18, 1e-18]),
    (Tanhshrink(), [-1e9 + 1, 1e9 - 1], [1, 1]),
]


@pytest.mark.parametrize(("layer", "outputs", "slopes"), FAR_OUT, ids=repr)
def test_far_out(layer: Layer, outputs: list[float], slopes: list[float]) -> None:
    output, saved = layer.forward(np.array([-1e9, 1e9]))
    np.testing.assert_allclose(output, outputs, rtol=1e-9)
    np.testing.assert_allclose(layer.backward(saved, np.full(2, 3.0)), 3 * np.array(slopes), rtol=1e-8)


def test_tails_keep_their_digits() -> None:
    """By mpmath with 40 digits: log(1 + exp(-30)), log(sigmoid(30)), and mish(-30) with its slope."""
    input = np.array([-30.0])
    np.testing.assert_allclose(Softplus().forward(input)[0], 9.357622968839737e-14, rtol=1e-14)
    np.testing.assert_allclose(LogSigmoid().forward(-input)[0], -9.357622968839737e-14, rtol=1e-14)
    output, saved = Mish().forward(input)
    np.testing.assert_allclose(output, -2.807286890651921e-12, rtol=1e-14)
    np.testing.assert_allclose(Mish().backward(saved, np.ones(1)), -2.713710660963392e-12, rtol=1e-13)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Hardtanh(1, 1), "min_val must be below max_val, not 1 and 1"),
        (lambda: Softshrink(-0.1), r"lambd must be at least 0, not -0\.1"),
        (lambda: CELU(0), "alpha must be positive, not 0"),
        (lambda: Softplus(0), "beta must not be 0"),
    ],
)
def test_settings_that_are_refused(make: Any, words: str) -> None:
    with pytest.raises(ValueError, match=f"^{words}$"):
        make()
