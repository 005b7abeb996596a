"""Whether what a layer's methods return is what the contract asks for. An error names the class and the method."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.defaults import defines
from nn_manual.errors import LayerError
from nn_manual.layers.base import BASE_OF_METHOD, Layer
from nn_manual.layers.composite import Composite, buffer_names, descendants, has_buffers
from nn_manual.layers.with_buffers import LayerWithBuffers
from nn_manual.layers.with_noise import LayerWithNoise

#: The attributes of a layer in which a model keeps its memory.
SET_BY_THE_MODEL = ("param", "grad", "buffer", "noise")

#: Names of what every layer has beside its parameters.
NOT_FOR_PARAMETERS = ("input", "output")


def check_layers(*layers: Layer) -> None:
    """Raise LayerError where these layers, or those they are made of, break the contract: a field with the name of an
    attribute that the model sets; a parameter whose name means something else; a method that returns no shapes or no
    names; a composite with parameters or buffers beside those of its children, or one that doesn't move theirs; a layer
    without an `infer` of its own whose forward is for training only.
    """
    for layer in layers:
        check_layers(*layer.children().values())  # first: a composite's shapes are put together from theirs
        _check_fields(layer)
        _check_names(layer, checked_shapes(layer, "parameter_shapes", layer.parameter_shapes()))
        _check_base(layer)
        if isinstance(layer, LayerWithBuffers):
            _check_buffers(layer)
        if layer.children():
            _check_composite(layer)
        if not defines(type(layer), "infer"):
            _check_evaluation(layer)


def _check_fields(layer: Layer) -> None:
    """Raise LayerError for a dataclass's field with the name of an attribute that the model sets."""
    own = {field.name for field in fields(layer)} if is_dataclass(layer) else set[str]()
    for name in SET_BY_THE_MODEL:
        if name in own:
            names = ", ".join(SET_BY_THE_MODEL)
            raise LayerError(f"{type(layer).__name__}: a field can't be called {name}: the model sets {names}")


def _check_names(layer: Layer, shapes: Mapping[str, Shape]) -> None:
    """Raise LayerError for a parameter whose name means something else: grad_input is the gradient of the input."""
    for name in () if layer.children() else shapes:
        if not name or name.startswith("__") or name in NOT_FOR_PARAMETERS:
            others = ", ".join(NOT_FOR_PARAMETERS)
            text = f"a parameter can't be called {name!r}, nor any of {others}, and its name can't begin with __"
            raise LayerError(f"{type(layer).__name__}: {text}")


def checked_shapes(layer: Layer, method: str, shapes: Any) -> dict[str, Shape]:
    """The shapes by name that a method of the layer returned. Raises LayerError for anything else."""
    right = isinstance(shapes, Mapping) and all(
        isinstance(name, str)
        and isinstance(shape, tuple | list)
        and all(isinstance(size, int | np.integer) and size >= 0 for size in shape)
        for name, shape in shapes.items()
    )
    if not right:
        raise LayerError(_returned(layer, method, "a dict of tuples such as {'weight': (3,)}", shapes))
    result: dict[str, Shape] = shapes
    return result


def checked_input_shapes(layer: Layer, input_shape: Shape) -> dict[str, Shape]:
    """The shape of each child's input, as the composite states it. Raises LayerError for anything else."""
    children = layer.children()
    if not isinstance(layer, Composite):  # as Composite's default
        return dict.fromkeys(children, input_shape)
    shapes = checked_shapes(layer, "input_shapes", layer.input_shapes(input_shape))
    if shapes.keys() != children.keys():
        raise LayerError(_returned(layer, "input_shapes", f"a shape for each of {', '.join(children)}", shapes))
    return shapes


def checked_length(layer: Layer, method: str, length: Any) -> int | None:
    """The number that `longest_sum` or `num_products` returned. Raises LayerError for anything else."""
    if method == "longest_sum" and length is None:
        return None
    if not (isinstance(length, int | np.integer) and length >= 0):
        kind = "an integer of at least 0, or None" if method == "longest_sum" else "an integer of at least 0"
        raise LayerError(_returned(layer, method, kind, length))
    return int(length)


def lost_setting(component: object, dtype: np.dtype[Any]) -> str:
    """Why a layer or a loss can't compute in this dtype, in words: a number among its settings that isn't infinite
    would be, or an eps that isn't 0 would be 0. Empty where it can.
    """
    largest = float(np.finfo(dtype).max)
    for name, setting in vars(component).items():
        for value in setting if isinstance(setting, list) else [setting]:
            if isinstance(value, int | float) and largest < abs(value) < math.inf:
                return f"{name} {value} is beyond what {dtype} can hold"
            if name.endswith("eps") and isinstance(value, float) and value and not dtype.type(value):
                return f"{name} {value} is so near to 0 that it would become 0 in {dtype}"
    return ""


def checked_output(layer: Layer, output: Any) -> Array:
    """The array that `infer` returned. Raises LayerError for anything else."""
    if not hasattr(output, "shape"):
        raise LayerError(_returned(layer, "infer", "the output, an array", output))
    result: Array = output
    return result


def _check_evaluation(layer: Layer) -> None:
    """Raise LayerError where evaluation would run a forward that is for training only: its own or a child's."""
    name = type(layer).__name__
    if isinstance(layer, LayerWithNoise):
        raise LayerError(
            f"{name} has noise_shapes: it must define infer(input), or evaluation would take the random numbers of the "
            "last training step"
        )
    for key, inner in descendants(layer):
        if isinstance(inner, LayerWithNoise) or not (inner.children() or not defines(type(inner), "infer")):
            raise LayerError(
                f"{name} is made of layers of which {key} ({type(inner).__name__}) evaluates otherwise than it trains: "
                "it must define infer(input), which runs theirs"
            )


def _check_base(layer: Layer) -> None:
    """Raise LayerError for a method that a class got after its definition, so that it hasn't got the method's base."""
    for method, base in BASE_OF_METHOD.items():
        if hasattr(layer, method) and not isinstance(layer, base):
            name = type(layer).__name__
            raise LayerError(f"{name} has {method}: derive it from nn_manual.layers.{base.__name__}")


def _check_buffers(layer: LayerWithBuffers) -> None:
    name = type(layer).__name__
    if all(getattr(type(layer), m) is getattr(LayerWithBuffers, m) for m in ("buffer_shapes", "counter_names")):
        raise LayerError(f"{name} is a LayerWithBuffers: it must define buffer_shapes() or counter_names()")
    shapes = checked_shapes(layer, "buffer_shapes", layer.buffer_shapes())
    names: Any = layer.counter_names()
    if not (isinstance(names, tuple | list) and all(isinstance(name, str) for name in names)):
        raise LayerError(_returned(layer, "counter_names", "a tuple of names such as ('num_steps',)", names))
    if (shapes or names) and not defines(layer, "update_buffers"):
        raise LayerError(f"{name} has buffers: it must define update_buffers(saved)")


def _check_composite(layer: Layer) -> None:
    name = type(layer).__name__
    has_own = {"parameters": layer.parameter_shapes() != Layer.parameter_shapes(layer)}
    if isinstance(layer, LayerWithBuffers):
        own = {*layer.buffer_shapes(), *layer.counter_names()}
        inside = {f"{key}.{buffer}" for key, child in layer.children().items() for buffer in buffer_names(child)}
        has_own["buffers"] = not own <= inside
    for kind, has in has_own.items():
        if has:
            raise LayerError(f"{name} is made of layers and has {kind} of its own: give them a layer of their own")
    if has_buffers(layer) and not defines(layer, "update_buffers"):
        raise LayerError(
            f"{name} is made of layers with buffers: it must define update_buffers(saved), which calls theirs"
        )


def _returned(layer: Layer, method: str, wanted: str, returned: object) -> str:
    return f"{type(layer).__name__}.{method} must return {wanted}, not {returned!r}"
