"""Which model a layer is in: a layer has one place, because its memory lies in one model."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakValueDictionary

from nn_manual.layers.base import Layer
from nn_manual.layers.composite import descendants

#: The model that each layer is in, by the layer's id. A model that nobody holds any more sets its layers free. As long
#: as it lives, it keeps them alive, so no other object can have the id.
_OWNERS: WeakValueDictionary[int, Layer] = WeakValueDictionary()


def own(model: Layer) -> None:
    """Make a model the owner of its layers. Layers of a model that stands inside this one belong to the inner model."""
    for _, layer in descendants(model):
        _OWNERS.setdefault(id(layer), model)


def check_types(layers: Sequence[object]) -> None:
    """Raise TypeError for what is no layer."""
    for index, layer in enumerate(layers):
        if not isinstance(layer, Layer):
            raise TypeError(f"layer {index} is {layer!r}, not a Layer")


def check_places(model: Layer) -> None:
    """Raise ValueError for a layer that stands in two places, whatever it stands in, and for one that another model
    holds.
    """
    places: dict[int, str] = {}
    for name, layer in descendants(model):
        first = places.setdefault(id(layer), name)
        if first != name:
            raise ValueError(
                f"layer {name} is the same object as layer {first}: their gradients would overwrite each other"
            )
    for name, layer in descendants(model):
        owner = _OWNERS.get(id(layer))
        if owner is not None and id(owner) not in places:
            raise ValueError(
                f"layer {name}, {type(layer).__name__}, is in another Sequential already, which would lose it: "
                "pass a new layer, or copy.deepcopy(layer)"
            )
