"""Which loops become one."""

from __future__ import annotations

from typing import Any

import numpy as np

from nn_manual.compile.fusion import fused
from nn_manual.compile.nests import Access, Compute, Item, Loop
from nn_manual.trace.trace import SourcePlace, TracedOperation, View

FLOAT = np.dtype(np.float32)


def leaf(source: int, target: int, *extents: int) -> Compute:
    """A leaf that doubles a contiguous array of these extents. All leaves are of one layer's formula."""
    strides = [4 * int(np.prod(extents[i + 1 :])) for i in range(len(extents))]
    dims = tuple(zip(extents, strides, strict=True))
    view = View(target, 0, extents, tuple(strides), FLOAT)
    place = SourcePlace("0 (Layer)", "forward", __file__, 1)
    operation = TracedOperation("multiply", np.multiply, (view, 2.0), {}, view, place)
    accesses = [Access(storage, 0, dims, FLOAT) for storage in (target, source)]
    return Compute(accesses[0], (accesses[1],), operation, "multiply", ((1, 2.0),), (FLOAT, FLOAT, FLOAT))


def extents_of(item: Item) -> Any:
    """The extents of nested loops; None for a leaf."""
    return (item.extent, [extents_of(each) for each in item.body]) if isinstance(item, Loop) else None


def test_inner_loops_of_other_extents_are_cut_only_where_they_share_data() -> None:
    apart = fused([leaf(1, 2, 4, 64, 64), leaf(3, 4, 4, 32, 64)])
    assert list(map(extents_of, apart)) == [(4, [(64, [(64, [None])]), (32, [(64, [None])])])]
    shared = fused([leaf(1, 2, 4, 64, 32), leaf(2, 3, 4, 32, 64)])
    assert list(map(extents_of, shared)) == [(4, [(32, [(2, [(32, [None, None])])])])]


def test_inner_loops_of_one_extent_become_one() -> None:
    (loop,) = fused([leaf(1, 2, 4, 64), leaf(3, 4, 4, 64)])
    assert extents_of(loop) == (4, [(64, [None, None])])
