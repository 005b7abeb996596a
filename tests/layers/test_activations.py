import numpy as np
import pytest

from nn_manual import ReLU, Tanh


def test_relu_at_its_kink_passes_nothing() -> None:
    input = np.array([-2.0, -0.0, 0.0, 5e-324, 3.0])
    output, saved = ReLU().forward(input)
    assert output.tolist() == [0.0, 0.0, 0.0, 5e-324, 3.0]
    assert ReLU().backward(saved, np.array([7.0, 7.0, -7.0, -7.0, 7.0])).tolist() == [0.0, 0.0, 0.0, -7.0, 7.0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tanh_at_its_ends_passes_nothing(dtype: str) -> None:
    input = np.array([-1e30, -100, 0, 100, 1e30], dtype)
    output, saved = Tanh().forward(input)
    assert output.tolist() == [-1.0, -1.0, 0.0, 1.0, 1.0]
    grad_input = Tanh().backward(saved, np.full(5, -3, dtype))
    assert grad_input.dtype == dtype
    assert grad_input.tolist() == [0.0, 0.0, -3.0, 0.0, 0.0]
