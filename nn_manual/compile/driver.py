"""What runs a program: one call after the other, step by step."""

from __future__ import annotations

import functools
from typing import Any

from llvmlite import ir
from numba import cfunc, njit, types
from numba.extending import intrinsic

from nn_manual.compile.elementary import all_finite
from nn_manual.compile.intrinsics import (
    Generate,
    f4_at,
    f4_product_32,
    f4_product_64,
    f8_at,
    f8_product_32,
    f8_product_64,
    i8_at,
)

ENTRY = types.int64(types.CPointer(types.int64))


@intrinsic
def _call(typing: Any, address: Any, arguments: Any) -> tuple[Any, Generate]:  # noqa: ARG001 - numba's signature
    """What the function at an address returns."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        integer = ir.IntType(64)
        function = builder.inttoptr(arguments[0], ir.FunctionType(integer, [integer.as_pointer()]).as_pointer())
        return builder.call(function, [builder.inttoptr(arguments[1], integer.as_pointer())])

    return types.int64(types.int64, types.int64), generate


@njit("int64(int64, int64, int64, int64, int64, int64, int64)", error_model="numpy", cache=True)
def run(first: int, last: int, calls: int, num_calls: int, moving: int, num_moving: int, arguments: int) -> int:
    """The steps from `first` up to `last`; returns the step at which a call says that it is the last, or `last`.

    `calls` has two integers for each: the address of the function, and where its arguments begin, in integers.
    `moving` has three for each argument that moves with the step: its place, its value at step 0, and by how much.
    """
    call, move, argument = i8_at(calls), i8_at(moving), i8_at(arguments)
    for step in range(first, last):
        for i in range(num_moving):
            argument[move[3 * i]] = move[3 * i + 1] + step * move[3 * i + 2]
        for i in range(num_calls):
            if _call(call[2 * i], arguments + 8 * call[2 * i + 1]):
                return step
    return last


def _check(at: Any) -> Any:
    @cfunc(ENTRY, error_model="numpy", cache=True)
    def entry(arguments: Any) -> int:
        f8_at(arguments[0])[0] = at(arguments[1])[0]
        is_finite = all_finite(at(arguments[1]), 1) and all_finite(at(arguments[2]), arguments[3])
        return 0 if is_finite else 1

    return entry


def _product(product: Any, at: Any, number: Any) -> Any:
    @cfunc(ENTRY, error_model="numpy", cache=True)
    def entry(arguments: Any) -> int:
        product(
            arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5],
            at(arguments[6]), arguments[7], at(arguments[8]), arguments[9], number(0), at(arguments[10]), arguments[11],
        )
        return 0

    return entry


#: What makes the functions that need no text of their own, by their names and the bits of the BLAS's integers:
#: check keeps the loss, and returns 1 where it or the gradient isn't finite.
_MAKERS: dict[tuple[str, int], Any] = {
    ("f4_check", 64): lambda: _check(f4_at),
    ("f8_check", 64): lambda: _check(f8_at),
    ("f4_product", 64): lambda: _product(f4_product_64, f4_at, types.float32),
    ("f8_product", 64): lambda: _product(f8_product_64, f8_at, types.float64),
    ("f4_product", 32): lambda: _product(f4_product_32, f4_at, types.float32),
    ("f8_product", 32): lambda: _product(f8_product_32, f8_at, types.float64),
}


@functools.cache
def _made(name: str, integer_bits: int) -> Any:
    return _MAKERS[name, 64 if name.endswith("check") else integer_bits]()


def entry(name: str, integer_bits: int) -> int | None:
    """The address of one of them; None for another name."""
    if not name.endswith(("_check", "_product")):
        return None
    address: int = _made(name, integer_bits).address
    return address
