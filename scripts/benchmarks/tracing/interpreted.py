"""Random programs, compiled to kernels whose text Python itself runs: the results must be those of the program.

Every loop that may be cut is cut into its iterations, and the last of them runs first.
numba would take a second for each. The tests of layers test what numba and LLVM make of a kernel.
"""

from __future__ import annotations

import ctypes
import functools
import math
import sys
import time
import unittest.mock
from typing import Any

import numpy as np
import scipy.special

from benchmarks.tracing.drawing import draw_program
from benchmarks.tracing.fuzz import traced
from benchmarks.tracing.programs import Program
from nn_manual.arrays import Array
from nn_manual.compile import parallel
from nn_manual.compile.driver import text_of
from nn_manual.compile.nests import External
from nn_manual.compile.program import Address, KernelCall, program
from nn_manual.compile.program import Program as Compiled
from nn_manual.trace.comparing import check_same
from nn_manual.trace.numpy_replay import run_operation
from nn_manual.trace.trace import CannotTrace, View

NUM_PROGRAMS = 2_000
#: Seconds between two lines on the terminal.
PAUSE = 10
#: The error allowed, as a fraction of an array's largest number, or of 1: sums are added in another order, a program
#: has several sums one after the other, and they may cancel. The faults that were found made errors as large as the
#: numbers.
TOLERANCE = 1e-4


class Pointer:
    """An address, as a kernel sees it."""

    def __init__(self, dtype: str, address: int) -> None:
        self.dtype, self.address = np.dtype(dtype), address

    def _bytes(self, index: int) -> Any:
        size = self.dtype.itemsize
        return (ctypes.c_uint8 * size).from_address(self.address + int(index) * size)

    def __getitem__(self, index: int) -> Any:
        return np.frombuffer(self._bytes(index), self.dtype)[0]

    def __setitem__(self, index: int, value: Any) -> None:
        np.frombuffer(self._bytes(index), self.dtype)[0] = value


def _product(*arguments: Any) -> None:
    """c = a @ b, as a BLAS reads them."""
    _, transpose_a, transpose_b, m, n, k, a, row_a, b, row_b, _, c, row_c = arguments
    first = _matrix(a, (k, m) if transpose_a else (m, k), row_a)
    second = _matrix(b, (n, k) if transpose_b else (k, n), row_b)
    _matrix(c, (m, n), row_c)[...] = (first.T if transpose_a else first) @ (second.T if transpose_b else second)


def _matrix(pointer: Pointer, shape: tuple[int, int], row: int) -> Array:
    size = pointer.dtype.itemsize
    extent = ((shape[0] - 1) * row + shape[1]) * size if all(shape) else 0
    memory: Any = (ctypes.c_uint8 * max(extent, 1)).from_address(pointer.address)
    return np.ndarray(shape, pointer.dtype, memory, 0, (row * size, size))


def _names() -> dict[str, Any]:
    """The names that a kernel's file defines."""
    kinds = ("f4", "f8", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1")
    names: dict[str, Any] = {
        f"{kind}_{end}": functools.partial(Pointer, kind) for kind in kinds for end in ("at", "apart")
    }
    names |= {kind: np.dtype(kind).type for kind in kinds}
    names |= {"no_overlap": lambda: None, "INFINITY": math.inf, "NAN": math.nan}
    names |= {"njit": lambda **_: lambda function: function, "cfunc": lambda *_, **__: lambda function: function}
    names |= {"absolute": np.abs, "square_root": np.sqrt, "maximum": np.maximum, "minimum": np.minimum}
    names |= {"floor": np.floor, "ceil": np.ceil, "rint": np.rint}
    names |= {"largest": np.maximum, "smallest": np.minimum, "add_in_any_order": np.add}
    names |= {"where": lambda condition, a, b: a if condition else b}
    names |= {"shifted": lambda pointer, n: Pointer(pointer.dtype.str, pointer.address + n * pointer.dtype.itemsize)}
    for kind in ("f4", "f8"):
        names[f"{kind}_product"] = _product
        for name in ("exp", "expm1", "log", "log1p", "tanh", "sin", "cos", "sign", "power"):
            names[f"{name}_{kind}"] = getattr(np, name)
        for name in ("expit", "ndtr", "erf", "erfc"):
            names[f"{name}_{kind}"] = getattr(scipy.special, name)
    return names


def run(compiled: Compiled, inputs: dict[str, Array]) -> dict[str, Array]:
    """The results on these inputs."""
    arrays: dict[str, Array] = {name: array.copy() for name, array in inputs.items()}
    arrays |= {"workspace": np.zeros(compiled.num_bytes, np.uint8), **compiled.constants}

    def address(argument: Address | int) -> int:
        if isinstance(argument, int):
            return argument
        return arrays[argument.entry].ctypes.data + argument.offset if argument.entry in arrays else 0

    def view_of(view: View) -> Array:
        if 0 in view.shape:
            return np.empty(view.shape, view.dtype)
        start = address(compiled.where[view.storage])
        memory: Any = (ctypes.c_uint8 * (1 << 20)).from_address(start)
        return np.ndarray(view.shape, view.dtype, memory, view.offset, view.strides)

    for call in compiled.calls:
        if isinstance(call, External):
            run_operation(call.operation, view_of)
            continue
        assert isinstance(call, KernelCall)
        names, extent = _names(), call.apart.extent if call.apart else 1
        exec(text_of(call.kernel), names)
        for first in reversed(range(extent)):
            names["entry"](list(map(address, call.arguments)), first, first + 1)
    return {name: view_of(view).copy() for name, view in compiled.results.items()}


def differs(drawn: Program) -> tuple[str, Compiled | None]:
    """How the compiled program differs on other values; empty if it doesn't, or can't be traced."""
    others = drawn.other_inputs(1)
    try:
        trace = traced(drawn, drawn.inputs)
        check_same(trace, traced(drawn, others), {})
    except CannotTrace:
        return "", None
    expected = drawn.run({name: array.copy() for name, array in others.items()})
    with unittest.mock.patch.multiple(parallel, LEAST_WORK=0, GRAIN=1, PRODUCT_GRAIN=1):
        compiled = program(trace)
    with np.errstate(all="ignore"):
        found = run(compiled, others)
    for name, array in expected.items():
        if name in found and not _close(found[name], np.asarray(array)):
            return f"{name} is {found[name]!r}, not {array!r}", compiled
    return "", compiled


def _close(one: Array, other: Array) -> bool:
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if one.dtype.kind != "f":
        return np.array_equal(one, other)
    largest = np.abs(other[np.isfinite(other)]).max(initial=1)
    return np.allclose(one, other, rtol=TOLERANCE, atol=TOLERANCE * float(largest), equal_nan=True)


def main() -> int:
    """Run all programs. Returns 1 if one differs, else 0."""
    start = said = time.perf_counter()
    wrong, num_calls, num_external = 0, 0, 0
    for seed in range(NUM_PROGRAMS):
        drawn = draw_program(seed)
        difference, compiled = differs(drawn)
        if compiled is not None:
            num_calls, num_external = num_calls + len(compiled.calls), num_external + len(compiled.external)
        if difference:
            wrong += 1
            print(f"seed {seed}: {difference}\n{drawn}\n")
        if time.perf_counter() - said > PAUSE:
            said = time.perf_counter()
            print(f"{seed + 1:,} programs, {wrong} wrong", file=sys.stderr)
    seconds = time.perf_counter() - start
    calls = f"{num_calls:,} calls, {num_external:,} of them NumPy's own"
    print(f"{NUM_PROGRAMS:,} programs, {calls}, in {seconds:.0f} s: {wrong} differ")
    return 1 if wrong else 0
