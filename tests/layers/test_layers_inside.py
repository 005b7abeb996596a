"""Layers inside of WeightNorm and SpectralNorm: one's own, one in two places, wrong gradients, and what is refused."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nn_manual import (
    BatchNorm1d,
    Conv1d,
    ConvTranspose1d,
    Dropout,
    Layer,
    LayerNorm,
    Linear,
    MSELoss,
    MultiheadAttention,
    PaddedLSTM,
    Residual,
    Sequential,
    SpectralNorm,
    Tanh,
    WeightNorm,
    check_gradients,
)
from nn_manual.arrays import Array, Shape


class Scaled(Layer):
    """A layer of one's own: input * scale."""

    torch_class = None

    def parameter_shapes(self) -> dict[str, Shape]:
        return {"scale": (3,)}

    def reset_parameters(self, generator: np.random.Generator) -> None:
        self.param.scale[...] = generator.uniform(1, 2, 3)

    def forward(self, input: Array) -> tuple[Array, Array]:
        return input * self.param.scale, input

    def backward(self, saved: Array, grad_output: Array) -> Array:
        self.grad.scale[...] = (grad_output * saved).sum(axis=0)
        grad_input: Array = grad_output * self.param.scale
        return grad_input


class Named(Linear):
    """A layer of torch's name with its own reference, which torch's class can't stand for."""

    def reference(self, input: Any, weight: Any, bias: Any) -> Any:
        return input @ weight.T + bias


@pytest.mark.parametrize(
    ("layer", "source"),
    [(WeightNorm(Scaled(), "scale"), "central differences"), (WeightNorm(Named(3, 3)), "Named's own reference")],
    ids=["own", "named"],
)
def test_a_layer_of_ones_own(layer: WeightNorm, source: str) -> None:
    model = Sequential(layer, dtype="float64")
    report = check_gradients(model, MSELoss(), np.random.default_rng(0).standard_normal((4, 3)), np.ones((4, 3)))
    assert report.agrees, str(report)
    assert source in str(report)


def test_a_wrong_gradient_is_named() -> None:
    class Wrong(WeightNorm):
        def write_grads(self, saved: Any, grad_weight: Array, grads: Any) -> None:
            super().write_grads(saved, grad_weight, grads)
            grads.original1 *= 1.01

    Wrong.__name__ = "WeightNorm"
    model = Sequential(Wrong(Linear(3, 3)), dtype="float64")
    report = check_gradients(model, MSELoss(), np.random.default_rng(0).standard_normal((4, 3)), np.ones((4, 3)))
    assert [failure.name for failure in report.failures] == ["0.grad_parametrizations.weight.original1"]


def test_one_layer_in_two_places_has_two_weights() -> None:
    """The layer inside has no memory that another could lose."""
    inside = Linear(3, 3)
    model = Sequential(WeightNorm(inside), Residual(WeightNorm(inside)), dtype="float64")
    weights = [array for name, array in vars(model.param).items() if name.endswith("original1")]
    assert (weights[0] != weights[1]).all()
    assert check_gradients(model, MSELoss(), np.ones((4, 3)), np.zeros((4, 3))).passed
    assert not hasattr(inside, "param")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda of: of(Linear), "layer must be a layer, not <class 'nn_manual.layers.linear.Linear'>"),
        (lambda of: of(Linear(2, 2), "wieght"), "a parameter of the layer, not 'wieght': Linear has weight, bias"),
        (lambda of: of(Tanh()), "name must be a parameter of the layer, not 'weight': Tanh has none"),
        (lambda of: of(Residual(Linear(2, 2))), " takes one layer, and Residual is made of layers"),
        (lambda of: of(WeightNorm(Linear(2, 2))), " takes one layer, and WeightNorm is made of layers"),
        (lambda of: of(BatchNorm1d(2)), "evaluates as it trains, without lengths, and not BatchNorm1d"),
        (lambda of: of(MultiheadAttention(2, 1), "in_proj_weight"), " and not MultiheadAttention"),
        (lambda of: of(PaddedLSTM(2, 2), "weight_hh_l0"), " and not PaddedLSTM"),
        (lambda of: of(Dropout()), " and not Dropout"),
    ],
)
@pytest.mark.parametrize("of", [WeightNorm, SpectralNorm])
def test_what_both_refuse(make: Callable[[Any], Layer], of: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError)) as error:
        make(of)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: WeightNorm(Linear(2, 2), dim=2), "2 dimensions of weight, or null or -1 for all together, not 2"),
        (lambda: WeightNorm(Linear(2, 2), dim=-3), "not -3"),
        (lambda: SpectralNorm(Linear(2, 2), dim=2), "dim must be one of the 2 dimensions of weight, not 2"),
        (lambda: SpectralNorm(Linear(2, 2), dim=-3), "not -3"),
        (lambda: SpectralNorm(Linear(2, 2), n_power_iterations=0), "n_power_iterations must be at least 1, not 0"),
        (lambda: SpectralNorm(Linear(2, 2), eps=-1.0), "eps must be at least 0, not -1.0"),
        (lambda: SpectralNorm(LayerNorm(2)), "SpectralNorm takes a matrix, or more dimensions: weight is (2,)"),
    ],
)
def test_what_each_refuses(make: Callable[[], Layer], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        make()


def test_the_outputs_of_a_transposed_convolution_are_its_second_dimension() -> None:
    for dim, num_rows in ((None, 3), (0, 2), (1, 3), (-1, 4)):
        layer = SpectralNorm(ConvTranspose1d(2, 3, 4), dim=dim)
        assert [size for (size,) in layer.buffer_shapes().values()] == [num_rows, 24 // num_rows]
    assert list(itertools.chain(*SpectralNorm(Conv1d(2, 3, 4)).buffer_shapes().values())) == [3, 8]
