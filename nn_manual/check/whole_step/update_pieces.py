"""Pieces of an optimizer's step: some of the parameters, which move by themselves.

A claim about a step holds each vector several times, in float64: some 90 bytes for each parameter of Adam's. So large
models are looked at one piece after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np

from nn_manual.arrays import Shape, size_of
from nn_manual.check.twin.optimizer_places import group_of
from nn_manual.defaults import defines
from nn_manual.model import Sequential
from nn_manual.optim import Optimizer
from nn_manual.optim.scheduling import settings_of

#: The most elements of a piece, but for a parameter that can't be cut. A claim about so many takes less than 100 MB.
#: Smaller models are one piece.
PIECE = 1 << 20


class Piece(NamedTuple):
    """Consecutive parameters by name, with their shapes, and where they lie in a flat vector. A part of a parameter has
    one dimension.
    """

    start: int
    shapes: Mapping[str, Shape]

    @property
    def where(self) -> slice:
        """Its part of a flat vector."""
        return slice(self.start, self.start + sum(map(size_of, self.shapes.values())))

    def parts(self, optimizer: Optimizer) -> list[Piece]:
        """The parts into which it may be cut further: of one parameter whose elements move by themselves, if the
        optimizer takes one with one dimension.
        """
        name, *others = self.shapes
        size = self.where.stop - self.start
        if size <= PIECE or others or not optimizer.is_elementwise or defines(optimizer, "reference"):
            return [self]
        if optimizer.misfit({name: (PIECE,)}):
            return [self]
        sizes = [min(PIECE, size - start) for start in range(0, size, PIECE)]
        return [Piece(self.start + i * PIECE, {name: (part,)}) for i, part in enumerate(sizes)]


def pieces(optimizer: Optimizer) -> Iterator[Piece]:
    """All parameters, in pieces of whole ones. Where a class has a `step` of its own, it may need all at once."""
    shapes = optimizer.model.parameter_shapes()
    if type(optimizer).step is not Optimizer.step:
        yield Piece(0, shapes)
        return
    start, size, own = 0, 0, dict[str, Shape]()
    for name, shape in shapes.items():
        if own and size + size_of(shape) > PIECE:
            yield Piece(start, own)
            start, size, own = start + size, 0, {}
        own[name] = shape
        size += size_of(shape)
    if own:
        yield Piece(start, own)


class PieceOfUpdate:
    """The step of these parameters alone: an optimizer with the same settings, and with the groups that have some of
    them. `members` are the numbers of its members in the whole optimizer, `sizes` are the parameters' sizes, and
    `tensors` says where their tensors stand among those of an update.
    """

    def __init__(self, piece: Piece, optimizer: Optimizer) -> None:
        self.where, self.sizes = piece.where, [*map(size_of, piece.shapes.values())]
        # Those of each vector stand together, and so do the parameters.
        names = list(optimizer.model.parameter_shapes())
        first, stop = names.index(next(iter(piece.shapes))), len(names) * (len(optimizer.vectors) + 1)
        self.tensors = [j for i in range(first, stop, len(names)) for j in range(i, i + len(piece.shapes))]
        groups = {name: group_of(optimizer, name) for name in piece.shapes}
        self.members = [0, *sorted({*groups.values()} - {0})]
        self.optimizer = on(optimizer, piece.shapes, optimizer.model.dtype, self.members[1:])
        #: What its reference depends on.
        self.form = tuple((shape, groups[name]) for name, shape in piece.shapes.items())


def on(optimizer: Optimizer, shapes: Mapping[str, Shape], dtype: np.dtype[Any], groups: Sequence[int]) -> Optimizer:
    """An optimizer with the same settings, on parameters of these shapes, with these of its groups, counted from 1."""
    parameters = cast(Sequential, _Parameters(optimizer.model, shapes, dtype))
    own = replace(optimizer, model=parameters, groups=[optimizer.groups[i - 1] for i in groups])
    for member, i in zip(own.members, (0, *groups), strict=True):
        vars(member).update(settings_of(optimizer.members[i]))  # as they are now
    return own


class _Parameters:
    """Some parameters and their gradients, for an optimizer to move. All else that a class may ask of its model is the
    model's.
    """

    def __init__(self, model: Sequential, shapes: Mapping[str, Shape], dtype: np.dtype[Any]) -> None:
        self._model, self._shapes, self.dtype = model, shapes, dtype
        size = sum(map(size_of, shapes.values()))
        # Whoever needs the values copies them here: zeros take no memory until then.
        self.param_arena, self.grad_arena = np.zeros(size, dtype), np.zeros(size, dtype)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def parameter_shapes(self) -> Mapping[str, Shape]:
        """As the model's."""
        return self._shapes
