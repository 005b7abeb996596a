"""Loops, what they read and write, and when two may be one.

The program is a list of items: loops, whose bodies are such lists again, and leaves, which compute. Each access of a
leaf says by how many bytes each loop around it moves it, outermost first. Two loops may become one if nothing that the
first leaves behind in an iteration is used by the second in another one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from nn_manual.trace.trace import SourcePlace, TracedOperation

#: Extents and strides in bytes, outermost first.
Dims: TypeAlias = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Access:
    """What one iteration of all loops around it touches: elements of a dtype at `offset` bytes, moved by `dims`, one
    for each loop; `span` are the dimensions that the leaf goes through by itself. `index` is where an array of indices
    decides: the element begins `index[0]` times `index[1]` bytes further, within the span.
    """

    storage: int
    offset: int
    dims: Dims
    dtype: np.dtype[Any]
    span: Dims = ()
    index: tuple[Access, int, int] | None = None

    def interval(self, level: int = 0) -> tuple[int, int]:
        """The bytes from the first to behind the last that is touched while the loops before `level` stand still."""
        start = stop = 0
        for extent, stride in (*self.dims[level:], *self.span):
            start, stop = start + min(0, (extent - 1) * stride), stop + max(0, (extent - 1) * stride)
        return self.offset + start, self.offset + stop + self.dtype.itemsize

    def split(self, level: int, inner: int) -> Access:
        """With a loop made two, of which the inner one has this extent."""
        extent, stride = self.dims[level]
        dims = (*self.dims[:level], (extent // inner, stride * inner), (inner, stride), *self.dims[level + 1 :])
        index = self.index and (self.index[0].split(level, inner), *self.index[1:])
        return replace(self, dims=dims, index=index)

    @property
    def strides(self) -> tuple[int, ...]:
        """Of the loops."""
        return tuple(stride for _, stride in self.dims)

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for those that touch the same at the same time, however many loops are around them."""
        strides = list(self.strides)
        while strides and not strides[-1]:
            strides.pop()
        index = self.index and (self.index[0].key, self.index[1])
        return self.storage, self.offset, tuple(strides), self.dtype, self.span, index


@dataclass(frozen=True)
class Leaf:
    """What computes: it writes `output` and reads `inputs`."""

    output: Access
    inputs: tuple[Access, ...]
    operation: TracedOperation

    @property
    def accesses(self) -> tuple[Access, ...]:
        """All, with those of indices."""
        every = (self.output, *self.inputs)
        return (*every, *(access.index[0] for access in every if access.index))

    @property
    def place(self) -> SourcePlace:
        """Where its formula is."""
        return self.operation.place

    def split(self, level: int, inner: int) -> Leaf:
        """With one of the loops around it made two."""
        inputs = tuple(access.split(level, inner) for access in self.inputs)
        return replace(self, output=self.output.split(level, inner), inputs=inputs)


@dataclass(frozen=True)
class Compute(Leaf):
    """A number for each iteration: `function` names what NumPy does with the inputs and `literals`, which are the
    arguments that are no arrays, by position; `dtypes` are those it computes in, the result's last. With `reduction`
    the result is combined with what was in the output, which starts as `initial`, before the first of the loops in
    `over` begins.
    """

    function: str = ""
    literals: tuple[tuple[int, Any], ...] = ()
    dtypes: tuple[np.dtype[Any], ...] = ()
    reduction: str = ""
    initial: Any = None

    @property
    def first_reduced(self) -> int:
        """The outermost loop that the output doesn't move with."""
        return next(i for i, (_, stride) in enumerate(self.output.dims) if not stride)

    @property
    def is_heavy(self) -> bool:
        """Whether it is worth a loop that runs on vectors."""
        return self.function in HEAVY


#: Functions of many operations each.
HEAVY = frozenset({"exp", "expm1", "log", "log1p", "tanh", "expit", "ndtr", "erf", "erfc", "sin", "cos"})


@dataclass(frozen=True)
class Product(Leaf):
    """output = inputs[0] @ inputs[1]: each access spans a matrix, (rows, columns)."""


@dataclass(frozen=True)
class External(Leaf):
    """An operation that NumPy runs itself; each access spans a whole view. `reason` says why."""

    reason: str = ""


@dataclass(frozen=True)
class Fence(Leaf):
    """Where the step ends early unless its loss and its gradient are finite: nothing that stays is written before."""


@dataclass
class Loop:
    """`body` for each of `extent` iterations."""

    extent: int
    body: list[Item] = field(default_factory=list)


Item: TypeAlias = Loop | Leaf


def leaves_of(item: Item) -> Iterator[Leaf]:
    """All that computes in an item, in its order."""
    if isinstance(item, Loop):
        for inner in item.body:
            yield from leaves_of(inner)
    else:
        yield item


def nest(leaf: Leaf) -> Item:
    """The leaf within its loops."""
    item: Item = leaf
    for extent, _ in reversed(leaf.output.dims):
        item = Loop(extent, [item])
    return item


def split(item: Item, level: int, inner: int) -> Item:
    """With the loop at `level`, of which this is one or a part, made two."""
    if isinstance(item, Leaf):
        return item.split(level, inner)
    return Loop(item.extent, [split(each, level, inner) for each in item.body])


def split_loop(loop: Loop, level: int, inner: int) -> Loop:
    """The loop itself, which stands at `level`, made two."""
    body = [split(each, level, inner) for each in loop.body]
    return Loop(loop.extent // inner, [Loop(inner, body)])


def _overlap(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return a[0] < b[1] and b[0] < a[1]


def _pairs(first: Item, second: Item) -> Iterator[tuple[Access, Access]]:
    """What both touch, where one of them writes."""
    written = [leaf.output for leaf in leaves_of(first)]
    touched = [access for leaf in leaves_of(first) for access in leaf.accesses]
    for leaf in leaves_of(second):
        for access in leaf.accesses:
            for own in touched if access is leaf.output else written:
                if own.storage == access.storage and _overlap(own.interval(), access.interval()):
                    yield own, access


def conflict(first: Item, second: Item, level: int) -> bool:
    """Whether their order counts, while the loops before `level` stand still."""
    for a, b in _pairs(first, second):
        if a.strides[:level] != b.strides[:level] or _overlap(a.interval(level), b.interval(level)):
            return True
    return False


def may_fuse(first: Item, second: Item, level: int) -> bool:
    """Whether the loops at `level` around both, of one extent, may be one: no iteration of the second needs what
    another one of the first has done, or the other way round.
    """
    return all(_is_local(a, b, level) for a, b in _pairs(first, second))


def _is_local(a: Access, b: Access, level: int) -> bool:
    if a.strides[: level + 1] != b.strides[: level + 1]:
        return False
    inner_a, inner_b = a.interval(level + 1), b.interval(level + 1)
    stride = abs(a.strides[level])
    if not stride:
        return not _overlap(inner_a, inner_b)
    if a.dims == b.dims and a.offset == b.offset and not a.span and not b.span and 0 not in a.strides:
        return True  # each element belongs to one iteration
    return inner_a[1] - stride <= inner_b[0] and inner_b[1] - stride <= inner_a[0]


def collapse(item: Item, level: int = 0) -> Item:
    """With one loop in the place of two, where the inner one is all that the outer one does and no access needs two."""
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
