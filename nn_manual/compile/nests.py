"""Nests of loops: what they read and write, and when two loops may become one.

A program is a list of items. An item is a loop, whose body is such a list again, or a leaf, which computes. Each access
of a leaf says by how many bytes each loop around it moves it, the outermost loop first. Two loops may become one if no
iteration of the second uses what another iteration of the first has written, and the other way round.

The file is long because fusing asks many questions of one structure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from nn_manual.trace.trace import SourcePlace, TracedOperation

#: (extent, stride in bytes) for each loop, the outermost first.
Dims: TypeAlias = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Access:
    """The elements that a leaf uses in one iteration of all loops around it. They begin at `offset` bytes; each loop
    moves them as its entry in `dims` says. `span` has the dimensions that the leaf goes through by itself. With
    `index`, an array of indices moves them: by the index at the access `index[0]`, times `index[1]` bytes. A negative
    index counts from the end of `index[2]` elements.
    """

    storage: int
    offset: int
    dims: Dims
    dtype: np.dtype[Any]
    span: Dims = ()
    index: tuple[Access, int, int] | None = None

    def interval(self, level: int = 0) -> tuple[int, int]:
        """The interval of bytes that is used while the loops before `level` stand still: the first byte, and the end.
        """
        start = stop = 0
        for extent, stride in (*self.dims[level:], *self.span):
            start, stop = start + min(0, (extent - 1) * stride), stop + max(0, (extent - 1) * stride)
        return self.offset + start, self.offset + stop + self.dtype.itemsize

    def split(self, level: int, inner: int) -> Access:
        """The access with the loop at `level` split into two, the inner one with this extent."""
        extent, stride = self.dims[level]
        dims = (*self.dims[:level], (extent // inner, stride * inner), (inner, stride), *self.dims[level + 1 :])
        index = self.index and (self.index[0].split(level, inner), *self.index[1:])
        return replace(self, dims=dims, index=index)

    @property
    def strides(self) -> tuple[int, ...]:
        """The strides of the loops."""
        return tuple(stride for _, stride in self.dims)

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for accesses that use the same elements in the same iteration, however many loops are around them."""
        strides = list(self.strides)
        while strides and not strides[-1]:
            strides.pop()
        index = self.index and (self.index[0].key, self.index[1])
        return self.storage, self.offset, tuple(strides), self.dtype, self.span, index


@dataclass(frozen=True)
class Leaf:
    """A computation that writes `output` and reads `inputs`."""

    output: Access
    inputs: tuple[Access, ...]
    operation: TracedOperation

    @property
    def accesses(self) -> tuple[Access, ...]:
        """All accesses, those of indices included."""
        every = (self.output, *self.inputs)
        return (*every, *(access.index[0] for access in every if access.index))

    @property
    def place(self) -> SourcePlace:
        """The place of its formula."""
        return self.operation.place

    def split(self, level: int, inner: int) -> Leaf:
        """The leaf with the loop at `level` split into two, the inner one with this extent."""
        inputs = tuple(access.split(level, inner) for access in self.inputs)
        return replace(self, output=self.output.split(level, inner), inputs=inputs)


@dataclass(frozen=True)
class Compute(Leaf):
    """Computes a number in each iteration. `function` is NumPy's name of the function. `literals` are the arguments
    that aren't arrays, by position. `dtypes` are the dtypes of the operands, then of the result. With `reduction` the
    result is combined with the output, which is set to `initial` before the loops that the output doesn't move with.
    """

    function: str = ""
    literals: tuple[tuple[int, Any], ...] = ()
    dtypes: tuple[np.dtype[Any], ...] = ()
    reduction: str = ""
    initial: Any = None

    @property
    def first_reduced(self) -> int:
        """The level of the outermost loop that doesn't move the output."""
        return next(i for i, (_, stride) in enumerate(self.output.dims) if not stride)

    @property
    def is_heavy(self) -> bool:
        """Whether the function has so many operations that its loop should run on vectors."""
        return self.function in HEAVY


#: Functions of many operations each.
HEAVY = frozenset({"exp", "expm1", "log", "log1p", "tanh", "expit", "ndtr", "erf", "erfc", "sin", "cos"})


@dataclass(frozen=True)
class Product(Leaf):
    """output = inputs[0] @ inputs[1]. Each access spans a matrix, (rows, columns)."""


@dataclass(frozen=True)
class External(Leaf):
    """An operation that NumPy itself runs. Each access spans a whole view. `reason` says why it has no compiled form.
    """

    reason: str = ""


@dataclass(frozen=True)
class Fence(Leaf):
    """Here the step ends if its loss or its gradient isn't finite. Before it, nothing is written that stays, except the
    gradient.
    """


@dataclass
class Loop:
    """`body` for each of `extent` iterations."""

    extent: int
    body: list[Item] = field(default_factory=list)


Item: TypeAlias = Loop | Leaf


def leaves_of(item: Item) -> Iterator[Leaf]:
    """All leaves of an item, in their order."""
    if isinstance(item, Loop):
        for inner in item.body:
            yield from leaves_of(inner)
    else:
        yield item


def nest(leaf: Leaf) -> Item:
    """The leaf inside its loops."""
    item: Item = leaf
    for extent, _ in reversed(leaf.output.dims):
        item = Loop(extent, [item])
    return item


def split(item: Item, level: int, inner: int) -> Item:
    """The item with the loop at `level` around it split into two: the accesses in it change."""
    if isinstance(item, Leaf):
        return item.split(level, inner)
    return Loop(item.extent, [split(each, level, inner) for each in item.body])


def split_loop(loop: Loop, level: int, inner: int) -> Loop:
    """The loop, which stands at `level`, split into two."""
    body = [split(each, level, inner) for each in loop.body]
    return Loop(loop.extent // inner, [Loop(inner, body)])


def _overlap(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return a[0] < b[1] and b[0] < a[1]


def _pairs(first: Item, second: Item) -> Iterator[tuple[Access, Access]]:
    """Pairs of accesses, one of each item, that use the same memory and of which one writes."""
    written = [leaf.output for leaf in leaves_of(first)]
    touched = [access for leaf in leaves_of(first) for access in leaf.accesses]
    for leaf in leaves_of(second):
        for access in leaf.accesses:
            for own in touched if access is leaf.output else written:
                if own.storage == access.storage and _overlap(own.interval(), access.interval()):
                    yield own, access


def conflict(first: Item, second: Item, level: int) -> bool:
    """Whether the order of the items matters while the loops before `level` stand still."""
    for a, b in _pairs(first, second):
        if a.strides[:level] != b.strides[:level] or _overlap(a.interval(level), b.interval(level)):
            return True
    return False


def may_fuse(first: Item, second: Item, level: int) -> bool:
    """Whether the loops at `level` around both, which have one extent, may become one: no iteration of one item uses
    what another iteration of the other item writes.
    """
    return all(_is_local(a, b, level) for a, b in _pairs(first, second))


def may_share(a: Access, b: Access, level: int) -> bool:
    """Whether one iteration of the loop at `level` may use what another one uses, at these two accesses."""
    return a.storage == b.storage and _overlap(a.interval(), b.interval()) and not _is_local(a, b, level)


def _is_local(a: Access, b: Access, level: int) -> bool:
    if a.strides[: level + 1] != b.strides[: level + 1]:
        return False
    inner_a, inner_b = a.interval(level + 1), b.interval(level + 1)
    stride = abs(a.strides[level])
    if not stride:
        return not _overlap(inner_a, inner_b)
    if a.dims == b.dims and a.offset == b.offset and not a.span and not b.span and 0 not in a.strides:
        return True  # each iteration has its own elements
    return inner_a[1] - stride <= inner_b[0] and inner_b[1] - stride <= inner_a[0]


def collapse(item: Item, level: int = 0) -> Item:
    """The item with one loop in the place of two, where the outer holds only the inner and no access needs both."""
    if isinstance(item, Leaf):
        return item
    body = [collapse(each, level + 1) for each in item.body]
    item = Loop(item.extent, body)
    if len(body) == 1 and isinstance(body[0], Loop):
        inner = body[0]
        leaves = list(leaves_of(inner))
        accesses = [access for leaf in leaves for access in leaf.accesses]
        if all(access.dims[level][1] == access.dims[level + 1][1] * inner.extent for access in accesses):
            return Loop(item.extent * inner.extent, [_merge(each, level) for each in inner.body])
    return item


def _merge(item: Item, level: int) -> Item:
    if isinstance(item, Loop):
        return Loop(item.extent, [_merge(each, level) for each in item.body])
    inputs = tuple(_merged(access, level) for access in item.inputs)
    return replace(item, output=_merged(item.output, level), inputs=inputs)


def _merged(access: Access, level: int) -> Access:
    (outer, _), (inner, stride) = access.dims[level : level + 2]
    dims = (*access.dims[:level], (outer * inner, stride), *access.dims[level + 2 :])
    index = access.index and (_merged(access.index[0], level), *access.index[1:])
    return replace(access, dims=dims, index=index)
