"""A forward that asks each layer whether it takes its input.

It must run, because only the code of a composite says what the composite gives to its children.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from nn_manual.arrays import Array, Padded, Shape
from nn_manual.errors import raise_if_nobodys_fault
from nn_manual.layers.base import Layer
from nn_manual.layers.composite import descendants
from nn_manual.layers.with_lengths import LayerWithLengths
from nn_manual.model import Sequential


class LayerMisfit(NamedTuple):
    """A layer that doesn't take its input: its name in the model, the shape of the input, and in words why not."""

    name: str
    shape: Shape
    words: str


class _Refused(Exception):  # noqa: N818 - says what happened; nobody else sees it
    def __init__(self, misfit: LayerMisfit) -> None:
        super().__init__(misfit.words)
        self.misfit = misfit


def first_misfit(model: Sequential, input: Array | Padded) -> LayerMisfit | None:
    """Run forward on `input` in a copy of the model, and return the first layer that doesn't take its input, or None.
    None also where a layer raises for another reason: the run itself tells more about that.
    """
    try:
        model = copy.deepcopy(model)
        for name, layer in descendants(model):
            if not isinstance(layer, Sequential):
                vars(layer)["forward"] = partial(_asked, name, layer, layer.forward, input.shape)
        model.forward(input)
    except _Refused as refused:
        return refused.misfit
    except BaseException as error:  # a user's own code may raise anything
        raise_if_nobodys_fault(error)
        return None
    return None


def _asked(
    name: str, layer: Layer, forward: Callable[[Array], tuple[Array, Any]], data_shape: Shape, input: Array
) -> tuple[Array, Any]:
    words = ""
    if isinstance(layer.domain, range) and input.dtype.kind == "f":
        words = f"{type(layer).__name__} takes integers alone, and what it gets is {input.dtype}"
    try:
        layer.output_shape(input.shape)
    except ValueError as error:
        words = words or str(error)
    if not words and isinstance(layer, LayerWithLengths) and (misfit := layer.misfit(input.shape, data_shape)):
        words = f"{type(layer).__name__} {misfit}"
    if words:
        raise _Refused(LayerMisfit(name, input.shape, words))
    return forward(input)
