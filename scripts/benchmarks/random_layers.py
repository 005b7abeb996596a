"""The layers of nets drawn at random: Linears and activations, with normalizations, residual blocks, an embedding, and
a layer of any class between reshapes.
"""

from __future__ import annotations

import copy
import math
from dataclasses import MISSING, fields, replace
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from nn_manual import BatchNorm1d, Embedding, Flatten, Layer, LayerNorm, Linear, Loss, Residual, Unflatten
from nn_manual.arrays import Shape
from nn_manual.layers import LayerWithLengths
from nn_manual.losses.base import takes_numbers
from nn_manual.registry import components

#: Small nets: each single unit has to be right, and rounding shows most where little is averaged.
WIDTHS = (1, 2, 3, 5, 8, 16, 20)


def _fits_behind_a_linear(layer_class: type[Any]) -> bool:
    """Whether a layer needs no sizes, and takes a matrix: those over time don't."""
    if any(field.default is MISSING for field in fields(layer_class)):
        return False
    try:
        return bool(layer_class().output_shape((2, 3)) == (2, 3))
    except ValueError:
        return False


#: The activations, and others that fit behind any Linear.
ACTIVATIONS: tuple[type[Any], ...] = tuple(each for each in components(Layer).values() if _fits_behind_a_linear(each))
#: Each example of a layer, with the shape of its input, that takes real numbers and leaves the batch as it is. A layer
#: with the time first would take the examples of a batch for times: cut into slices, they are other sequences.
SHAPED: tuple[tuple[Layer, Shape], ...] = tuple(
    (layer, shape)
    for layer_class in components(Layer).values()
    for layer, shape in layer_class.examples()
    if layer.domain == "real" and layer.output_shape(shape)[0] == shape[0] and len(shape) > 1
    if getattr(layer, "batch_first", True)
)
#: Those for nets whose examples are a single index each: no sequence, and so of no length.
WITHOUT_LENGTHS = tuple((layer, shape) for layer, shape in SHAPED if not isinstance(layer, LayerWithLengths))
#: A LayerNorm of one number returns its bias, whatever the input is; a LayerNorm of two numbers returns -1 and 1, apart
#: from eps. So the layers before it have a gradient that is only rounding. They can enlarge it without bound, and each
#: step is judged again.
NARROWEST = 3
#: The part of all Linears that each of these follows.
NORMALIZED, RESIDUAL, RESHAPED = 0.3, 0.15, 0.15
#: The part of all nets that begin with an Embedding, and the part of nets with two weights of one shape that share
#: them.
EMBEDDED, TIED = 0.15, 0.3


def random_layers(generator: np.random.Generator, loss_class: type[Loss]) -> list[Layer]:
    """Linears, each followed by an activation or not at the end."""
    widths = [int(width) for width in generator.choice(WIDTHS, generator.integers(2, 6))]
    if not takes_numbers(loss_class):  # its target is a class, and one class alone is nothing to learn
        widths[-1] = max(2, widths[-1])
    layers: list[Layer] = []
    for in_features, out_features in pairwise(widths):
        layers += [Linear(in_features, out_features, bias=generator.random() < 0.75), _activation(generator)]
    return layers if generator.random() < 0.2 else layers[:-1]


def extended(layers: list[Layer], generator: np.random.Generator) -> list[Layer]:
    """The layers, with other layers behind some of the Linears, and perhaps an Embedding in front."""
    result: list[Layer] = []
    first = layers[0]
    if isinstance(first, Linear) and generator.random() < EMBEDDED:
        result.append(_like_an_example(Embedding, generator, embedding_dim=first.in_features))
    for layer in layers:
        result.append(layer)
        if isinstance(layer, Linear):
            result += _normalization(layer.out_features, generator) if generator.random() < NORMALIZED else []
            result += [_residual(layer.out_features, generator)] if generator.random() < RESIDUAL else []
    return result


def reshaped(layers: list[Layer], generator: np.random.Generator) -> list[Layer]:
    """The layers, with an example of any class behind some of the Linears: on images, on sequences."""
    shaped, result = WITHOUT_LENGTHS if isinstance(layers[0], Embedding) else SHAPED, list[Layer]()
    for layer in layers:
        result.append(layer)
        if isinstance(layer, Linear) and generator.random() < RESHAPED:
            result += _between_reshapes(layer.out_features, *shaped[generator.integers(len(shaped))])
    return result


def random_ties(layers: list[Layer], generator: np.random.Generator) -> list[tuple[str, str]]:
    """No pair of names, or the pair of two Linears whose weights have the same shape."""
    weights = [
        (f"{index}.weight", layer.parameter_shapes()["weight"])
        for index, layer in enumerate(layers)
        if isinstance(layer, Linear)
    ]
    pairs = [(first, second) for (first, a), (second, b) in combinations(weights, 2) if a == b]
    return [pairs[generator.integers(len(pairs))]] if pairs and generator.random() < TIED else []


def _activation(generator: np.random.Generator) -> Layer:
    layer: Layer = ACTIVATIONS[generator.integers(len(ACTIVATIONS))]()
    return layer


def _normalization(width: int, generator: np.random.Generator) -> list[Layer]:
    """A LayerNorm or a BatchNorm1d, but no LayerNorm of fewer than NARROWEST numbers."""
    if generator.random() < 0.5:
        return [_like_an_example(BatchNorm1d, generator, num_features=width)]
    return [_like_an_example(LayerNorm, generator, normalized_shape=width)] if width >= NARROWEST else []


def _residual(width: int, generator: np.random.Generator) -> Layer:
    """A block that keeps the width, with another one inside or not."""
    inner = int(generator.choice(WIDTHS))
    branch: list[Layer] = [Linear(width, inner), _activation(generator), Linear(inner, width)]
    if generator.random() < 0.5:
        branch[1:1] = _normalization(inner, generator)
    if generator.random() < 0.2:
        branch.append(_residual(width, generator))
    return Residual(*branch)


def _between_reshapes(width: int, layer: Layer, shape: Shape) -> list[Layer]:
    """The layer, on an input of the shape that it needs."""
    sizes, output_size = list(shape[1:]), math.prod(layer.output_shape(shape)[1:])
    shaped = [Unflatten(1, sizes), copy.deepcopy(layer), Flatten()]
    return [Linear(width, math.prod(sizes)), *shaped, Linear(output_size, width)]


def _like_an_example(layer_class: type[Any], generator: np.random.Generator, **sizes: int) -> Any:
    """A layer with the settings of one of the examples of its class, and these sizes."""
    examples = layer_class.examples()
    return replace(examples[generator.integers(len(examples))][0], **sizes)
