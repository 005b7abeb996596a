"""Where layers branch, as it is found from their outputs and gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from nn_manual import Layer, LayerNorm, ReLU, Sequential, Tanh
from nn_manual.arrays import DTYPES, Array
from nn_manual.check.catalogue.jumps import SMALLEST, values_at_jumps


@dataclass(eq=False)
class Clip(Layer):
    """Jumps in the derivative at `low` and `high`, and in the output at `cliff`."""

    low: float = -1 / 3
    high: float = 0.7
    cliff: float = 12.34567

    def forward(self, input: Array) -> tuple[Array, Array]:
        return np.clip(input, self.low, self.high) + (input > self.cliff).astype(input.dtype), input

    def backward(self, saved: Array, grad_output: Array) -> Array:
        grad_input: Array = grad_output * ((saved > self.low) & (saved < self.high))
        return grad_input


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 3), (5,), (2, 1, 2)])
def test_jumps_are_found_to_the_last_bit(dtype: str, shape: tuple[int, ...]) -> None:
    clip = Clip()
    values = values_at_jumps(clip, shape, dtype)
    assert values.dtype == dtype
    for at in (clip.low, clip.high, clip.cliff):
        number = np.dtype(dtype).type(at)
        around = {np.nextafter(number, number.dtype.type(end)) for end in (-np.inf, np.inf)}
        assert {number, *around} <= set(values)
    # In float64 also those around 0: between 0 and SMALLEST the output changes by many eps.
    assert len(values) == 3 * 4 + (4 if dtype == "float64" else 0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_relu(dtype: str) -> None:
    values = values_at_jumps(ReLU(), (4, 3), dtype)
    assert 0 in values
    assert np.all((values == 0) | (np.abs(values) >= np.dtype(dtype).type(SMALLEST)))
    assert values.min() < 0 < values.max() < 1e-8


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_stated_kink_is_taken_though_nothing_jumps_there(dtype: str) -> None:
    class Flat(Tanh):
        def kink_distance(self, input: Array) -> Array:
            distance: Array = np.minimum(np.inf, np.abs(input - 2.25)).astype("float64")  # as np.full makes them
            return distance

    values = values_at_jumps(Flat(), (4, 3), dtype)
    assert 2.25 in values
    assert values.dtype == dtype  # the layer gets these, and a model of float32 takes no float64
    assert 2.25 not in values_at_jumps(Tanh(), (4, 3), "float64")


def test_each_feature_may_jump_elsewhere() -> None:
    class Thresholds(Clip):
        def backward(self, saved: Array, grad_output: Array) -> Array:
            grad_input: Array = grad_output * (saved > np.array([0.1, 7.3]))
            return grad_input

    assert {0.1, 7.3} <= set(values_at_jumps(Thresholds(), (4, 2), "float64"))


def raising(*_: Any) -> Any:
    raise RuntimeError("no")


@pytest.mark.parametrize("method", ["forward", "backward", "kink_distance"])
def test_a_layer_that_raises_has_none(method: str) -> None:
    layer = type("Raises", (ReLU,), {method: raising})()
    assert values_at_jumps(layer, (4, 3), "float64").size == 0


def test_a_layer_of_another_shape_has_none() -> None:
    total = type("Total", (ReLU,), {"forward": lambda _, input: (input.sum(axis=1), input)})()
    assert values_at_jumps(total, (4, 3), "float64").size == 0


def test_a_model_is_searched_too() -> None:
    model = Sequential(Clip(), Tanh(), dtype="float64")
    assert Clip.high in values_at_jumps(model, (4, 3), "float64")


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_layer_that_mixes_the_numbers_of_a_row_has_none(dtype: str) -> None:
    """What a LayerNorm leaves of equal numbers is rounding, which would look like jumps."""
    norm = LayerNorm(3)
    Sequential(norm, dtype=dtype)
    assert values_at_jumps(norm, (4, 3), dtype).size == 0
