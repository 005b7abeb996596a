"""The other shapes that a layer takes: a formula may be right for even sizes and wrong for odd ones."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping

import numpy as np

from nn_manual.arrays import Shape
from nn_manual.check.catalogue.input_kinds import draw
from nn_manual.errors import raise_if_nobodys_fault
from nn_manual.layers import Layer
from nn_manual.model import Sequential

#: How much larger each dimension is made: an odd size becomes even and an even one odd, and then another of its kind.
LARGER = (1, 2)


def other_shapes(layer: Layer, input_shape: Shape, dtype: str) -> Iterator[Shape]:
    """Shapes like `input_shape` in which every dimension that may vary has another size: all have 1 more, all have 2
    more, and one after the other has 1, but for the batch. A one-dimensional shape has none.

    A dimension may vary where the layer takes a larger one and makes of it what `output_shape` says: a layer need not
    check a size that its parameters fix. Where the layer doesn't take all larger dimensions at once, it gets each
    alone.
    """
    if len(input_shape) < 2:
        return
    wanted = [{axis: size + more for axis, size in enumerate(input_shape)} for more in LARGER]
    varying = {
        axis
        for sizes in wanted
        for axis, size in sizes.items()
        if _takes(layer, _with(input_shape, {axis: size}), dtype, as_said=True)
    }
    wanted += [{axis: 1} for axis, size in enumerate(input_shape) if axis and size > 1]
    for sizes in wanted:
        alone = {axis: size for axis, size in sizes.items() if axis in varying}
        alone = {axis: size for axis, size in alone.items() if _takes(layer, _with(input_shape, {axis: size}), dtype)}
        together = _with(input_shape, alone)
        if len(alone) > 1 and not _takes(layer, together, dtype):
            yield from (_with(input_shape, {axis: size}) for axis, size in alone.items())
        elif alone:
            yield together


def _with(shape: Shape, sizes: Mapping[int, int]) -> Shape:
    return tuple(sizes.get(axis, size) for axis, size in enumerate(shape))


def _takes(layer: Layer, shape: Shape, dtype: str, *, as_said: bool = False) -> bool:
    """Whether the layer makes an output of a random input of this shape, all of it numbers; with `as_said`, whether
    that has the shape that `output_shape` says.
    """
    input = draw("random", shape, dtype, np.random.default_rng(0), layer.domain)
    try:
        said = layer.output_shape(shape)
        with np.errstate(all="ignore"):
            model = Sequential(copy.deepcopy(layer), dtype=dtype)
            output, saved = model.forward(input)
            model.update_buffers(saved)  # it may be a buffer alone that fixes a size
    except BaseException as error:  # what doesn't fit may raise anything
        raise_if_nobodys_fault(error)
        return False
    return output.size > 0 and bool(np.isfinite(output).all()) and not (as_said and output.shape != said)
