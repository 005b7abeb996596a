"""Views as loops: broadcast, in as few loops as do it, flat, and whether two of them overlap."""

from __future__ import annotations

from typing import Any

import numpy as np

from nn_manual.arrays import Shape, size_of
from nn_manual.compile.nests import Access, Dims
from nn_manual.compile.scalar import CannotLower
from nn_manual.trace.trace import FixedValue, View


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """The axes that a reduction takes, from 0; None stands for all."""
    if axis is None or not ndim:
        return tuple(range(ndim))
    return tuple(each % ndim for each in (axis if isinstance(axis, tuple) else (axis,)))


def broadcast(view: View, shape: Shape) -> tuple[int, ...]:
    """The strides of a view that is broadcast to a shape."""
    missing = len(shape) - len(view.shape)
    if missing < 0:  # NumPy assigns (1, 2) to (2,)
        view = view._replace(shape=view.shape[-missing:], strides=view.strides[-missing:])
    own = [0 if extent == 1 else stride for extent, stride in zip(view.shape, view.strides, strict=True)]
    return (*(0,) * missing, *own)


def canonical(shape: Shape, strides: list[tuple[int, ...]], leading: int = 0) -> list[Dims]:
    """For each of these strides the dims of as few loops as do it: those of more than one iteration, ordered by the
    strides of the `leading` one from the largest, and one loop instead of two wherever no stride needs two.
    """
    axes = [axis for axis, extent in enumerate(shape) if extent != 1]
    axes.sort(key=lambda axis: tuple(-abs(own[axis]) for own in (strides[leading], *strides)))
    rows: list[list[tuple[int, int]]] = [[] for _ in strides]
    for axis in axes:
        extent = shape[axis]
        if rows[0] and all(row[-1][1] == own[axis] * extent for row, own in zip(rows, strides, strict=True)):
            for row, own in zip(rows, strides, strict=True):
                row[-1] = (row[-1][0] * extent, own[axis])
        else:
            for row, own in zip(rows, strides, strict=True):
                row.append((extent, own[axis]))
    return [tuple(row) for row in rows]


def flattened(view: View) -> View:
    """As one dimension."""
    (dims,) = canonical(view.shape, [view.strides])
    in_order = canonical(view.shape, [tuple(size_of(view.shape[i + 1 :]) for i in range(len(view.shape)))])
    if len(dims) > 1 or len(in_order[0]) > 1:
        raise CannotLower("an index into an array that isn't contiguous")
    ((extent, stride),) = dims or ((1, view.dtype.itemsize),)
    return view._replace(shape=(extent,), strides=(stride,))


def check_overlap(view: View, output: View, *, may_be_same: bool = True) -> None:
    """Raise CannotLower where NumPy would copy an operand first."""
    if view.storage != output.storage:
        return
    is_same = view.offset == output.offset and (
        canonical(view.shape, [view.strides]) == canonical(output.shape, [output.strides])
    )
    if may_be_same and is_same and view.shape == output.shape:
        return
    if _overlap(view, output):
        raise CannotLower("an operand overlaps with the result")


def _overlap(a: View, b: View) -> bool:
    """Whether two views of a storage have a byte in common."""
    memory = np.empty(max(whole(view).interval()[1] for view in (a, b)), np.uint8)
    first, second = (np.ndarray(each.shape, each.dtype, memory.data, each.offset, each.strides) for each in (a, b))
    return bool(np.shares_memory(first, second))


def whole(view: View) -> Access:
    """An access to all of a view at once."""
    return Access(view.storage, view.offset, (), view.dtype, tuple(zip(view.shape, view.strides, strict=True)))


def plain(value: Any) -> Any:
    """An argument as a value."""
    if isinstance(value, FixedValue):
        return value.value
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    return value
