"""The lengths of the sequences of a batch, given to the layers that heed them."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

from nn_manual.arrays import Array, Padded, Shape
from nn_manual.layers.base import Layer
from nn_manual.layers.composite import descendants
from nn_manual.layers.with_lengths import LENGTHS, LayerWithLengths
from nn_manual.model.contract import checked_input_shapes

#: So many sequences stand for any number of them: batch normalization takes no single one.
NUM_SEQUENCES = 2


class Lengths:
    """Sets `noise.lengths` of each layer in a model that heeds lengths. It keeps no reference to the model, which frees
    its layers for another one when it is no longer used.
    """

    def __init__(self, model: Layer) -> None:
        self._layers = {name: layer for name, layer in descendants(model) if isinstance(layer, LayerWithLengths)}
        #: The first such layer, as "1 (PaddedLSTM)"; empty if there is none.
        self.heeded_by = next((f"{name} ({type(layer).__name__})" for name, layer in self._layers.items()), "")
        self._misfits: dict[Shape, tuple[str, str] | None] = {}

    def check(self, model: Layer, input: Array | Padded) -> None:
        """Raise ValueError for an array without lengths, if a layer needs some, and where a layer gets other times than
        those of the input, as `misfit` says.
        """
        if not self.heeded_by:
            return
        if not isinstance(input, Padded):
            raise ValueError(f"{self.heeded_by} needs the length of each sequence: an input that is Padded")
        if found := self.misfit(model, input.shape):
            name, words = found
            raise ValueError(f"{name} ({type(self._layers[name]).__name__}) {words}")

    def misfit(self, model: Layer, input_shape: Shape) -> tuple[str, str] | None:
        """The name of the first layer that heeds lengths and doesn't get the sequences and times of an input of this
        shape, and what it gets, in words; None if there is none. Whether a batch's sequences are short doesn't matter.
        """
        shape = (NUM_SEQUENCES, *input_shape[1:])
        if shape not in self._misfits:
            self._misfits[shape] = _find_misfit(model, shape)
        return self._misfits[shape]

    def array_of(self, model: Layer, input: Array | Padded) -> Array:
        """The array of an input. Its lengths go to the layers. Raises ValueError as `check` does."""
        self.check(model, input)
        if not isinstance(input, Padded):
            return input
        lengths = input.lengths.copy()
        lengths.setflags(write=False)  # a layer that wrote into them would change another's
        for layer in self._layers.values():
            own = vars(layer.noise) if hasattr(layer, "noise") else {}
            # A new namespace: what an earlier step has kept stays as it is.
            layer.noise = SimpleNamespace(**(own | {LENGTHS: lengths}))
        return input.array


def _find_misfit(model: Layer, shape: Shape) -> tuple[str, str] | None:
    try:
        found = ((name, layer.misfit(own, shape)) for name, layer, own in _inputs("", model, shape))
        return next(((name, words) for name, words in found if words), None)
    except ValueError:  # a layer doesn't take its input: who runs it is told so
        return None


def _inputs(name: str, layer: Layer, input_shape: Shape) -> Iterator[tuple[str, LayerWithLengths, Shape]]:
    """The layers that heed lengths, each with its name in the model and the shape of its input."""
    if isinstance(layer, LayerWithLengths):
        yield name, layer, input_shape
    if any(isinstance(inner, LayerWithLengths) for _, inner in descendants(layer)):
        children = layer.children()
        for key, shape in checked_input_shapes(layer, input_shape).items():
            yield from _inputs(f"{name}.{key}".lstrip("."), children[key], shape)
