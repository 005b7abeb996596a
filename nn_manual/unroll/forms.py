"""The text that turns one view into another: `.T`, `[:, 0:4]`, `.reshape(-1, 10)`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from nn_manual.arrays import size_of
from nn_manual.trace.trace import View
from nn_manual.unroll.views import array_at, extent, is_same, is_whole, is_within, sizes_text, span


def suffix(base: View, view: View) -> str | None:
    """The text behind the name of the array `base` that gives `view`, "" if both are the same; None if there is no
    simple text. Each text is tried on an empty array of that form.
    """
    if 0 in view.shape or 0 in base.shape or not is_within(view, base):
        return None
    for form in _FORMS:
        for text in form(base, view):
            if _lands(base, text, view):
                return text
    return None


def _lands(base: View, text: str, view: View) -> bool:
    array = array_at(base)
    try:
        found = eval(f"array{text}", {"array": array, "np": np})
    except (IndexError, ValueError, AttributeError):
        return False
    if not isinstance(found, np.ndarray) or not np.may_share_memory(found, array):
        return False
    offset = found.__array_interface__["data"][0] - array.__array_interface__["data"][0] + base.offset
    return is_same(View(base.storage, offset, found.shape, found.strides, found.dtype), view)


def _as_it_is(base: View, view: View) -> Iterator[str]:
    yield ""
    if base.dtype != view.dtype:
        yield f".view(np.{view.dtype})"


def _transposed(base: View, view: View) -> Iterator[str]:
    if sorted(base.shape) != sorted(view.shape) or base.offset != view.offset:
        return
    num_dimensions = len(base.shape)
    if num_dimensions == 2:
        yield ".T"
    elif num_dimensions > 2:
        yield ".mT"
        axes, left = [], list(zip(base.shape, base.strides, strict=True))
        places = list(range(num_dimensions))
        for pair in zip(view.shape, view.strides, strict=True):
            if pair not in left:
                return
            axes.append(places.pop(left.index(pair)))
            left.remove(pair)
        moved = [axis for place, axis in enumerate(axes) if place != axis]
        if len(moved) == 2:
            yield f".swapaxes({min(moved)}, {max(moved)})"
        yield f".transpose({', '.join(map(str, axes))})"


def _indexed(base: View, view: View) -> Iterator[str]:
    starts = _starts(base, view.offset)
    if starts is not None:
        for keys in _keys(base, view, starts, 0, 0):
            while keys and keys[-1] == ":":
                keys = keys[:-1]
            yield f"[{', '.join(keys)}]" if keys else ""


def _starts(base: View, offset: int) -> list[int] | None:
    """The index of the element of `base` at this offset; None if there is none."""
    rest, starts = offset - base.offset, [0] * len(base.shape)
    for axis in sorted(range(len(base.shape)), key=lambda axis: -base.strides[axis]):
        if base.strides[axis] > 0:
            starts[axis] = min(rest // base.strides[axis], base.shape[axis] - 1)
            rest -= starts[axis] * base.strides[axis]
    return None if rest else starts


def _keys(base: View, view: View, starts: list[int], axis: int, dimension: int) -> Iterator[list[str]]:
    """Indices for the axes of `base` from `axis` on, which give the dimensions of `view` from `dimension` on."""
    if axis == len(base.shape):
        if all(size == 1 for size in view.shape[dimension:]):
            yield ["np.newaxis"] * (len(view.shape) - dimension)
        return
    size, stride, start = base.shape[axis], base.strides[axis], starts[axis]
    if dimension < len(view.shape):
        wanted, its_stride = view.shape[dimension], view.strides[dimension]
        step = its_stride // stride if stride and wanted > 1 else 1
        if step >= 1 and (wanted == 1 or step * stride == its_stride) and start + (wanted - 1) * step < size:
            stop = start + (wanted - 1) * step + 1
            key = f"{start}:{stop}" + (f":{step}" if step > 1 else "")
            key = ":" if (start, stop, step) == (0, size, 1) else key
            yield from ([key, *keys] for keys in _keys(base, view, starts, axis + 1, dimension + 1))
        last = start + (wanted - 1) * step
        if step < 0 and step * stride == its_stride and last >= 0:
            ends = "" if start == size - 1 else str(start), "" if last + step < 0 else str(last - 1)
            key = f"{ends[0]}:{ends[1]}:{step}"
            yield from ([key, *keys] for keys in _keys(base, view, starts, axis + 1, dimension + 1))
        if wanted == 1:
            yield from (["np.newaxis", *keys] for keys in _keys(base, view, starts, axis, dimension + 1))
    yield from ([str(start), *keys] for keys in _keys(base, view, starts, axis + 1, dimension))


def _flattened(base: View, view: View) -> Iterator[str]:
    if len(view.shape) == 1 and len(base.shape) > 1 and size_of(base.shape) == view.shape[0]:
        yield ".ravel()"


def _reshaped(base: View, view: View) -> Iterator[str]:
    if size_of(base.shape) == size_of(view.shape) and base.offset == view.offset and base.dtype == view.dtype:
        yield f".reshape({sizes_text(base.shape, view.shape)})"


def _part_of_flat(base: View, view: View) -> Iterator[str]:
    """A part of a vector in another shape, as parameters are parts of the flat vector."""
    if len(base.shape) == 1 and is_whole(view) and base.dtype == view.dtype:
        start = (view.offset - base.offset) // base.dtype.itemsize
        text = f"[{start}:{start + size_of(view.shape)}]"
        yield f"{text}.reshape({', '.join(map(str, view.shape)) or '()'})"


def _rows_in_another_shape(base: View, view: View) -> Iterator[str]:
    """Some rows, in another shape."""
    if not base.shape or not view.shape or base.dtype != view.dtype or not base.strides[0] > 0:
        return
    start, rest = divmod(view.offset - base.offset, base.strides[0])
    count, part = divmod(size_of(view.shape) * view.dtype.itemsize, base.strides[0])
    if not rest and not part and count == 1 and len(base.shape) > 1:
        yield f"[{start}].reshape({sizes_text(base.shape[1:], view.shape)})"
    if not rest and not part:
        yield f"[{start}:{start + count}].reshape({sizes_text((count, *base.shape[1:]), view.shape)})"


def _refined(base: View, view: View) -> Iterator[str]:
    """The dimensions of `base` are split; some of them get an index or a slice, and the rest another order."""
    if not is_whole(base) or not view.shape or base.dtype != view.dtype:
        return
    order = sorted(range(len(view.shape)), key=lambda axis: (-view.strides[axis], axis))
    sizes, of_view, stride = list[int](), list[int | None](), size_of(base.shape) * base.dtype.itemsize
    for axis in order:
        if view.strides[axis] <= 0:
            return
        size, step = view.shape[axis], view.strides[axis]
        if stride % step:
            return
        if stride % (size * step):  # a part of a dimension
            size = stride // step
        elif stride != size * step:
            sizes.append(stride // (size * step))
            of_view.append(None)
        sizes.append(size)
        of_view.append(axis)
        stride = view.strides[axis]
    if stride != base.dtype.itemsize:
        sizes.append(stride // base.dtype.itemsize)
        of_view.append(None)
    split = View(base.storage, base.offset, tuple(sizes), array_at(base).reshape(sizes).strides, base.dtype)
    if (starts := _starts(split, view.offset)) is None:
        return
    keys = [
        str(start) if axis is None else ":" if size == view.shape[axis] else f"{start}:{start + view.shape[axis]}"
        for axis, start, size in zip(of_view, starts, sizes, strict=True)
    ]
    while keys and keys[-1] == ":":
        keys.pop()
    index = f"[{', '.join(keys)}]" if keys else ""
    kept = [axis for axis in of_view if axis is not None]
    axes = [kept.index(axis) for axis in range(len(view.shape))]
    moved = [axis for place, axis in enumerate(axes) if place != axis]
    order_text = f".transpose({', '.join(map(str, axes))})" if moved else ""
    if len(moved) == 2:
        order_text = f".swapaxes({min(moved)}, {max(moved)})"
    yield f".reshape({sizes_text(base.shape, tuple(sizes))}){index}{order_text}"


def _within_one(base: View, view: View) -> Iterator[str]:
    """A part of one row."""
    start = (span(view)[0] - base.offset) // base.strides[0] if base.shape and base.strides[0] > 0 else -1
    if len(base.shape) < 2 or not 0 <= start < base.shape[0]:
        return
    inner = View(base.storage, base.offset + start * base.strides[0], base.shape[1:], base.strides[1:], base.dtype)
    behind = suffix(inner, view)
    if behind is not None and behind.startswith("["):
        yield f"[{start}, {behind[1:]}"
    elif behind is not None:
        yield f"[{start}]{behind}"


def _rows_then_refined(base: View, view: View) -> Iterator[str]:
    """Some rows, their dimensions split and in another order."""
    if not base.shape or not base.strides[0] > 0:
        return
    low, high = (end - base.offset for end in span(view))
    start, stop = low // base.strides[0], -(-high // base.strides[0])
    rows = base._replace(offset=base.offset + start * base.strides[0], shape=(stop - start, *base.shape[1:]))
    yield from (f"[{start}:{stop}]{text}" for text in _refined(rows, view))


def _turned_around(base: View, view: View) -> Iterator[str]:
    """Another form, whose dimensions are then gone through backwards."""
    if min(view.strides, default=0) < 0:
        low, _ = extent(view)
        forwards = view._replace(offset=view.offset + low, strides=tuple(map(abs, view.strides)))
        keys = ["::-1" if stride < 0 else ":" for stride in view.strides]
        while keys[-1] == ":":
            keys.pop()
        behind = suffix(base, forwards)
        yield from () if behind is None else (f"{behind}[{', '.join(keys)}]",)


def _then_transposed(first: Callable[[View, View], Iterator[str]]) -> Callable[[View, View], Iterator[str]]:
    """The form that gives the transposed view, followed by `.T`."""

    def form(base: View, view: View) -> Iterator[str]:
        if len(view.shape) < 2:
            return
        axes = [*range(len(view.shape) - 2), -1, -2]
        shape, strides = ([own[axis] for axis in axes] for own in (view.shape, view.strides))
        transposed = View(view.storage, view.offset, tuple(shape), tuple(strides), view.dtype)
        mark = ".T" if len(view.shape) == 2 else ".mT"
        yield from (f"{text}{mark}" for text in first(base, transposed) if text)

    return form


#: The simplest forms come first.
_FORMS: tuple[Callable[[View, View], Iterator[str]], ...] = (
    _as_it_is,
    _flattened,
    _transposed,
    _indexed,
    _reshaped,
    _part_of_flat,
    _rows_in_another_shape,
    _then_transposed(_indexed),
    _then_transposed(_reshaped),
    _then_transposed(_rows_in_another_shape),
    _refined,
    _then_transposed(_refined),
    _rows_then_refined,
    _then_transposed(_rows_then_refined),
    _within_one,
    _turned_around,
)
