import numpy as np
import pytest

from nn_manual import ReLU, Tanh


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
