"""Lowers operations that read or write at indices to nests of loops."""

from __future__ import annotations

from typing import Any

from nn_manual.arrays import size_of
from nn_manual.compile.dims import broadcast, canonical, flattened, plain
from nn_manual.compile.nests import Access, Compute, Leaf
from nn_manual.compile.operands import Operands
from nn_manual.compile.scalar import CannotLower
from nn_manual.trace.trace import TracedOperation, View


def take(operands: Operands, operation: TracedOperation) -> list[Leaf]:  # noqa: ARG001 - the signature of all of them
    """np.take: the elements or rows of an array at indices."""
    array, indices, *_ = operation.arguments
    axis = plain(operation.keywords.get("axis", (*operation.arguments, None, None)[2]))
    if not isinstance(array, View) or not isinstance(indices, View):
        raise CannotLower("take of what isn't traced")
    if axis is None:
        array = flattened(array)
        axis = 0
    return [_gather(operation, array, indices, axis)]


def getitem(operands: Operands, operation: TracedOperation) -> list[Leaf]:
    """array[indices]: the rows of an array at indices."""
    array, key = operation.arguments
    index = _one_index(key)
    (array,), _ = operands.operands([array])
    return [_gather(operation, array, index, 0)]


def _gather(operation: TracedOperation, array: View, indices: View, axis: int) -> Leaf:
    """output[before, indices, after] = array[before, at the index, after]."""
    output, axis = operation.output, axis % len(array.shape)
    num_indices = len(indices.shape)
    after = len(array.shape) - axis - 1
    array_strides = (*array.strides[:axis], *(0,) * num_indices, *array.strides[axis + 1 :])
    index_strides = (*(0,) * axis, *indices.strides, *(0,) * after)
    dims = canonical(output.shape, [output.strides, array_strides, index_strides])
    index = Access(indices.storage, indices.offset, dims[2], indices.dtype)
    span = ((array.shape[axis], array.strides[axis]),)
    read = Access(
        array.storage, array.offset, dims[1], array.dtype, span, (index, array.strides[axis], array.shape[axis])
    )
    written = Access(output.storage, output.offset, dims[0], output.dtype)
    return Compute(written, (read,), operation, "copyto", (), (output.dtype,) * 2)


def put(operands: Operands, operation: TracedOperation) -> list[Leaf]:
    """np.put: writes elements of an array at indices."""
    array, indices, values, *_ = operation.arguments
    if not isinstance(indices, View):
        raise CannotLower("put at what isn't traced")
    return [_scatter(operands, operation, flattened(array), indices, values, "")]


def setitem(operands: Operands, operation: TracedOperation) -> list[Leaf]:
    """array[indices] = values: writes rows of an array at indices."""
    array, key, values = operation.arguments
    return [_scatter(operands, operation, array, _one_index(key), values, "")]


def add_at(operands: Operands, operation: TracedOperation) -> list[Leaf]:
    """np.add.at: adds to rows of an array at indices, one after the other."""
    array, key, values = operation.arguments
    return [_scatter(operands, operation, array, _one_index(key), values, "add")]


def one_hot_product(operands: Operands, operation: TracedOperation) -> list[Leaf]:
    """one_hot.T @ values: adds each row of values to the row of zeros that its index says."""
    indices, values, _ = operation.arguments
    output, zero = operation.output, (0, 0)
    dtypes = (output.dtype, output.dtype)
    zeros = operands.map(operation, "copyto", [], [zero], dtypes, output)
    return [zeros, _scatter(operands, operation, output, indices, values, "add")]


def _scatter(
    operands: Operands, operation: TracedOperation, array: View, indices: View, values: Any, reduction: str
) -> Leaf:
    """array[index, after] = values[indices, after]; with "add" for `reduction`, += instead. One index after the other.
    """
    views, literals = operands.operands([values])
    shape = (*indices.shape, *array.shape[1:])
    after = len(array.shape) - 1
    rows = [broadcast(view, shape) for view in views]
    array_strides = (*(0,) * len(indices.shape), *array.strides[1:])
    index_strides = (*indices.strides, *(0,) * after)
    order = tuple(size_of(shape[i + 1 :]) for i in range(len(shape)))  # the order of the indices counts
    dims = canonical(shape, [order, array_strides, index_strides, *rows])
    index = Access(indices.storage, indices.offset, dims[2], indices.dtype)
    span = ((array.shape[0], array.strides[0]),)
    written = Access(
        array.storage, array.offset, dims[1], array.dtype, span, (index, array.strides[0], array.shape[0])
    )
    accesses = [
        Access(view.storage, view.offset, its, view.dtype) for view, its in zip(views, dims[3:], strict=True)
    ]
    if reduction:
        literals = [(position + 1, value) for position, value in literals]
        dtypes = (array.dtype,) * 3
        return Compute(written, (written, *accesses), operation, reduction, tuple(literals), dtypes)
    return Compute(written, tuple(accesses), operation, "copyto", tuple(literals), (array.dtype,) * 2)


def _one_index(key: Any) -> View:
    """The array of integers that is the key. Raises CannotLower for any other key."""
    if isinstance(key, tuple) and len(key) == 1:
        key = key[0]
    if not isinstance(key, View) or key.dtype.kind != "i":
        raise CannotLower("an index of several parts")
    return key
