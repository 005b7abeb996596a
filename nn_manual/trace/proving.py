"""The proof of a trace: its replay gives what the step gives on other values, and the step keeps no state."""

from __future__ import annotations

import io
import pickle
import types
import zlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from nn_manual.arrays import Array, blocks
from nn_manual.layers.base import Layer
from nn_manual.trace.numpy_replay import StepMemory, run_operation
from nn_manual.trace.trace import CannotTrace, SourcePlace, Trace, sum_of


class Recorded(NamedTuple):
    """A step as it ran: its trace; the methods that returned a plain array, each by the index of an operation that
    takes it; and, where they are kept, a checksum of each operation's output.
    """

    trace: Trace
    origins: dict[int, SourcePlace]
    sums: list[int]


def check_replay(
    replayed: Mapping[str, int], after: Mapping[str, int], given: Mapping[str, Array], record: Callable[[], Recorded]
) -> None:
    """Raise CannotTrace unless the checksums of what a replay of the trace gives, `replayed`, are those of what the
    step gives without a trace, `after`. `record` traces the step on the values `given` and keeps checksums: they show
    which operation read something that no operation had written.
    """
    wrong = [name for name, each in after.items() if replayed[name] != each]
    if not wrong:
        return
    before = {name: array.copy() for name, array in given.items()}
    recorded = record()
    memory = StepMemory(recorded.trace, before)
    with np.errstate(all="ignore"):
        for operation, expected in zip(recorded.trace.operations, recorded.sums, strict=True):
            run_operation(operation, memory.array_at)
            if sum_of(memory.array_at(operation.output)) != expected:
                what = "takes what was written in a way that isn't traced"
                raise CannotTrace(f"{operation.place}: {operation.name} {what}")
    raise CannotTrace(
        f"on other values the step gives another {wrong[0]} than its replay: a formula does something else with arrays "
        "that are traced. type(x) is np.ndarray is false there, and isinstance(x, np.ndarray) is true"
    )


def sums_of(arrays: Mapping[str, Array]) -> dict[str, int]:
    """A checksum of each array's numbers: any NaN is NaN, and -0 is 0."""
    return {name: _sum_of_numbers(np.asarray(array)) for name, array in arrays.items()}


def _sum_of_numbers(array: Array) -> int:
    found, flat = 0, array.reshape(-1)
    for block in blocks(flat.size):
        numbers = flat[block]
        if numbers.dtype.kind == "f":
            numbers = np.where(np.isnan(numbers), np.nan, numbers + 0).astype(numbers.dtype)
        found = zlib.crc32(np.ascontiguousarray(numbers).view(np.uint8).data, found)
    return found


def check_state(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> None:
    """Raise CannotTrace if a layer, a loss or an optimizer keeps a state of its own, as a counter or a generator."""
    for name, state in after.items():
        if before.get(name) != state:
            raise CannotTrace(
                f"{name} changes from step to step: what a step keeps for the next is a buffer, and random numbers are "
                "noise"
            )


def fingerprint(value: Any) -> bytes:
    """Bytes that are the same for the same state of `value`; b"" for what can't be pickled."""
    stream = io.BytesIO()
    try:
        _Pickler(stream).dump(value)
    except (TypeError, AttributeError, pickle.PicklingError):  # no state that we could see
        return b""
    return stream.getvalue()


class _Pickler(pickle.Pickler):
    def persistent_id(self, value: Any) -> Any:
        """Arrays of the step are compared in the traces, other arrays by their checksums, and each layer by itself."""
        if isinstance(value, np.ndarray | Layer | types.FunctionType | types.MethodType | types.SimpleNamespace):
            return type(value).__name__, sum_of(value) if type(value) is np.ndarray else 0
        return None
