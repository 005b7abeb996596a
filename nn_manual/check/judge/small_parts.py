"""Parts of a tensor that are so much smaller than the rest that the tensor's tolerance would let anything in them pass.

A row of a weight's gradient that is 1e-7 of the others, or a bias packed beside a weight, is compared at its own scale.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from nn_manual.arrays import Array
from nn_manual.check.compare.comparison import Pair
from nn_manual.check.compare.tolerances import RANGE_OF_PART, SMALL_PART

Key: TypeAlias = tuple[slice | int, ...]


class SmallPart(NamedTuple):
    """A part of a tensor: the pair of its values, named as numpy does, 0.grad_weight[2, :]; the name of the tensor, and
    the key that cuts the part out of it.
    """

    pair: Pair
    tensor: str
    key: Key


def doubtful_parts(pair: Pair) -> list[SmallPart]:
    """The small parts of a tensor that differ by more than its tolerance allows at their own scale.

    Parts are the slices along each axis, as the rows and columns of a matrix. A vector's parts are its blocks: runs of
    numbers of similar magnitude.
    """
    quantity, ours, reference, _ = pair
    magnitudes = np.abs(reference.numpy())
    differences = np.abs(ours - reference.numpy())
    parts = []
    for key in _small(magnitudes):
        if differences[key].max() > quantity.tolerance * magnitudes[key].max():
            named = replace(quantity, name=f"{quantity.name}{written(key)}")
            parts.append(SmallPart(Pair(named, ours[key], reference[key]), quantity.name, key))
    return parts


def _small(magnitudes: Array) -> Iterator[Key]:
    """The keys of the small parts of a tensor with these magnitudes."""
    if magnitudes.ndim == 1:
        yield from _small_blocks(magnitudes)
        return
    for axis in range(magnitudes.ndim):
        others = tuple(other for other in range(magnitudes.ndim) if other != axis)
        for index in np.flatnonzero(magnitudes.max(axis=others) <= SMALL_PART * magnitudes.max()):
            yield (*[slice(None)] * axis, int(index), *[slice(None)] * (magnitudes.ndim - axis - 1))


def _small_blocks(magnitudes: Array) -> Iterator[Key]:
    """The keys of the small blocks of a vector."""
    largest = magnitudes.max()
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # zeros are in a range of their own
        ranges = np.floor(np.log(largest / magnitudes) / np.log(RANGE_OF_PART))
    ends = [0, *(int(i) + 1 for i in np.flatnonzero(ranges[1:] != ranges[:-1])), len(magnitudes)]
    for start, stop in pairwise(ends):
        if magnitudes[start:stop].max() <= SMALL_PART * largest:
            yield (slice(start, stop),)


def blocks_where(mask: npt.NDArray[np.bool_]) -> Iterator[Key]:
    """The keys of the parts in which a mask is all true: the whole, with an empty key, or else blocks of a vector."""
    if mask.all():
        yield ()
    elif mask.ndim == 1:
        edges = np.flatnonzero(np.diff(mask, prepend=False, append=False))
        yield from ((slice(start, stop),) for start, stop in edges.reshape(-1, 2).tolist())


def written(key: Key) -> str:
    """The key as in Python: [2, :], [4:6]; nothing for an empty one."""
    if not key:
        return ""
    texts = []
    for part in key:
        is_all = part == slice(None)
        texts.append(str(part) if isinstance(part, int) else ":" if is_all else f"{part.start}:{part.stop}")
    return f"[{', '.join(texts)}]"
