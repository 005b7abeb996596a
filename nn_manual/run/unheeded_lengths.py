"""Lengths in the data that layers don't heed: said before the first step."""

from __future__ import annotations

from collections.abc import Iterator

from nn_manual import layers
from nn_manual.layers import Layer
from nn_manual.model import Sequential

COUNTS = "padding counts as other numbers do"


def note_of_lengths(model: Sequential) -> str:
    """Which layers count padding as they count other numbers, though a layer of another class would heed lengths; or
    that no layer at all heeds them. Empty where there is nothing to say.
    """
    found = list(_plain("", model))
    if not found:
        return "" if model.lengths_heeded_by else f"note: no layer heeds the lengths in the data: {COUNTS}"
    names = ", ".join(f"{name} ({type(layer).__name__})" for name, layer in found)
    others = ", ".join(dict.fromkeys(_padded(layer) for _, layer in found))
    return f"note: the lengths in the data aren't heeded by {names}: {COUNTS} there. {others} would heed them"


def _padded(layer: Layer) -> str:
    """The name of the class that computes the same with lengths; empty if there is none."""
    name = f"Padded{type(layer).__name__}"
    return name if getattr(layers, type(layer).__name__, None) is type(layer) and hasattr(layers, name) else ""


def _plain(name: str, layer: Layer) -> Iterator[tuple[str, Layer]]:
    """The layers with such a class, by their names in the model. What one of them is made of isn't among them."""
    if _padded(layer):
        yield name, layer
        return
    for key, child in layer.children().items():
        yield from _plain(f"{name}.{key}".lstrip("."), child)
