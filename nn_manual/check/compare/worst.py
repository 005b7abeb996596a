"""The worst difference of each of many tensors, in each of many steps, and whether its tolerance allows it.

Arrays are read a block at a time, which stays in the cache.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from nn_manual.arrays import Array
from nn_manual.check.compare.blocks import BLOCK, Block, blocks_of, largest_of
from nn_manual.check.compare.comparison import Pair, Quantity
from nn_manual.check.compare.threads import in_threads

#: Tensors of fewer elements are compared side by side: for one alone, a call of numpy takes longer than the comparison.
SMALL = 1 << 9

#: To start a thread takes as long as a tenth of the comparison of so many elements.
ELEMENTS_OF_THREAD = 1 << 19

#: So are tensors of fewer elements in all steps together: copying costs less than the calls that it saves.
FEW = 1 << 14


class Differences(NamedTuple):
    """For each tensor, max|ours - torch| and max|torch|; and the names of those that are off by rounding alone."""

    absolute: Array
    scale: Array
    rounding: frozenset[str] = frozenset()


def joined(*parts: Differences) -> Differences:
    """The differences of several parts of a step, in one."""
    absolute, scale = (np.concatenate([part[i] for part in parts]) for i in range(2))
    return Differences(absolute, scale, frozenset[str]().union(*(part.rounding for part in parts)))


def differences_of(pairs: Sequence[Pair]) -> tuple[Array, Array]:
    """max|ours - reference| of each pair, and the scale that it is compared on, as two vectors. NaN anywhere, and
    infinity in both, give NaN.
    """
    both = [pair.ours for pair in pairs], [pair.reference.numpy() for pair in pairs]
    (absolute,), (scale,) = worst_differences(*both, num_steps=1)
    for i, pair in enumerate(pairs):
        if pair.scale is not None:
            scale[i] = pair.scale
    return absolute, scale


def beyond_tolerance(pairs: Sequence[Pair]) -> list[Pair]:
    """Those of the pairs that differ by more than is allowed."""
    passed = within(*differences_of(pairs), tolerances_of(pair.quantity for pair in pairs))
    return list(itertools.compress(pairs, ~passed))


def tolerances_of(quantities: Iterable[Quantity]) -> Array:
    """The tolerance of each."""
    return np.array([quantity.tolerance for quantity in quantities])


def within(absolute: Array, scale: Array, tolerances: Array) -> npt.NDArray[np.bool_]:
    """For each, whether `absolute` is within the tolerance of its `scale`; never true for NaN or infinity."""
    allowed = tolerances * scale
    result: npt.NDArray[np.bool_] = (absolute <= allowed) & (allowed < math.inf)
    return result


def worst_differences(
    ours: Sequence[Array], references: Sequence[Array], sizes: Sequence[int] = (), *, num_steps: int
) -> tuple[Array, Array]:
    """max|ours - reference| and max|reference| of each pair in each step, (steps, tensors). NaN anywhere, and infinity
    in both, give NaN.

    The two of a pair have equal shapes: (steps, ...), or any shape where there is one step. Each step has at least one
    element of each. Where `sizes` are given, each array holds tensors of these sizes end to end, (steps, sum of the
    sizes) or, of one step, (sum of the sizes,).
    """
    small = max(SMALL, FEW // num_steps)
    if sizes and max(sizes) >= small:
        ends = np.cumsum(sizes)[:-1]
        ours, references = (
            [part for a in arrays for part in np.split(a, ends, axis=-1)] for arrays in (ours, references)
        )
    elif sizes:
        return _side_by_side(ours, references, (*sizes,) * len(ours), num_steps)
    all_sizes = tuple(array.size // num_steps for array in ours)
    if max(all_sizes) < small:
        return _side_by_side(ours, references, all_sizes, num_steps)
    absolute, scale = np.zeros((2, num_steps, len(ours)), ours[0].dtype)
    together = [i for i, size in enumerate(all_sizes) if size < small]
    if together:
        own, reference = ([arrays[i] for i in together] for arrays in (ours, references))
        packed = _side_by_side(own, reference, tuple(all_sizes[i] for i in together), num_steps)
        absolute[:, together], scale[:, together] = packed
    for i, block, (of_difference, of_reference) in _of_large(ours, references, all_sizes, small, num_steps):
        for found, more in ((absolute, of_difference), (scale, of_reference)):
            np.maximum(found[block.rows, i], more, out=found[block.rows, i])
    return absolute, scale


def _of_large(
    ours: Sequence[Array], references: Sequence[Array], sizes: Sequence[int], small: int, num_steps: int
) -> Iterator[tuple[int, Block, tuple[Array, Array]]]:
    """The blocks of each tensor with at least `small` elements, each with the tensor's index and what is found of it.
    As many threads take part as torch has here.
    """
    blocks = []
    for i, size in enumerate(sizes):
        if size >= small:
            pair = [arrays[i] if num_steps > 1 else arrays[i][np.newaxis] for arrays in (ours, references)]
            blocks += [(i, block) for block in blocks_of(*pair)]
    shares = _shares(blocks)
    for share, found in zip(shares, in_threads(_largest_of_each, shares), strict=True):
        for (i, block), both in zip(share, found, strict=True):
            yield i, block, both


def _shares(blocks: list[tuple[int, Block]]) -> list[list[tuple[int, Block]]]:
    """The blocks in shares of about one size: one for each thread that pays."""
    ends = [0, *itertools.accumulate(block.ours.size for _, block in blocks)]
    count, shares = min(torch.get_num_threads(), max(1, ends[-1] // ELEMENTS_OF_THREAD)), dict[int, list[Any]]()
    for each, start, end in zip(blocks, ends, ends[1:], strict=False):
        shares.setdefault((start + end) * count // (2 * ends[-1]), []).append(each)
    return [*shares.values()]


def _largest_of_each(blocks: Sequence[tuple[int, Block]]) -> list[tuple[Array, Array]]:
    return [largest_of(block) for _, block in blocks]


def _side_by_side(
    ours: Sequence[Array], references: Sequence[Array], sizes: tuple[int, ...], num_steps: int
) -> tuple[Array, Array]:
    """Of small tensors of these sizes, which are packed together: each call of numpy serves all of them."""
    arrays = [*ours, *references]
    if num_steps == 1:
        packed = np.concatenate(arrays, axis=None)
    else:
        packed = np.concatenate([array.reshape(num_steps, -1) for array in arrays], axis=1)
    both, starts = packed.reshape(num_steps, 2, -1), _starts(sizes)
    num_rows = max(1, BLOCK * num_steps // packed.size)
    found = [_of_rows(both[row : row + num_rows], starts) for row in range(0, num_steps, num_rows)]
    absolute_and_scale = found[0] if len(found) == 1 else np.concatenate(found)
    return absolute_and_scale[:, 0], absolute_and_scale[:, 1]


def _of_rows(both: Array, starts: Array) -> Array:
    """Of (steps, ours and reference, elements), in which a tensor starts at each of `starts`; `both` is overwritten."""
    ours, reference = both[:, 0], both[:, 1]
    with np.errstate(invalid="ignore"):  # infinity - infinity, which the caller sees as NaN
        np.subtract(ours, reference, out=ours)
    found: Array = np.maximum.reduceat(np.abs(both, out=both), starts, axis=2)
    return found


@functools.lru_cache
def _starts(sizes: tuple[int, ...]) -> Array:
    """Where each of the tensors of these sizes starts, laid end to end."""
    return np.array([*itertools.accumulate(sizes, initial=0)][:-1], np.intp)
