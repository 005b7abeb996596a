"""The largest differences of two large arrays, a block at a time that stays in the processor's cache.

An array of a million numbers is read from memory once. The passes over it, for the difference and its largest and
smallest number, never leave the cache.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from nn_manual.arrays import Array

#: Elements of a block: 512 KiB in float32. With smaller ones, the calls of numpy take longer than the cache saves: with
#: a quarter of the size, the checked step of the 784-128-10 net takes 1.07 times as long.
BLOCK = 1 << 17


class Block(NamedTuple):
    """Some elements of some steps of two arrays, (steps, ...) each: of the steps in `rows`."""

    rows: slice
    ours: Array
    reference: Array


def blocks_of(ours: Array, reference: Array) -> Iterator[Block]:
    """All elements of two arrays of one shape, (steps, ...), with at least one element in each step. Either may be
    transposed.
    """
    ours, reference = _in_order(ours, reference)
    size = ours.size // len(ours)
    num_rows = BLOCK // size
    if num_rows:
        for start in range(0, len(ours), num_rows):
            rows = slice(start, min(start + num_rows, len(ours)))
            yield Block(rows, ours[rows], reference[rows])
        return
    for step, pair in enumerate(zip(ours, reference, strict=True)):
        for own, theirs in _parts(*pair):
            yield Block(slice(step, step + 1), own[np.newaxis], theirs[np.newaxis])


def _in_order(ours: Array, reference: Array) -> tuple[Array, Array]:
    """Both with their last two axes exchanged, if the reference lies in memory in that order, as torch's gradients of
    weights do: it is read as it lies.
    """
    if reference.ndim > 2 and not reference.flags.c_contiguous and reference.mT.flags.c_contiguous:
        return ours.mT, reference.mT
    return ours, reference


def _parts(ours: Array, reference: Array) -> Iterator[tuple[Array, Array]]:
    """Two arrays of one shape in parts of at most a block."""
    if ours.size <= BLOCK:
        yield ours, reference
        return
    if ours.flags.c_contiguous and reference.flags.c_contiguous:
        ours, reference = ours.reshape(-1), reference.reshape(-1)
    num_rows = BLOCK * len(ours) // ours.size
    if num_rows:
        for start in range(0, len(ours), num_rows):
            part = slice(start, start + num_rows)
            yield ours[part], reference[part]
    else:
        for pair in zip(ours, reference, strict=True):
            yield from _parts(*pair)


def largest_of(block: Block) -> tuple[Array, Array]:
    """max|ours - reference| and max|reference| of each step of a block. NaN anywhere, and infinity in both, give NaN.
    numba's machine code finds the same numbers with fewer passes. It is used if numba has been loaded, for compiled
    steps: that takes longer than most checks.
    """
    is_one_pass = "numba" in sys.modules and block.ours.dtype == block.reference.dtype
    return (_in_one_pass if is_one_pass and _has_whole_rows(block) else _in_passes)(block)


def _has_whole_rows(block: Block) -> bool:
    """Whether each step of each array lies in one piece."""
    return all(each[0].flags.c_contiguous for each in (block.ours, block.reference))


def _in_one_pass(block: Block) -> tuple[Array, Array]:
    from nn_manual.check.compare.compiled_blocks import largest_magnitudes

    absolute, scale = np.empty((2, len(block.ours)), block.ours.dtype)
    rows = [each.reshape(len(each), -1) for each in (block.ours, block.reference)]
    largest_magnitudes(*rows, *(found.view(f"u{found.itemsize}") for found in (absolute, scale)))
    return absolute, scale


def _in_passes(block: Block) -> tuple[Array, Array]:
    reference = np.ascontiguousarray(block.reference)
    difference = _scratch(np.result_type(block.ours, reference))[: reference.size].reshape(reference.shape)
    with np.errstate(invalid="ignore"):  # infinity - infinity, which the caller sees as NaN
        np.subtract(block.ours, reference, out=difference)
    absolute, scale = (_largest_magnitudes(each.reshape(len(each), -1)) for each in (difference, reference))
    return absolute, scale


def _largest_magnitudes(rows: Array) -> Array:
    """max|number| of each row of (rows, numbers). Two reductions take less time than one over magnitudes, which would
    be written first. What is added makes 0 of -0: the same bits in all ways to the number.
    """
    largest: Array = np.maximum(np.maximum.reduce(rows, axis=1), -np.minimum.reduce(rows, axis=1)) + 0
    return largest


class _Scratch(threading.local):
    """Memory of a thread for differences, the same each time: fresh pages would cost more than the difference."""

    def __init__(self) -> None:
        self.by_dtype: dict[np.dtype[Any], Array] = {}


_of_thread = _Scratch()


def _scratch(dtype: np.dtype[Any]) -> Array:
    if dtype not in _of_thread.by_dtype:
        _of_thread.by_dtype[dtype] = np.empty(BLOCK, dtype)
    return _of_thread.by_dtype[dtype]
