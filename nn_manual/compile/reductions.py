"""Lowers reductions to nests of loops."""

from __future__ import annotations

from typing import Any

import numpy as np

from nn_manual.compile.dims import axes_of, canonical, check_overlap, plain
from nn_manual.compile.nests import Access, Compute, Leaf
from nn_manual.compile.operands import Operands
from nn_manual.compile.scalar import BOOL, CannotLower
from nn_manual.trace.trace import TracedOperation, View

#: The initial value of a reduction, by its dtype.
REDUCTIONS: dict[str, Any] = {
    "add": lambda dtype: dtype.type(0),
    "multiply": lambda dtype: dtype.type(1),
    "maximum": lambda dtype: dtype.type(-np.inf) if dtype.kind == "f" else np.iinfo(dtype).min,
    "minimum": lambda dtype: dtype.type(np.inf) if dtype.kind == "f" else np.iinfo(dtype).max,
    "argmax": lambda dtype: 0,  # noqa: ARG005 - an index
}


def reduction(operands: Operands, operation: TracedOperation) -> Leaf:
    """The reduce method of a ufunc."""
    function = operation.name.removesuffix(".reduce")
    keywords = {name: plain(value) for name, value in operation.keywords.items()}
    arguments = [operation.arguments[0]]
    if function not in REDUCTIONS or len(operation.arguments) > 1 or keywords.get("where", True) is not True:
        raise CannotLower(f"{operation.name} has no compiled form")
    if keywords.get("initial") is not None:
        raise CannotLower(f"{operation.name} has an initial value")
    (view,), _ = operands.operands(arguments)
    output = operation.output
    if output.dtype == BOOL or (output.dtype.kind in "iu" and output.dtype != np.int64):
        raise CannotLower(f"{operation.name} to {output.dtype}")
    if function == "add" and output.dtype != view.dtype and view.dtype.kind == "f":
        raise CannotLower("a sum in another dtype")
    axes = axes_of(keywords.get("axis", 0), len(view.shape))
    return reduced(operation, "copyto", [view], axes, function, bool(keywords.get("keepdims")))


def reduced(
    operation: TracedOperation, function: str, views: list[View], axes: tuple[int, ...], reduction: str,
    keepdims: bool,
) -> Leaf:
    """A leaf that reduces a function of views, which have one shape."""
    output, shape = operation.output, views[0].shape
    kept = [(1 if axis in axes else extent) for axis, extent in enumerate(shape) if keepdims or axis not in axes]
    if list(output.shape) != kept:
        raise CannotLower(f"{operation.name} into a larger array")
    own = iter(output.strides)
    strides = []
    for axis in range(len(shape)):
        if axis in axes:
            strides.append(0)
            if keepdims:
                next(own)
        else:
            strides.append(next(own))
    for view in views:
        check_overlap(view, output, may_be_same=False)
    output_dims, *dims = canonical(shape, [tuple(strides), *(view.strides for view in views)], leading=1)
    dtype = output.dtype
    if not any(not stride for _, stride in output_dims):  # each reduced axis has one element
        reduction = ""
    written = Access(output.storage, output.offset, output_dims, dtype)
    accesses = tuple(
        Access(view.storage, view.offset, its, view.dtype) for view, its in zip(views, dims, strict=True)
    )
    initial = REDUCTIONS[reduction](dtype) if reduction else None
    return Compute(written, accesses, operation, function, (), (dtype,) * (len(views) + 1), reduction, initial)


def argmax(operands: Operands, operation: TracedOperation) -> list[Leaf]:
    """argmax or argmin."""
    view, axis, *_ = (*operation.arguments, None)
    axis = plain(operation.keywords.get("axis", axis))
    keepdims = bool(plain(operation.keywords.get("keepdims", False)))
    if not isinstance(view, View) or view.dtype.kind != "f" or axis is None or not view.shape:
        raise CannotLower(f"{operation.name} has no compiled form")
    axis %= len(view.shape)
    if axis != len(view.shape) - 1:
        raise CannotLower(f"{operation.name} along another axis than the last")
    if view.shape[-1] == 1:
        return [operands.map(operation, "copyto", [], [(0, 0)], (np.dtype(np.int64),) * 2, operation.output)]
    leaf = reduced(operation, "copyto", [view], (axis,), "argmax", keepdims)
    assert isinstance(leaf, Compute)
    dtypes = (view.dtype, view.dtype)
    order = leaf.output.dims[-1][1] == 0 and sum(not stride for _, stride in leaf.output.dims) == 1
    if not order:
        raise CannotLower("argmax of an array whose last axis isn't the innermost")
    return [Compute(leaf.output, leaf.inputs, operation, "copyto", (), dtypes, operation.name, 0)]
