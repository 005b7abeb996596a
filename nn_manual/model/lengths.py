"""The lengths of the sequences of a batch, given to the layers that heed them."""

from __future__ import annotations

from types import SimpleNamespace

from nn_manual.arrays import Array, Padded
from nn_manual.layers.base import Layer
from nn_manual.layers.composite import descendants
from nn_manual.layers.with_lengths import LENGTHS, LayerWithLengths


class Lengths:
    """Sets `noise.lengths` of each layer in a model that heeds lengths."""

    def __init__(self, model: Layer) -> None:
        self._layers = [layer for _, layer in descendants(model) if isinstance(layer, LayerWithLengths)]
        #: The class of the first such layer; empty if there is none.
        self.heeded_by = next((type(layer).__name__ for layer in self._layers), "")

    def check(self, input: Array | Padded) -> None:
        """Raise ValueError for an array without lengths, if a layer needs some."""
        if self.heeded_by and not isinstance(input, Padded):
            raise ValueError(f"{self.heeded_by} needs the length of each sequence: an input that is Padded")

    def array_of(self, input: Array | Padded) -> Array:
        """The array of an input. Its lengths go to the layers. Raises ValueError as `check` does."""
        self.check(input)
        if not isinstance(input, Padded):
            return input
        lengths = input.lengths.copy()
        lengths.setflags(write=False)  # a layer that wrote into them would change another's
        for layer in self._layers:
            own = vars(layer.noise) if hasattr(layer, "noise") else {}
            # A new namespace: what an earlier step has kept stays as it is.
            layer.noise = SimpleNamespace(**(own | {LENGTHS: lengths}))
        return input.array
