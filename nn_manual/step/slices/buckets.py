"""Buckets: pieces of the gradient arena that travel as soon as backward has filled them."""

from __future__ import annotations

from typing import NamedTuple

from nn_manual.arrays import size_of
from nn_manual.model import Sequential

#: Elements of a bucket: 4 MiB in float32. docs/machines.md has the times of other sizes. A smaller bucket is on its way
#: earlier, but each one takes a call of its own.
BUCKET_SIZE = 1 << 20


class Bucket(NamedTuple):
    """Where it lies in the arena, and the number of the layer after whose backward it is filled. -1 stands for the end
    of backward, when the gradients of shared parameters are added up.
    """

    where: slice
    layer: int


def buckets_of(model: Sequential, size: int = BUCKET_SIZE) -> list[Bucket]:
    """The whole arena, its end first, as backward fills it."""
    starts = range((max(model.grad_arena.size, 1) - 1) // size * size, -1, -size)
    filled_by = [-1 if name in model.ties.names else int(name.partition(".")[0]) for name in model.parameter_shapes()]
    sizes = [size_of(shape) for shape in model.parameter_shapes().values()]
    buckets = []
    for start in starts:
        stop, first, layers = min(start + size, model.grad_arena.size), 0, []
        for layer, length in zip(filled_by, sizes, strict=True):
            if first < stop and first + length > start:
                layers.append(layer)
            first += length
        buckets.append(Bucket(slice(start, stop), min(layers)))
    return buckets
