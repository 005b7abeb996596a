"""Every plain layer, with parameters and inputs of all kinds, and what it makes of them."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from comparing import frozen

from nn_manual.arrays import Array, Shape
from nn_manual.check.catalogue.input_kinds import draw
from nn_manual.exercises.kinds.frozen import freeze
from nn_manual.layers import Layer, LayerWithBuffers, LayerWithLengths
from nn_manual.layers.parametrized import Parametrized
from nn_manual.layers.with_noise import draws
from nn_manual.model.memory import bind
from nn_manual.registry import components, examples


def is_plain(layer: Layer) -> bool:
    """Whether it is a function of numbers and parameters alone. What has layers inside, draws, keeps something, heeds
    lengths, or looks something up has tests of its own.
    """
    special = LayerWithBuffers | LayerWithLengths | Parametrized
    is_special = isinstance(layer, special) or draws(layer) or isinstance(layer.domain, range)
    return not (layer.children() or is_special)


CLASSES = [owner for owner in components(Layer).values() if any(is_plain(layer) for layer, _ in owner.examples())]
LAYERS = [case for case in examples({owner.__name__: owner for owner in CLASSES}) if is_plain(case[0])]

each_layer = pytest.mark.parametrize(("layer", "shape"), LAYERS, ids=repr)


def bound(layer: Layer, dtype: str, kind: str = "random") -> Layer:
    """The layer with parameters of this kind, and gradients that show where nothing is written."""
    param = draw(kind, (layer.num_parameters,), dtype, np.random.default_rng(1))
    bind(layer, frozen(param), np.full_like(param, np.nan))
    return layer


def our_results(layer: Layer, input: Array, grad_output: Array) -> tuple[Array, SimpleNamespace]:
    """The output, and the gradients by the names of formulas, of our layer, which can write neither to the input nor to
    what it saves nor to the upstream gradient.
    """
    output, saved = layer.forward(input)
    grad_input = layer.backward(freeze(saved), grad_output)
    gradients = {f"grad_{name}": gradient.copy() for name, gradient in vars(layer.grad).items()}
    return output, SimpleNamespace(grad_input=grad_input, **gradients)


def inputs(layer: Layer, shape: Shape, kind: str, upstream: str, dtype: str, seed: int = 0) -> tuple[Array, Array]:
    generator = np.random.default_rng(seed)
    input = draw(kind, shape, dtype, generator, layer.domain)
    return frozen(input), frozen(draw(upstream, layer.output_shape(shape), dtype, generator))
