"""Pooling over time beside NumPy, one sequence after the other."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from nn_manual import MSELoss, Sequential, Tanh, check_gradients
from nn_manual.arrays import Array
from nn_manual.layers import PaddedTimePool, TimePool
from nn_manual.layers.time_pooling import Mode

LENGTHS = np.array([4, 1, 3])
OF_ONE = {
    "last": lambda sequence: sequence[-1],
    "mean": lambda sequence: sequence.mean(axis=0),
    "sum": lambda sequence: sequence.sum(axis=0),
    "max": lambda sequence: sequence.max(axis=0),
}
each_mode = pytest.mark.parametrize("mode", OF_ONE)


def drawn(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape)


def padded(mode: Mode) -> PaddedTimePool:
    layer = PaddedTimePool(mode)
    layer.noise = SimpleNamespace(lengths=LENGTHS)
    return layer


@each_mode
def test_each_sequence_by_itself(mode: Mode) -> None:
    input = drawn(0, 3, 5, 2, 2)
    output, _ = TimePool(mode).forward(input)
    np.testing.assert_allclose(output, [OF_ONE[mode](sequence) for sequence in input], rtol=0, atol=1e-15)
    output, _ = padded(mode).forward(input)
    expected = [OF_ONE[mode](sequence[:length]) for sequence, length in zip(input, LENGTHS, strict=True)]
    np.testing.assert_allclose(output, expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("last", [[0, 0, 2], [0, 0, 5]]),
        ("mean", [[2 / 3] * 3, [5 / 3] * 3]),
        ("sum", [[2, 2, 2], [5, 5, 5]]),
        ("max", [[0, 2, 0], [2.5, 0, 2.5]]),  # two are tied in the second
    ],
)
def test_gradients_by_hand(mode: Mode, expected: list[list[float]]) -> None:
    layer = TimePool(mode)
    _, saved = layer.forward(np.array([[1.0, 3, 2], [7, 1, 7]])[:, :, np.newaxis])
    np.testing.assert_allclose(layer.backward(saved, np.array([[2.0], [5]]))[:, :, 0], expected, rtol=1e-15)


def test_the_largest_number_is_not_rounded() -> None:
    """In a check torch looks for our output among the numbers of the input."""
    numbers = drawn(0, 50, 1, 1).astype(np.float32)
    layer, tied = TimePool("max"), numbers.repeat(3, axis=1)
    np.testing.assert_array_equal(layer.forward(tied)[0], numbers[:, 0])
    assert check_gradients(Sequential(Tanh(), layer), MSELoss(), tied, numbers[:, 0]).passed


@each_mode
def test_padding_changes_nothing_and_gets_nothing(mode: Mode) -> None:
    input, grad_output, layer = drawn(0, 3, 5, 2), drawn(1, 3, 2), padded(mode)
    is_padding = np.arange(5) >= LENGTHS[:, np.newaxis]
    results = []
    for filled in (0.0, np.nan, np.inf, 7.0):
        input[is_padding] = filled
        output, saved = layer.forward(input)
        results.append((output, layer.backward(saved, grad_output)))
    for output, grad_input in results:
        np.testing.assert_array_equal(output, results[0][0])
        np.testing.assert_array_equal(grad_input, results[0][1])
        assert not grad_input[is_padding].any()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@each_mode
def test_the_dtype_stays(mode: Mode, dtype: str) -> None:
    layer = TimePool(mode)
    output, saved = layer.forward(np.ones((2, 3, 4), dtype))
    assert output.dtype == layer.backward(saved, output).dtype == np.dtype(dtype)


def test_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match=r"^mode must be one of last, mean, sum, max, not 'first'$"):
        TimePool("first")  # type: ignore[arg-type]  # on purpose
    for shape in ((2, 3), (2, 0, 3)):
        with pytest.raises(ValueError, match=r"^TimePool takes \(batch, time, \.\.\.\), the input has shape"):
            TimePool().forward(np.ones(shape))
    with pytest.raises(ValueError, match=r"^TimePool takes a gradient of its output's shape \(2, 4\), not \(2, 3\)$"):
        TimePool().backward(TimePool().forward(np.ones((2, 3, 4)))[1], np.ones((2, 3)))
