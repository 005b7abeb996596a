"""The shape of a layer's input before the data is seen: a Linear says how many features there are, and no more."""

from __future__ import annotations

from typing import Any

from nn_manual.arrays import Shape
from nn_manual.errors import raise_if_nobodys_fault
from nn_manual.layers import Layer

#: Stands for a dimension between the batch and the features, as the times of a sequence.
SOME = 3


class GuessedShape(tuple[int, ...]):
    """(batch, features) of an input that may have more dimensions between the two."""

    __slots__ = ()


def output_shape_of(layer: Layer, shape: Shape) -> Any:
    """What the layer's `output_shape` returns; of a guessed shape a guessed one, or None where it isn't known: where
    the layer takes only an input of more dimensions, or doesn't leave them as they are. Raises what `output_shape`
    raises.
    """
    if not isinstance(shape, GuessedShape):
        return layer.output_shape(shape)
    of_more = _of_more_dimensions(layer, shape)
    try:
        found: Any = layer.output_shape(tuple(shape))
    except ValueError:
        if of_more is None:
            raise
        return None
    if not isinstance(found, tuple) or of_more is None:  # then the input has no more dimensions
        return found
    return GuessedShape(found) if of_more == (*found[:1], SOME, *found[1:]) else None


def shape_behind(layer: Layer, shape: Shape | None, batch_size: int) -> Shape | None:
    """What a layer would put out if its input, whose shape isn't known or doesn't fit, had the features that it takes;
    None if it doesn't say how many these are.
    """
    in_features = getattr(layer, "in_features", None)
    if in_features is None:
        return None
    if shape is None or isinstance(shape, GuessedShape):
        return GuessedShape(layer.output_shape((batch_size, in_features)))
    return layer.output_shape((*shape[:-1], in_features))


def _of_more_dimensions(layer: Layer, shape: Shape) -> Any:
    """The shape of the output for an input of one dimension more; None if the layer doesn't take it."""
    try:
        return layer.output_shape((shape[0], SOME, *shape[1:]))
    except Exception as error:  # a user's own layer may raise anything
        raise_if_nobodys_fault(error)
        return None
