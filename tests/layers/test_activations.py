from typing import Any

import numpy as np
import pytest

from nn_manual import GELU, ReLU, Tanh


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
