"""The memory of layers: named views of it, for each layer and for those inside it."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from nn_manual.arrays import Array, carve, size_of
from nn_manual.layers.base import Layer
from nn_manual.layers.composite import buffer_names, buffer_shapes, counter_names


def bind(layer: Layer, param: Array, grad: Array) -> None:
    """Carve a layer's `param` and `grad` out of two flat vectors of `num_parameters` elements."""
    shapes = layer.parameter_shapes()
    give_parameters(layer, vars(carve(param, shapes)), vars(carve(grad, shapes)))


def bind_buffers(layer: Layer, buffer: Array, counters: Array) -> None:
    """Carve a layer's `buffer`, and those of its children, out of a flat vector of the model's dtype and one of int64.
    """
    counts = dict.fromkeys(counter_names(layer), ())
    give_buffers(layer, vars(carve(buffer, buffer_shapes(layer))) | vars(carve(counters, counts)))


def new_buffers(layer: Layer, dtype: np.dtype[Any]) -> None:
    """Give a layer new buffers in this dtype, which are zero."""
    size = sum(map(size_of, buffer_shapes(layer).values()))
    bind_buffers(layer, np.zeros(size, dtype), np.zeros(len(counter_names(layer)), np.int64))


def give_parameters(layer: Layer, param: Mapping[str, Array], grad: Mapping[str, Array]) -> None:
    """Give a layer one view for each of `parameter_shapes()`, and the children theirs."""
    layer.param, layer.grad = SimpleNamespace(**param), SimpleNamespace(**grad)
    for name, child in layer.children().items():
        names = {parameter: f"{name}.{parameter}" for parameter in child.parameter_shapes()}
        give_parameters(
            child,
            {parameter: param[inside] for parameter, inside in names.items()},
            {parameter: grad[inside] for parameter, inside in names.items()},
        )


def give_buffers(layer: Layer, views: Mapping[str, Array]) -> None:
    """Give a layer a view for each buffer, and the children theirs."""
    layer.buffer = SimpleNamespace(**views)
    for name, child in layer.children().items():
        give_buffers(child, {buffer: views[f"{name}.{buffer}"] for buffer in buffer_names(child)})


def reset_buffers(layer: Layer) -> None:
    """Fill the buffers, which are zero, with their first values."""
    for child in layer.children().values():
        reset_buffers(child)
    layer.reset_buffers()
