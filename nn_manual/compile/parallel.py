"""Loops whose iterations may run on several threads, and in what pieces.

Each iteration has elements of its own, and each sum is made within one iteration, in its order. So the bits don't
depend on the number of threads.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from nn_manual.compile.kernel_arguments import LARGEST_WRITTEN
from nn_manual.compile.nests import Compute, External, Fence, Item, Leaf, Loop, Product, leaves_of, may_share
from nn_manual.compile.own_products import Factors, grain

#: A loop with less work runs on one thread. Work is counted in simple operations on elements of vectors. With a quarter
#: of it, the step of the 784-128-10 net takes 1.03 times as long on 2 threads, and with four times as much 1.25 times.
LEAST_WORK = 1 << 18
#: What a function of many operations counts, such as exp.
HEAVY_WORK = 12
#: So many multiplications of a product take as long as one simple operation.
MULTIPLICATIONS = 16

#: LLVM runs a loop without inner loops on vectors, several at a time, and the iterations that are left over one by one.
#: Pieces of a multiple of so many iterations leave none over but those that the whole loop leaves.
GRAIN = 64
#: The rows or columns of a product: a BLAS's tiles have 4 to 48.
PRODUCT_GRAIN = 48


class Apart(NamedTuple):
    """A loop of `extent` iterations that may be cut into pieces of a multiple of `grain`. With `moves_bits`, the sizes
    of the pieces decide the last bits.
    """

    extent: int
    grain: int
    moves_bits: bool = False

    def size(self, count: int) -> int:
        """The iterations of a piece, where there are to be at most `count` pieces."""
        return -(-self.extent // (count * self.grain)) * self.grain


def apart(item: Item) -> Apart | None:
    """How the iterations of the outermost loop may be cut; None where they have to run one after the other, or take too
    little time.
    """
    if not isinstance(item, Loop) or item.extent < 2 or _work(item) < LEAST_WORK or not _are_independent(item):
        return None
    return Apart(item.extent, 1 if _has_long_loop(item) else GRAIN)


def own_apart(factors: Factors) -> Apart:
    """How the rows of a product in own loops may be cut. A small product stays whole."""
    return Apart(factors.m, grain(factors) if _is_large(factors) else factors.m)


def blas_apart(factors: Factors) -> Apart | None:
    """How the rows or the columns of a BLAS's product may be cut, whichever are more; None for a small product."""
    return Apart(max(factors.m, factors.n), PRODUCT_GRAIN, moves_bits=True) if _is_large(factors) else None


def product_name(factors: Factors) -> str:
    """The name of the kernel that lets a BLAS compute such a product; see driver.py."""
    side = "rows" if factors.m >= factors.n else "columns"
    return f"{factors.dtype}_product_{side}" if _is_large(factors) else f"{factors.dtype}_product"


def _is_large(factors: Factors) -> bool:
    return factors.m * factors.n * factors.k >= LEAST_WORK * MULTIPLICATIONS


def _are_independent(loop: Loop) -> bool:
    leaves = list(leaves_of(loop))
    written = {leaf.output.storage for leaf in leaves}
    for leaf in leaves:
        output = leaf.output
        if isinstance(leaf, External | Fence) or output.index is not None or not output.dims[0][1]:
            return False
        if any(access.index is not None and access.storage in written for access in leaf.accesses):
            return False
    return all(
        not may_share(leaf.output, access, 0) for leaf in leaves for other in leaves for access in other.accesses
    )


def _work(item: Item) -> float:
    return sum(map(_work_of, leaves_of(item)))


def _work_of(leaf: Leaf) -> float:
    count = max(math.prod(extent for extent, _ in access.dims) for access in leaf.accesses)
    if isinstance(leaf, Product):
        (rows, _), (columns, _) = leaf.output.span
        return count * rows * columns * leaf.inputs[0].span[1][0] / MULTIPLICATIONS
    return count * (HEAVY_WORK if isinstance(leaf, Compute) and leaf.is_heavy else 1)


def _has_long_loop(loop: Loop) -> bool:
    """Whether a loop inside keeps LLVM from running the iterations of this one on vectors."""
    inner = [item for item in loop.body if isinstance(item, Loop)]
    if any(isinstance(item, Product) for item in loop.body):
        return True
    return any(item.extent > LARGEST_WRITTEN or _has_long_loop(item) for item in inner)
