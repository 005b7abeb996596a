"""The random numbers of a model's layers: drawn before forward, at addresses that the seed and the step determine."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from nn_manual.arrays import Shape
from nn_manual.defaults import defines
from nn_manual.errors import LayerError
from nn_manual.layers.base import Layer
from nn_manual.layers.composite import descendants
from nn_manual.layers.with_lengths import LENGTHS
from nn_manual.layers.with_noise import LayerWithNoise, draws
from nn_manual.model.contract import checked_input_shapes, checked_shapes
from nn_manual.streams import RowGenerator


class Noise:
    """Sets `noise` of each layer in a model that takes random numbers. These layers are numbered in the model's order.
    """

    def __init__(self, model: Layer) -> None:
        #: Whether there is such a layer.
        self.is_needed = any(draws(layer) for _, layer in descendants(model))
        self._inputs: dict[Shape, list[tuple[LayerWithNoise, Shape]]] = {}
        self._bound: tuple[Any, ...] = ()

    def bind(
        self, model: Layer, input_shape: Shape, dtype: np.dtype[Any], *, seed: int, step: int, first_row: int = 0
    ) -> None:
        """Give each layer its random numbers for a forward on an input of this shape, which begins at the row
        `first_row` of the batch. The arrays are new, so what an earlier forward saved stays as it is. The numbers
        depend on nothing but the arguments. Raises LayerError for noise that is called as the lengths of sequences are.
        """
        wanted = (input_shape, dtype, seed, step, first_row)
        if not self.is_needed or wanted == self._bound:
            return
        if input_shape not in self._inputs:
            self._inputs[input_shape] = list(_inputs(model, input_shape))
        for number, (layer, shape) in enumerate(self._inputs[input_shape]):
            shapes = checked_shapes(layer, "noise_shapes", layer.noise_shapes(shape))
            if LENGTHS in shapes:
                label = f"{type(layer).__name__}.noise_shapes"
                raise LayerError(f"{label}: no noise can be called {LENGTHS}: these are data")
            layer.noise = SimpleNamespace(**{name: np.zeros(size, dtype) for name, size in shapes.items()})
            num_before = first_row * shape[0] // input_shape[0] if first_row else 0  # a layer may have more rows
            layer.draw_noise(RowGenerator(seed, number, step, first_row=num_before))
        self._bound = wanted


def _inputs(layer: Layer, input_shape: Shape) -> Iterator[tuple[LayerWithNoise, Shape]]:
    """The layers that take noise, each with the shape of its input."""
    if isinstance(layer, LayerWithNoise) and layer.draws:
        yield layer, input_shape
    children = layer.children()
    if any(draws(inner) for _, inner in descendants(layer)):
        for name, shape in checked_input_shapes(layer, input_shape).items():
            try:
                yield from _inputs(children[name], shape)
            except ValueError as misfit:
                if defines(layer, "input_shapes"):
                    raise
                raise LayerError(
                    f"{type(layer).__name__} has no input_shapes(input_shape), so {name} counts as getting its input's "
                    f"shape {input_shape}, which doesn't fit: {misfit}"
                ) from misfit
