"""Whether two traces of one step, on different values, are the same."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nn_manual.trace.trace import CannotTrace, FixedValue, SourcePlace, Trace, TracedOperation, leaves, views

#: Why a value that the step was given became a constant, and how to avoid it. It follows "takes" or "it returns".
LOST = (
    "an array that lost its trace, or a value as a number. Keep it: write x to np.zeros_like(x, shape=...), not to "
    "np.zeros(...), look x up in np.array(table, like=x)[x], not in table[x], draw random numbers as noise, and take "
    "what a schedule moves from coefficients"
)


def check_same(trace: Trace, other: Trace, origins: Mapping[int, SourcePlace]) -> None:
    """Raise CannotTrace where two traces of the same step, on different values, differ. Then the values decide what the
    step does, or one of them was recorded as a constant. `origins` has the methods that returned a plain array, by the
    index of an operation that takes this array.
    """
    for index, (storage, its_storage) in enumerate(zip(trace.storages, other.storages, strict=False)):
        if not np.array_equal(storage.initial, its_storage.initial):  # type: ignore[arg-type]  # None equals None
            operations = enumerate(trace.operations)
            place, reader = next((i, o) for i, o in operations if any(v.storage == index for v in views(o.arguments)))
            raise CannotTrace(f"{_taker(reader, origins.get(place))} {LOST}")
    for index, (own, its) in enumerate(zip(trace.operations, other.operations, strict=False)):
        _check_same_operation(own, its, origins.get(index))
    if len(trace.operations) != len(other.operations):
        shorter, longer = sorted((trace.operations, other.operations), key=len)
        raise CannotTrace(f"{longer[len(shorter)].place}: on other values, or in another step, it is left out")


def _check_same_operation(own: TracedOperation, its: TracedOperation, origin: SourcePlace | None) -> None:
    if (own.name, own.place) != (its.name, its.place):
        raise CannotTrace(f"{own.place}: on other values, or in another step, it does something else")
    own_leaves, its_leaves = (list(leaves((each.arguments, each.keywords, each.output))) for each in (own, its))
    if len(own_leaves) != len(its_leaves):
        raise CannotTrace(f"{own.place}: on other values, or in another step, {own.name} takes other arrays")
    for argument, its_argument in zip(own_leaves, its_leaves, strict=True):
        if isinstance(argument, FixedValue) and isinstance(its_argument, FixedValue):
            if not argument.is_same(its_argument):
                raise CannotTrace(f"{_taker(own, origin)} {LOST}")
        elif argument != its_argument:
            raise CannotTrace(f"{own.place}: on other values, or in another step, {own.name} takes other arrays")


def _taker(operation: TracedOperation, origin: SourcePlace | None) -> str:
    """Where the array comes from, if that is known, or else what takes it."""
    return f"{operation.place}: {operation.name} takes" if origin is None else f"{origin}: it returns"
