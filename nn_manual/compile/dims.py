"""The loops over views: broadcasting, as few loops as possible, flat views, overlap."""

from __future__ import annotations

from typing import Any

import numpy as np

from nn_manual.arrays import Shape, size_of
from nn_manual.compile.nests import Access, Dims
from nn_manual.compile.scalar import CannotLower
from nn_manual.trace.trace import FixedValue, View


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """The axes of a reduction, none of them negative; None stands for all."""
    if axis is None or not ndim:
        return tuple(range(ndim))
    return tuple(each % ndim for each in (axis if isinstance(axis, tuple) else (axis,)))


def broadcast(view: View, shape: Shape) -> tuple[int, ...]:
    """The strides of a view after it is broadcast to a shape."""
    missing = len(shape) - len(view.shape)
    if missing < 0:  # NumPy assigns (1, 2) to (2,)
        view = view._replace(shape=view.shape[-missing:], strides=view.strides[-missing:])
    own = [0 if extent == 1 else stride for extent, stride in zip(view.shape, view.strides, strict=True)]
    return (*(0,) * missing, *own)


def canonical(shape: Shape, strides: list[tuple[int, ...]], leading: int = 0) -> list[Dims]:
    """The dims of as few loops as possible, for each of these strides. Loops of one iteration are left out. The others
    are sorted by the strides of `strides[leading]`, the largest first. Two loops become one if no stride needs both.
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
    """The view with one dimension. Raises CannotLower if it isn't contiguous."""
    (dims,) = canonical(view.shape, [view.strides])
    in_order = canonical(view.shape, [tuple(size_of(view.shape[i + 1 :]) for i in range(len(view.shape)))])
    if len(dims) > 1 or len(in_order[0]) > 1:
        raise CannotLower("an index into an array that isn't contiguous")
    ((extent, stride),) = dims or ((1, view.dtype.itemsize),)
    return view._replace(shape=(extent,), strides=(stride,))


def check_overlap(view: View, output: View, *, may_be_same: bool = True) -> None:
    """Raise CannotLower if NumPy would first copy an operand: the operand `view` overlaps with the output."""
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
    """Whether two views of one storage share a byte."""
    memory = np.empty(max(whole(view).interval()[1] for view in (a, b)), np.uint8)
    first, second = (np.ndarray(each.shape, each.dtype, memory.data, each.offset, each.strides) for each in (a, b))
    return bool(np.shares_memory(first, second))


def whole(view: View) -> Access:
    """An access that spans a whole view."""
    return Access(view.storage, view.offset, (), view.dtype, tuple(zip(view.shape, view.strides, strict=True)))


def plain(value: Any) -> Any:
    """The value of an argument."""
    if isinstance(value, FixedValue):
        return value.value
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    return value
