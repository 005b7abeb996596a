"""Lowers an operation of NumPy to nests of loops around what it does with one number."""

from __future__ import annotations

from collections.abc import Callable

from nn_manual.arrays import size_of
from nn_manual.compile import elementwise, indexing
from nn_manual.compile.dims import whole
from nn_manual.compile.nests import External, Leaf
from nn_manual.compile.operands import Operands
from nn_manual.compile.products import product
from nn_manual.compile.reductions import argmax, reduction
from nn_manual.compile.scalar import FUNCTIONS, CannotLower, is_compiled
from nn_manual.trace.trace import TracedOperation, views

#: The functions that lower operations, by name, without reductions and elementwise ufuncs.
OTHERS: dict[str, Callable[[Operands, TracedOperation], list[Leaf]]] = {
    "copyto": elementwise.copyto,
    "where": elementwise.where,
    "concatenate": elementwise.concatenate,
    "take": indexing.take,
    "getitem": indexing.getitem,
    "put": indexing.put,
    "setitem": indexing.setitem,
    "add.at": indexing.add_at,
    "one_hot_product": indexing.one_hot_product,
    "argmax": argmax,
    "argmin": argmax,
    **dict.fromkeys(("matmul", "dot", "vecdot", "vdot", "inner"), product),
}


def nests_of(operands: Operands, operation: TracedOperation) -> list[Leaf]:
    """The leaves of an operation, usually one. An operation without a compiled form becomes an External."""
    try:
        name = operation.name
        if size_of(operation.output.shape) == 0:
            return []
        for view in views((operation.output, operation.arguments, operation.keywords)):
            if not is_compiled(view.dtype):
                raise CannotLower(f"{name} of {view.dtype}")
        if name in OTHERS:
            return OTHERS[name](operands, operation)
        if name.endswith(".reduce"):
            return [reduction(operands, operation)]
        if name in FUNCTIONS:
            return [elementwise.elementwise(operands, operation)]
        raise CannotLower(f"{name} has no compiled form")
    except CannotLower as reason:
        return [_external(operation, str(reason))]


def _external(operation: TracedOperation, reason: str) -> Leaf:
    inputs = tuple(map(whole, views((operation.arguments, operation.keywords))))
    return External(whole(operation.output), inputs, operation, reason=reason)
