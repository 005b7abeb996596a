"""Lowers elementwise operations, copies among them, to nests of loops."""

from __future__ import annotations

from typing import Any

import numpy as np

from nn_manual.compile.dims import plain
from nn_manual.compile.nests import Leaf
from nn_manual.compile.operands import Operands
from nn_manual.compile.scalar import BOOL, CannotLower, is_compiled
from nn_manual.trace.trace import FixedValue, TracedOperation, View


def elementwise(operands: Operands, operation: TracedOperation) -> Leaf:
    """A ufunc, element by element."""
    arguments, output = operation.arguments, operation.output
    views, literals = operands.operands(arguments)
    if operation.keywords.keys() - {"casting", "subok", "dtype", "order"}:
        raise CannotLower(f"{operation.name} has {', '.join(operation.keywords)}")
    if operation.name == "multiply" and len(views) == 2 and not literals:
        masked = _masked(operands, operation, views)
        if masked is not None:
            return masked
    dtypes = _dtypes(operation, views, dict(literals))
    return operands.map(operation, operation.name, views, literals, dtypes, output)


def _masked(operands: Operands, operation: TracedOperation, views: list[View]) -> Leaf | None:
    """Bits of floats, as integers, times a bool: where(mask, float, 0). None if the operation is something else."""
    (bits, mask), output = sorted(views, key=lambda view: view.dtype == BOOL), operation.output
    if mask.dtype != BOOL or bits.dtype.kind != "i" or output.dtype != bits.dtype:
        return None
    floating = np.dtype(f"f{bits.dtype.itemsize}") if bits.dtype.itemsize in (4, 8) else bits.dtype
    if not any((view.storage, floating) in operands.floats for view in (bits, output)):
        floating = bits.dtype
    views = [mask, bits._replace(dtype=floating)]
    dtypes = (BOOL, floating, floating, floating)
    return operands.map(
        operation, "where", views, [(2, floating.type(0))], dtypes, output._replace(dtype=floating)
    )


def copyto(operands: Operands, operation: TracedOperation) -> list[Leaf]:
    """A copy, also to another dtype, or where a mask is true."""
    if operation.is_in_place:  # with a mask
        target, *others = operation.arguments
        mask = operation.keywords.get("where")
        if not isinstance(mask, View) or mask.dtype != BOOL:
            raise CannotLower("copyto has a mask that isn't traced")
        views, literals = operands.operands([mask, *others, target])
        dtypes = (BOOL, target.dtype, target.dtype, target.dtype)
        return [operands.map(operation, "where", views, literals, dtypes, target)]
    views, literals = operands.operands(operation.arguments)
    source = views[0].dtype if views else np.result_type(literals[0][1])
    if source.kind == "f" and operation.output.dtype.kind not in "f":
        raise CannotLower("a float becomes an integer")
    own = (operation.output.dtype, operation.output.dtype)
    return [operands.map(operation, "copyto", views, literals, own, operation.output)]


def where(operands: Operands, operation: TracedOperation) -> list[Leaf]:
    """np.where with three arguments."""
    views, literals = operands.operands(operation.arguments)
    if len(operation.arguments) != 3 or views[0].dtype != BOOL:
        raise CannotLower("where has no bool")
    dtype = operation.output.dtype
    return [operands.map(operation, "where", views, literals, (BOOL, dtype, dtype, dtype), operation.output)]


def concatenate(operands: Operands, operation: TracedOperation) -> list[Leaf]:
    """Concatenation: a copy of each array."""
    parts, *rest = operation.arguments
    axis = operation.keywords.get("axis", FixedValue(rest[0].value if rest else 0)).value
    output, leaves, start = operation.output, [], 0
    if axis is None:
        raise CannotLower("concatenate flattens")
    axis %= len(output.shape)
    for part in parts:
        views, _ = operands.operands([part])
        shape = views[0].shape
        piece = output._replace(
            offset=output.offset + start * output.strides[axis], shape=shape
        )
        leaves.append(operands.map(operation, "copyto", views, [], (output.dtype, output.dtype), piece))
        start += shape[axis]
    return leaves


def _dtypes(operation: TracedOperation, views: list[View], literals: dict[int, Any]) -> tuple[np.dtype[Any], ...]:
    """The dtypes that NumPy casts the operands to, and the dtype of the result."""
    rest = iter(views)
    kinds = [
        (type(literals[i]) if type(literals[i]) in (int, float) else np.result_type(literals[i]))
        if i in literals
        else next(rest).dtype
        for i in range(len(operation.arguments))
    ]
    ufunc = getattr(operation.function, "__self__", operation.function)
    if not isinstance(ufunc, np.ufunc):
        raise CannotLower(f"{operation.name} has no compiled form")
    casting = plain(operation.keywords.get("casting", "same_kind"))
    try:
        resolved = ufunc.resolve_dtypes((*kinds, operation.output.dtype), casting=casting)
    except TypeError:
        raise CannotLower(f"{operation.name} of {kinds}") from None
    if not all(map(is_compiled, resolved)):
        raise CannotLower(f"{operation.name} of {kinds}")
    return tuple(resolved)
