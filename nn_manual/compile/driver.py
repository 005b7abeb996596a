"""Runs a program: step by step, one call after the other."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from nn_manual.compile.intrinsics import Generate, i8_at


@intrinsic
def _call(typing: Any, address: Any, arguments: Any) -> tuple[Any, Generate]:  # noqa: ARG001 - numba's signature
    """Calls the function at an address, and returns its result."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        integer = ir.IntType(64)
        function = builder.inttoptr(arguments[0], ir.FunctionType(integer, [integer.as_pointer()]).as_pointer())
        return builder.call(function, [builder.inttoptr(arguments[1], integer.as_pointer())])

    return types.int64(types.int64, types.int64), generate


@njit("int64(int64, int64, int64, int64, int64, int64, int64)", error_model="numpy", cache=True)
def run(first: int, last: int, calls: int, num_calls: int, moving: int, num_moving: int, arguments: int) -> int:
    """Run the steps from `first` to before `last`. A call that doesn't return 0 ends the run. Returns the step that
    ended it, or `last`.

    `calls` has two integers for each call: the address of the function, and the index of its first argument.
    `moving` has three integers for each argument that moves with the step: its index, its value at step 0, and by how
    much it grows from step to step.
    """
    call, move, argument = i8_at(calls), i8_at(moving), i8_at(arguments)
    for step in range(first, last):
        for i in range(num_moving):
            argument[move[3 * i]] = move[3 * i + 1] + step * move[3 * i + 2]
        for i in range(num_calls):
            if _call(call[2 * i], arguments + 8 * call[2 * i + 1]):
                return step
    return last


#: The kernels that are the same in all programs, by the ends of their names. `check` writes down the loss, and returns
#: 1 if the loss or the gradient isn't finite. They are texts, so that the cache keeps them: numba can't cache closures.
_TEXTS = {
    "_check": """
@cfunc("int64(CPointer(int64))", error_model="numpy", cache=True)
def entry(arguments):
    f8_at(arguments[0])[0] = {code}_at(arguments[1])[0]
    is_finite = all_finite({code}_at(arguments[1]), 1) and all_finite({code}_at(arguments[2]), arguments[3])
    return 0 if is_finite else 1
""",
    "_product": """
@cfunc("int64(CPointer(int64))", error_model="numpy", cache=True)
def entry(arguments):
    {code}_product(
        arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5],
        {code}_at(arguments[6]), arguments[7], {code}_at(arguments[8]), arguments[9],
        {code}(0), {code}_at(arguments[10]), arguments[11],
    )
    return 0
""",
}


def text_of(kernel: str) -> str:
    """The text of a kernel. `kernel` is the text itself, or the name of one of these: f4_check, f8_product."""
    code, end = kernel[:2], kernel[2:]
    return _TEXTS[end].format(code=code) if end in _TEXTS else kernel
