"""Layers that are made of layers, and walks through them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from nn_manual.arrays import Shape
from nn_manual.defaults import default
from nn_manual.layers.base import BASE_OF_METHOD, Layer
from nn_manual.layers.with_buffers import LayerWithBuffers


class Composite(Layer):
    """A layer that is made of other layers.

    It has them in fields of type Layer and list[Layer]: `children()` has them by their names. Its `forward` and
    `backward` run theirs, each once. It has no parameters and no buffers but theirs. Its `reference(input, *children)`
    puts torch's versions of them together: each child is a function there, in the order of `children()`; noise of its
    own follows as keyword arguments. If evaluation puts them together in another way, `infer_reference(input,
    *children)` does so.

    If one of the layers evaluates otherwise than it trains, the composite must define `infer`, which runs theirs. If
    one has buffers, it must define `update_buffers(saved)`, which calls theirs with what each of them saved.
    """

    @default
    def input_shapes(self, input_shape: Shape) -> dict[str, Shape]:
        """The shape of each child's input, by the child's name: by default the shape of the layer's own input. Only a
        composite in which a child, or a child of a child, has noise or heeds lengths needs another one.
        """
        return dict.fromkeys(self.children(), input_shape)


BASE_OF_METHOD["input_shapes"] = Composite


def descendants(layer: Layer) -> Iterator[tuple[str, Layer]]:
    """Each child of a layer, followed by its own descendants: "0", "0.weight_norm", "1", ..."""
    for name, child in layer.children().items():
        yield name, child
        for inner_name, inner in descendants(child):
            yield f"{name}.{inner_name}", inner


def buffer_shapes(layer: Layer) -> dict[str, Shape]:
    """Name and shape of each buffer of the model's dtype that a layer has; for a composite, "child.buffer"."""
    own = layer.buffer_shapes() if isinstance(layer, LayerWithBuffers) else {}
    inside = {name: buffer_shapes(child) for name, child in layer.children().items()}
    return own | {f"{name}.{buffer}": shape for name, shapes in inside.items() for buffer, shape in shapes.items()}


def counter_names(layer: Layer) -> tuple[str, ...]:
    """The names of the buffers that are counts; for a composite, "child.count"."""
    own = layer.counter_names() if isinstance(layer, LayerWithBuffers) else ()
    inside = {name: counter_names(child) for name, child in layer.children().items()}
    return tuple(dict.fromkeys((*own, *(f"{name}.{count}" for name, counts in inside.items() for count in counts))))


def buffer_names(layer: Layer) -> tuple[str, ...]:
    """The names of all buffers, the counts last."""
    return (*buffer_shapes(layer), *counter_names(layer))


def has_buffers(layer: Layer) -> bool:
    """Whether a layer, or one inside it, has a buffer."""
    return bool(buffer_names(layer))


def shapes_of_chain(layers: Mapping[str, Layer], input_shape: Shape) -> dict[str, Shape]:
    """The shape of each layer's input, if it is the output of the layer before it."""
    shapes = {}
    for name, layer in layers.items():
        shapes[name] = input_shape
        input_shape = layer.output_shape(input_shape)
    return shapes


def check_are_layers(name: str, layers: Iterable[object]) -> None:
    """Raise TypeError, which begins with the name of the field, for one of several things that is no layer."""
    for index, layer in enumerate(layers):
        if not isinstance(layer, Layer):
            found = f"the class {layer.__name__}" if isinstance(layer, type) else type(layer).__name__
            raise TypeError(f"{name}.{index} must be a layer, not {found}")
