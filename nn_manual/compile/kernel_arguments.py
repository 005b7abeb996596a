"""The pointers and sizes that a kernel is called with, and their names in its text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nn_manual.compile.nests import Access, Leaf
from nn_manual.compile.scalar import BOOL, cast, code

#: The indices of loops, the outermost first.
INDICES = "ijklmnpqrs"
#: Sizes up to this one stand in the text: LLVM unrolls a loop of so few iterations, and runs the loop around it on
#: vectors. With 10 or 16 iterations this takes longer than the loop itself on vectors.
LARGEST_WRITTEN = 8


class Pointer(NamedTuple):
    """An argument that points to a storage, `offset` bytes from its beginning."""

    storage: int
    offset: int
    dtype: str


class KernelArguments:
    """The arguments of a kernel that consists of `leaves`; each gets its name when the text needs it for the first
    time. `names` says what the text calls a storage. `loaded` gains the storages that the kernel reads from memory.
    """

    def __init__(self, leaves: Sequence[Leaf], names: dict[int, str], loaded: set[int]) -> None:
        self._names, self._loaded = names, loaded
        self._clusters = _clusters(leaves)
        self._counts: dict[str, int] = {}
        #: The names of pointers, and those of sizes.
        self.pointers: dict[Pointer, str] = {}
        self.integers: dict[int, str] = {}

    def value(self, access: Access) -> str:
        """The element of an access, read from memory."""
        self._loaded.add(access.storage)
        text = self.at(access)
        return f"({text} != 0)" if access.dtype == BOOL else text

    def at(self, access: Access) -> str:
        """The element of an access, as it stands on both sides of an assignment."""
        pointer, index = self._pointer(access)
        return f"{pointer}[{index}]"

    def pointer_to(self, access: Access) -> str:
        """A pointer to the element of an access."""
        pointer, index = self._pointer(access)
        return f"shifted({pointer}, {index})" if index != "0" else pointer

    def integer(self, value: int) -> str:
        """The name of a size, or the number itself if it is small."""
        if 0 <= value <= LARGEST_WRITTEN:
            return str(value)
        if value not in self.integers:
            self.integers[value] = f"n{len(self.integers)}"
        return self.integers[value]

    def _pointer(self, access: Access) -> tuple[str, str]:
        """The name of the memory, and the index in it."""
        start = next(
            start for start, stop in self._clusters[access.storage] if start <= access.interval()[0] < stop
        )
        stored = "u1" if access.dtype == BOOL else code(access.dtype)
        pointer = Pointer(access.storage, start, stored)
        if pointer not in self.pointers:
            base = self._names.get(access.storage, "memory")
            self._counts[base] = self._counts.get(base, 0) + 1
            self.pointers[pointer] = f"{base}_{self._counts[base]}"
        size = access.dtype.itemsize
        terms = [self._term(INDICES[i], stride // size) for i, (_, stride) in enumerate(access.dims) if stride]
        if access.offset != start:
            terms.append(self.integer((access.offset - start) // size))
        if access.index is not None:
            index, stride, count = access.index
            at = cast(self.value(index), index.dtype, np.dtype(np.int64))
            terms.append(self._term(f"where({at} < 0, {at} + {self.integer(count)}, {at})", stride // size))
        return self.pointers[pointer], " + ".join(terms) or "0"

    def _term(self, index: str, count: int) -> str:
        return index if count == 1 else f"{index} * {self.integer(count)}"


def _clusters(leaves: Sequence[Leaf]) -> dict[int, list[tuple[int, int]]]:
    """For each storage, the intervals of bytes that are used. Intervals that overlap become one."""
    intervals: dict[int, list[tuple[int, int]]] = {}
    for leaf in leaves:
        for access in leaf.accesses:
            intervals.setdefault(access.storage, []).append(access.interval())
    for storage, its in intervals.items():
        joined: list[tuple[int, int]] = []
        for start, stop in sorted(set(its)):
            if joined and start < joined[-1][1]:
                joined[-1] = (joined[-1][0], max(stop, joined[-1][1]))
            else:
                joined.append((start, stop))
        intervals[storage] = joined
    return intervals
