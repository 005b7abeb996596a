"""Lowers matrix products to calls of a BLAS."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nn_manual.compile.dims import broadcast, canonical, check_overlap
from nn_manual.compile.nests import Access, Leaf, Product
from nn_manual.compile.operands import Operands
from nn_manual.compile.reductions import reduced
from nn_manual.compile.scalar import CannotLower
from nn_manual.trace.trace import TracedOperation, View


class Layout(NamedTuple):
    """How a BLAS reads a matrix: whether it lies transposed in memory, and the distance of two rows in elements."""

    is_transposed: bool
    row: int


def layout(access: Access) -> Layout | None:
    """The layout of the matrix that an access spans; None if a BLAS can't read it."""
    (rows, row_stride), (columns, column_stride) = access.span
    size = access.dtype.itemsize
    for is_transposed, row, count, between in (
        (False, columns, rows, row_stride),
        (True, rows, columns, column_stride),
    ):
        within = row_stride if is_transposed else column_stride
        if (within == size or row == 1) and (count == 1 or (between >= row * size and between % size == 0)):
            return Layout(is_transposed, max(row, 1) if count == 1 else between // size)
    return None


def product(operands: Operands, operation: TracedOperation) -> list[Leaf]:
    """A product of matrices or vectors."""
    views, literals = operands.operands(operation.arguments[:2])
    if literals or operation.keywords.keys() - {"casting", "subok", "dtype", "order", "axis"}:
        raise CannotLower(f"{operation.name} of a number")
    a, b = views
    if not a.shape or not b.shape:
        raise CannotLower(f"{operation.name} of a number")
    if operation.output.dtype.kind != "f" or a.dtype != operation.output.dtype or b.dtype != a.dtype:
        raise CannotLower(f"{operation.name} of {a.dtype} and {b.dtype}")
    is_sum = operation.name == "vecdot" or (len(a.shape) == 1 and len(b.shape) == 1)
    if is_sum:
        shape = np.broadcast_shapes(a.shape, b.shape)
        wide = [view._replace(shape=shape, strides=broadcast(view, shape)) for view in (a, b)]
        return [reduced(operation, "multiply", wide, (len(shape) - 1,), "add", keepdims=False)]
    if len(a.shape) == 1 and a.storage in operands.constants and len(b.shape) == 2 and np.all(
        operands.constants[a.storage] == 1
    ):
        return [reduced(operation, "copyto", [b], (0,), "add", keepdims=False)]
    if operation.name != "matmul" and (operation.name != "dot" or max(len(a.shape), len(b.shape)) > 2):
        raise CannotLower(f"{operation.name} of many dimensions")
    return _matrix_product(operands, operation, a, b)


def _matrix_product(operands: Operands, operation: TracedOperation, a: View, b: View) -> list[Leaf]:
    """a @ b, also for stacks of matrices. Copies come before the product and after it, where a BLAS needs them."""
    output = operation.output
    for view in (a, b):
        check_overlap(view, output, may_be_same=False)
    if len(a.shape) == 1:
        a = a._replace(shape=(1, *a.shape), strides=(0, *a.strides))
        output = output._replace(
            shape=(*output.shape[:-1], 1, output.shape[-1]), strides=(*output.strides[:-1], 0, output.strides[-1])
        )
    if len(b.shape) == 1:
        b = b._replace(shape=(*b.shape, 1), strides=(*b.strides, 0))
        output = output._replace(shape=(*output.shape, 1), strides=(*output.strides, 0))
    before: list[Leaf] = []
    after: list[Leaf] = []
    views = []
    for view in (a, b):
        if layout(_matrix(view)) is None:
            copied = operands.temporary(view.shape, view.dtype)
            before.append(operands.copied(operation, view, copied))
            view = copied
        views.append(view)
    target = output
    if layout(_matrix(output)) is None:
        target = operands.temporary(output.shape, output.dtype)
        after.append(operands.copied(operation, target, output))
    views = [view._replace(shape=(*_leading(target, view), *view.shape[-2:]), strides=(
        *broadcast(view._replace(shape=view.shape[:-2], strides=view.strides[:-2]), target.shape[:-2]),
        *view.strides[-2:],
    )) for view in views]
    views, target = _rows_together(views, target)
    dims = canonical(target.shape[:-2], [each.strides[:-2] for each in (target, *views)])
    written, *read = (_matrix(view, own) for view, own in zip((target, *views), dims, strict=True))
    swapped = layout(written)
    assert swapped is not None  # otherwise it was copied
    if swapped.is_transposed:  # c.T = b.T @ a.T
        written, *read = (_transposed(access) for access in (written, *reversed(read)))
    return [*before, Product(written, tuple(read), operation), *after]


def _rows_together(views: list[View], target: View) -> tuple[list[View], View]:
    """A stack of matrices times one matrix becomes one product of all rows, where the strides allow it."""
    a, b = views
    while len(target.shape) > 2 and b.strides[-3] == 0:
        extents = target.shape[-3], target.shape[-2]
        if any(each.strides[-3] != each.strides[-2] * extents[1] for each in (a, target)):
            break
        a, target = (
            each._replace(
                shape=(*each.shape[:-3], extents[0] * extents[1], each.shape[-1]),
                strides=(*each.strides[:-3], *each.strides[-2:]),
            )
            for each in (a, target)
        )
        b = b._replace(shape=(*b.shape[:-3], *b.shape[-2:]), strides=(*b.strides[:-3], *b.strides[-2:]))
    return [a, b], target


def _leading(target: View, view: View) -> tuple[int, ...]:
    shape: tuple[int, ...] = np.broadcast_shapes(target.shape[:-2], view.shape[:-2])
    if shape != target.shape[:-2]:
        raise CannotLower("a product that isn't as large as its factors")
    return shape


def _matrix(view: View, dims: tuple[tuple[int, int], ...] = ()) -> Access:
    span = tuple(zip(view.shape[-2:], view.strides[-2:], strict=True))
    return Access(view.storage, view.offset, dims, view.dtype, span)


def _transposed(access: Access) -> Access:
    return Access(access.storage, access.offset, access.dims, access.dtype, access.span[::-1])
