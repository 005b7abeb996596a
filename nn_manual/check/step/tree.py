"""The tree of a model's layers as a step runs through it.

A Sequential is transparent: what it holds runs as if it stood in its place. So a model is a chain of layers. Some of
them are composites, each of whose children is a chain again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from nn_manual.layers.base import Layer
from nn_manual.layers.composite import buffer_names
from nn_manual.model import Sequential


@dataclass(frozen=True)
class Item:
    """A layer in a chain, by its name in the model; of a composite, the chain of each child, by the child's name."""

    name: str
    layer: Layer
    children: dict[str, list[Item]] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """How the layer is called in a report."""
        return f"{self.name} ({type(self.layer).__name__})"

    @cached_property
    def own_parameters(self) -> tuple[str, ...]:
        """The names of the parameters in the layer, without its children's."""
        return () if self.children else tuple(self.layer.parameter_shapes())

    @property
    def own_buffers(self) -> tuple[str, ...]:
        """The names of the buffers in the layer, without its children's."""
        return () if self.children else buffer_names(self.layer)


def chain_of(layer: Layer, name: str = "") -> list[Item]:
    """A layer as a chain; a Sequential is the chain of the layers in it."""
    if isinstance(layer, Sequential):
        return [item for key, child in layer.children().items() for item in chain_of(child, _inside(name, key))]
    children = {_inside(name, key): chain_of(child, _inside(name, key)) for key, child in layer.children().items()}
    return [Item(name, layer, children)]


def walk(chain: Iterable[Item]) -> Iterator[Item]:
    """Every layer of a chain, a composite after its children."""
    for item in chain:
        for children in item.children.values():
            yield from walk(children)
        yield item


def in_order(chain: list[Item], places: Mapping[str, int]) -> list[Item]:
    """The chain, the children of each composite in the order in which they ran: `places` has the number of each layer,
    by its name. A child that holds no layer comes first.
    """
    return [
        Item(item.name, item.layer, dict(sorted(children.items(), key=lambda child: _place(child[1], places))))
        for item in chain
        for children in [{name: in_order(inner, places) for name, inner in item.children.items()}]
    ]


def _place(chain: list[Item], places: Mapping[str, int]) -> int:
    return places[chain[0].name] if chain else -1


def _inside(name: str, key: str) -> str:
    return f"{name}.{key}" if name else key
