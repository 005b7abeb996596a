"""Where a number that isn't finite comes from, in words: the tensor, its layer, the first index."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from nn_manual.arrays import Array, carve, first_not_finite
from nn_manual.layers import Layer
from nn_manual.model import Sequential
from nn_manual.optim import Optimizer


class _Found(Exception):  # noqa: N818 - says what happened; nobody else sees it
    pass


def not_finite_output(model: Sequential, input: Array) -> str | None:
    """The first output of a layer that isn't finite, in a forward of a copy of the model on `input`; None where all
    are finite, and where a layer raises. Composites count only where the layers in them have finite outputs.
    """
    try:
        model = copy.deepcopy(model)
        for name, layer in model.descendants():
            vars(layer)["forward"] = partial(_watched, name, layer, layer.forward)
        model.forward(input)
    except _Found as found:
        return str(found)
    except (Exception, SystemExit):  # a user's own code may raise anything
        return None
    return None


def _watched(name: str, layer: Layer, forward: Callable[[Array], tuple[Array, Any]], input: Array) -> tuple[Array, Any]:
    output, saved = forward(input)
    if wrong := first_not_finite(output):
        raise _Found(f"{name}.output of {name} ({type(layer).__name__}) holds {wrong}")
    return output, saved


def not_finite_in_step(model: Sequential, optimizer: Optimizer) -> str | None:
    """The first number that isn't finite of what a step has left behind; None where all are finite. The gradients come
    first, the last layer's before the others', then what the optimizer keeps, the parameters and the buffers.
    """
    vectors = model.grad_arena, *optimizer.vectors.values(), model.param_arena, *vars(model.buffer).values()
    if all(np.isfinite(vector).all() for vector in vectors):  # as nearly always: by name it takes longer
        return None
    layers = dict(model.named_layers())
    for parameter, name, array in _left_behind(model, optimizer):
        if wrong := first_not_finite(array):
            layer = parameter.rpartition(".")[0]
            return f"{name} of {layer} ({type(layers[layer]).__name__}) holds {wrong}"
    return None


def _left_behind(model: Sequential, optimizer: Optimizer) -> Iterator[tuple[str, str, Array]]:
    """Each parameter or buffer, by its name, with the name of what the step has made of it, and the numbers."""
    for name, grad in reversed(vars(model.grad).items()):
        layer, _, parameter = name.rpartition(".")
        yield name, f"{layer}.grad_{parameter}", grad
    for kind, vector in optimizer.vectors.items():
        views = vars(carve(vector, model.parameter_shapes()))
        yield from ((name, f"{name}.{kind}", view) for name, view in views.items())
    yield from ((name, f"updated {name}", parameter) for name, parameter in vars(model.param).items())
    yield from ((name, name, buffer) for name, buffer in vars(model.buffer).items())
