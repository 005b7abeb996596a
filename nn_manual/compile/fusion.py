"""Fusion: decides which loops become one.

A loop joins an earlier one under three conditions. Both touch the same data, which is then still in the processor's
registers or cache, or both come from one formula. No iteration needs what another iteration computes. Nothing between
the two loops conflicts with the move.
"""

from __future__ import annotations

from collections.abc import Iterable

from nn_manual.compile.nests import Access, Compute, Item, Leaf, Loop, conflict, leaves_of, may_fuse, nest, split_loop

#: A loop of more leaves compiles slowly, and has more pointers than the processor has registers.
MOST_LEAVES = 64
#: A function of many operations needs a loop of at least so many iterations, which are several vectors.
SHORTEST_OF_HEAVY = 48
#: At most so many items lie between a sum and the loop that computes its terms: bias gradients need 2.
FARTHEST = 8
#: A reduction may join a loop that isn't the last one, if its array is at least so many times as large as its result.
SMALL_PART = 4


def fused(leaves: Iterable[Leaf]) -> list[Item]:
    """The items of a program that computes these leaves, in an order that gives the same results."""
    program: list[Item] = []
    for leaf in leaves:
        _place(program, nest(leaf), 0)
    return program


def _place(body: list[Item], item: Item, level: int) -> None:
    """Put an item into the last loop of a body that may take it, or else at the end of the body."""
    for i in range(len(body) - 1, max(-1, len(body) - 1 - FARTHEST), -1):
        earlier = body[i]
        if isinstance(item, Loop) and isinstance(earlier, Loop):
            is_last = i == len(body) - 1
            if _is_worthwhile(earlier, item, level, is_last=is_last):
                both = _one(earlier, item, level)
                if both is not None:
                    body[i] = both
                    return
        if conflict(earlier, item, level):
            break
    body.append(item)


def _one(first: Loop, second: Loop, level: int) -> Loop | None:
    """One loop in the place of both; None if that isn't allowed."""
    longer, shorter = max(first.extent, second.extent), min(first.extent, second.extent)
    if longer != shorter:
        if not shorter or longer % shorter:
            return None
        inner = longer // shorter
        parted = first if first.extent == longer else second
        leaves = list(leaves_of(parted))
        if inner < SHORTEST_OF_HEAVY and any(_is_heavy(leaf, level) for leaf in leaves):
            return None
        if any(_counts(leaf, level) for leaf in leaves):
            return None
        if parted is first:
            first = split_loop(first, level, inner)
        else:
            second = split_loop(second, level, inner)
    if not may_fuse(first, second, level):
        return None
    body = list(first.body)
    for item in second.body:
        _place(body, item, level + 1)
    return Loop(shorter, body)


def _is_heavy(leaf: Leaf, level: int) -> bool:
    """Whether this loop is the one that should run on vectors, for a function of many operations."""
    return isinstance(leaf, Compute) and leaf.is_heavy and len(leaf.output.dims) == level + 1


def _counts(leaf: Leaf, level: int) -> bool:
    """Whether a leaf computes the index of this loop, as argmax does."""
    is_of_index = isinstance(leaf, Compute) and leaf.reduction.startswith("arg")
    return is_of_index and not leaf.output.dims[level][1]


def _is_worthwhile(earlier: Loop, item: Loop, level: int, *, is_last: bool) -> bool:
    own, its = list(leaves_of(earlier)), list(leaves_of(item))
    if len(own) + len(its) > MOST_LEAVES:
        return False
    if level and earlier.extent == item.extent:  # otherwise one is split: its inner part may be too short for vectors
        return True
    if not is_last:
        written = [leaf.output for leaf in own]
        return all(_is_small(leaf) for leaf in its) and _share(written, [a for leaf in its for a in leaf.inputs])
    if not level and own[-1].place.owner and own[-1].place.owner == its[0].place.owner:
        return True
    return _share([a for leaf in own for a in leaf.accesses], [a for leaf in its for a in leaf.accesses])


def _is_small(leaf: Leaf) -> bool:
    return isinstance(leaf, Compute) and bool(leaf.reduction) and all(
        _size(access) >= SMALL_PART * _size(leaf.output) for access in leaf.inputs if _size(access) > 1
    )


def _size(access: Access) -> int:
    size = 1
    for extent, stride in access.dims:
        size *= extent if stride else 1
    return size


def _share(own: list[Access], its: list[Access]) -> bool:
    """Whether both touch the same array of more than one number."""
    for a in own:
        if _size(a) > 1 or a.span:
            start, stop = a.interval()
            for b in its:
                if a.storage == b.storage and (_size(b) > 1 or b.span):
                    its_start, its_stop = b.interval()
                    if start < its_stop and its_start < stop:
                        return True
    return False
