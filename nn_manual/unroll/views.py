"""Views: where they lie, whether two are the same, and how much text stands between a name and a view."""

from __future__ import annotations

import numpy as np

from nn_manual.arrays import Array, Shape, size_of
from nn_manual.trace.trace import View


def num_steps(behind: str) -> int:
    """The number of indices and calls behind a name."""
    depth = count = 0
    for place, sign in enumerate(behind):
        if (not depth and (sign == "." or (sign == "[" and place))) or (sign == "[" and not place):
            count += 1
        depth += (sign in "[(") - (sign in ")]")
    return count


def is_same(view: View, other: View) -> bool:
    """Whether two views show the same elements in the same form. The stride of a dimension of size 1 doesn't count."""
    return (
        (view.storage, view.offset, view.shape, view.dtype) == (other.storage, other.offset, other.shape, other.dtype)
        and _walked(view.shape, view.strides) == _walked(other.shape, other.strides)
    )  # fmt: skip


def is_whole(view: View) -> bool:
    """Whether a view shows every byte between its first and its last one, once."""
    return extent(view)[1] == size_of(view.shape) * view.dtype.itemsize and 0 not in _walked(view.shape, view.strides)


def span(view: View) -> tuple[int, int]:
    """The interval of a view's bytes in its storage: the first byte, and the end."""
    low, size = extent(view)
    return view.offset + low, view.offset + low + size


def is_within(view: View, whole: View) -> bool:
    """Whether all bytes of a view lie between the first and the last of another one."""
    (low, high), (start, stop) = span(whole), span(view)
    return view.storage == whole.storage and low <= start and stop <= high


def extent(view: View) -> tuple[int, int]:
    """In bytes: where the view begins, relative to its first element (0 or less), and how long it is."""
    reaches = [(size - 1) * stride for size, stride in zip(view.shape, view.strides, strict=True)]
    low = sum(min(reach, 0) for reach in reaches)
    return low, sum(max(reach, 0) for reach in reaches) - low + view.dtype.itemsize


def _walked(shape: Shape, strides: tuple[int, ...]) -> list[int]:
    return [stride for size, stride in zip(shape, strides, strict=True) if size != 1]


def sizes_text(before: Shape, after: Shape) -> str:
    """The new sizes, with -1 for one that follows from the others: the number of rows, or the flattened dimension."""
    if len(after) < 2:
        return "-1" if after else "()"
    if len(after) == 2 and before[-1:] == after[-1:]:
        return f"-1, {after[-1]}"
    if len(after) == 2 and before[0] == after[0]:
        return f"{after[0]}, -1"
    if (before[0] == after[0] or len(after) > len(before) > 1) and size_of(after):
        return f"-1, {', '.join(map(str, after[1:]))}"
    if len(after) == 2 and size_of(after):
        return f"-1, {after[1]}"
    return ", ".join(map(str, after))


def array_at(view: View) -> Array:
    """An array in the form of a view, without values."""
    low, size = extent(view)
    return np.ndarray(view.shape, view.dtype, np.empty(size, np.uint8).data, -low, view.strides)
