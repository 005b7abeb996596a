"""Whether what a layer's methods return is what the contract asks for. An error names the class and the method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.errors import LayerError
from nn_manual.layers.base import Layer


def check_layers(*layers: Layer) -> None:
    """Raise LayerError where these layers, or those they are made of, break the contract: a method that returns no
    shapes or no names; `noise_shapes` without `draw_noise`; a composite with parameters or buffers beside those of its
    children; a layer without an `infer` of its own whose forward is for training only.
    """
    for layer in layers:
        check_layers(*layer.children().values())  # first: a composite's shapes are put together from theirs
        checked_shapes(layer, "parameter_shapes", layer.parameter_shapes())
        checked_shapes(layer, "buffer_shapes", layer.buffer_shapes())
        names: Any = layer.counter_names()
        if not (isinstance(names, tuple | list) and all(isinstance(name, str) for name in names)):
            raise LayerError(_returned(layer, "counter_names", "a tuple of names such as ('num_steps',)", names))
        if layer.children():
            _check_own(layer)
        if takes_noise(layer) and type(layer).draw_noise is Layer.draw_noise:
            raise LayerError(f"{type(layer).__name__} has noise_shapes: it must define draw_noise(generator)")
        if type(layer).infer is Layer.infer:
            _check_evaluation(layer)


def takes_noise(layer: Layer) -> bool:
    """Whether the layer, without its children, takes random numbers."""
    return type(layer).noise_shapes is not Layer.noise_shapes


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
    shapes = checked_shapes(layer, "input_shapes", layer.input_shapes(input_shape))
    children = layer.children()
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


def checked_output(layer: Layer, output: Any) -> Array:
    """The array that `infer` returned. Raises LayerError for anything else."""
    if not hasattr(output, "shape"):
        raise LayerError(_returned(layer, "infer", "the output, an array", output))
    result: Array = output
    return result


def _check_evaluation(layer: Layer) -> None:
    """Raise LayerError where evaluation would run a forward that is for training only: its own or a child's."""
    name = type(layer).__name__
    if takes_noise(layer):
        raise LayerError(
            f"{name} has noise_shapes: it must define infer(input), or evaluation would take the random numbers of the "
            "last training step"
        )
    for key, inner in layer.descendants():
        if takes_noise(inner) or not (inner.children() or type(inner).infer is Layer.infer):
            raise LayerError(
                f"{name} is made of layers of which {key} ({type(inner).__name__}) evaluates otherwise than it trains: "
                "it must define infer(input), which runs theirs"
            )


def _check_own(composite: Layer) -> None:
    kinds = {"parameter_shapes": "parameters", "buffer_shapes": "buffers", "counter_names": "buffers"}
    for method, kind in kinds.items():
        if getattr(composite, method)() != getattr(Layer, method)(composite):
            name = type(composite).__name__
            raise LayerError(f"{name} is made of layers and has {kind} of its own: give them a layer of their own")


def _returned(layer: Layer, method: str, wanted: str, returned: object) -> str:
    return f"{type(layer).__name__}.{method} must return {wanted}, not {returned!r}"
