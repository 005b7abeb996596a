"""What a layer is compared with: torch's layer, a reference of its own, or central differences.

A central difference needs no derivation and no torch, so it serves any layer; but it takes two evaluations for each
element of the input and of the parameters, and it is good to some 1e-10 of the values only. At a kink it is the mean of
the slopes left and right. A layer that is large, or that has kinks, should bring a `reference`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import fields
from enum import Enum
from typing import Any

import numpy as np
import torch

from nn_manual.arrays import Array, Shape
from nn_manual.check.twin.differences import by_differences
from nn_manual.layers.base import Layer

Function = Callable[..., torch.Tensor]


class Source(Enum):
    """Where the reference of a layer comes from; the values are for reports."""

    TORCH = "torch.nn's layer of the same name"
    REFERENCE = "its own reference"
    NUMPY_REFERENCE = "its own reference, the gradients with central differences of it in float64"
    FORWARD = "its own forward in float64, the gradients with central differences of it"

    @property
    def is_numerical(self) -> bool:
        """Whether the gradients are central differences."""
        return self in (Source.NUMPY_REFERENCE, Source.FORWARD)


def source_of(layer: Layer, input_shape: Shape) -> Source:
    """What a layer is compared with on an input of this shape."""
    reference = getattr(layer, "reference", None)
    if reference is None:
        return Source.FORWARD if torch_module(layer) is None else Source.TORCH
    ones = [
        torch.ones(shape, dtype=torch.float64, requires_grad=True)
        for shape in (input_shape, *layer.parameter_shapes().values())
    ]
    input, parameters = ones[0], dict(zip(layer.parameter_shapes(), ones[1:], strict=True))
    return Source.NUMPY_REFERENCE if _in_torch(reference, input, parameters) is None else Source.REFERENCE


def layer_function(layer: Layer, parameters: dict[str, torch.nn.Parameter]) -> Function:
    """torch's version of a layer, using `parameters`: the layer's own `reference(input, **parameters)`, in torch or in
    numpy, or else torch.nn's class of the layer's name with the layer's fields as keyword arguments, or else the
    layer's own forward in float64. What torch can't differentiate gets central differences.
    """
    reference = getattr(layer, "reference", None)
    if reference is not None:
        return _own_reference(reference, parameters)
    module = torch_module(layer)
    if module is None:
        return by_differences(_forward_in_float64(layer), parameters)
    for name, parameter in parameters.items():
        setattr(module, name, parameter)
    return module.forward  # nobody hooks into these modules: what calling them would look for costs more than they do


def torch_module(ours: Any) -> torch.nn.Module | None:
    """torch.nn's layer or loss of the same name and with the same keyword arguments, or None: torch has none, or one
    that takes others, so that it is another function.
    """
    torch_class = getattr(torch.nn, type(ours).__name__, None)
    if not (isinstance(torch_class, type) and issubclass(torch_class, torch.nn.Module)):
        return None
    try:
        # On the meta device nothing is allocated or drawn: the parameters are replaced by ours.
        with torch.device("meta"):
            return torch_class(**settings(ours))
    except TypeError:
        return None


def settings(ours: Any) -> dict[str, Any]:
    """The fields of a dataclass, a layer's, loss's or optimizer's, by name: torch's keyword arguments."""
    return {field.name: getattr(ours, field.name) for field in fields(ours)}


def _own_reference(reference: Callable[..., Any], parameters: Mapping[str, torch.Tensor]) -> Function:
    def on_arrays(input: Array, *values: Array) -> Any:
        return reference(input, **dict(zip(parameters, values, strict=True)))

    numerical = by_differences(on_arrays, parameters)

    def function(input: torch.Tensor) -> torch.Tensor:
        output = _in_torch(reference, input, parameters)
        return numerical(input) if output is None else output

    return function


def _in_torch(
    reference: Callable[..., Any], input: torch.Tensor, parameters: Mapping[str, torch.Tensor]
) -> torch.Tensor | None:
    """What the reference makes of tensors, or None: numpy's functions refuse one that needs a gradient."""
    try:
        output = reference(input, **parameters)
    except Exception:  # it is tried on arrays next, and what it raises then is told
        return None
    return output if isinstance(output, torch.Tensor) else None


def _forward_in_float64(layer: Layer) -> Callable[..., Array]:
    """The layer's forward as a function of its input and its parameters, all float64."""
    double = copy.deepcopy(layer)

    def forward(input: Array, *parameters: Array) -> Array:
        param = np.concatenate([np.empty(0), *parameters], axis=None)  # the empty one: there may be no parameters
        double.bind(param, np.empty_like(param))
        return double.forward(input)[0]

    return forward
