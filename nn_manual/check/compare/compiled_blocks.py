"""The largest difference and magnitude of each row of two arrays, in one pass: machine code of numba.

Without its sign bit, a number has the same order as an unsigned integer as it has by its magnitude, and NaN comes after
infinity. So a largest integer is found, which LLVM does for many numbers at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from nn_manual.machine_code import machine_code

_Generate = Callable[[Any, Any, Any, Any], Any]


@intrinsic
def _row(typing: Any, array: Any, row: Any) -> tuple[Any, _Generate]:  # noqa: ARG001 - numba's signature
    """A pointer to the first number of a row of a matrix."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        own = context.make_array(signature.args[0])(context, builder, arguments[0])
        offset = builder.mul(builder.extract_value(own.strides, 0), arguments[1])
        start = builder.add(builder.ptrtoint(own.data, offset.type), offset)
        return builder.inttoptr(start, context.get_value_type(signature.return_type))

    return types.CPointer(array.dtype)(array, types.intp), generate


@intrinsic
def _magnitude(typing: Any, number: Any) -> tuple[Any, _Generate]:  # noqa: ARG001 - numba's signature
    """The bits of a number without its sign, as an unsigned integer."""
    width = number.bitwidth

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        integer = ir.IntType(width)
        return builder.and_(builder.bitcast(arguments[0], integer), ir.Constant(integer, (1 << width - 1) - 1))

    return (types.uint32 if width == 32 else types.uint64)(number), generate


def _signature(number: Any, integer: Any) -> Any:
    matrix = types.Array(number, 2, "A", readonly=True)  # one that may be written is taken, too
    return types.void(matrix, matrix, integer[:], integer[:])


_SIGNATURES = [_signature(types.float32, types.uint32), _signature(types.float64, types.uint64)]


@machine_code(_SIGNATURES, error_model="numpy", nogil=True)
def largest_magnitudes(ours: Any, reference: Any, absolute: Any, scale: Any) -> None:
    """max|ours - reference| and max|reference| of each row of two matrices, whose rows are contiguous. The results are
    the bits of numbers. Each row has at least one number.
    """
    for i in range(len(ours)):
        own, theirs = _row(ours, i), _row(reference, i)
        largest, magnitude = _magnitude(own[0] - theirs[0]), _magnitude(theirs[0])
        for j in range(1, ours.shape[1]):
            largest = max(largest, _magnitude(own[j] - theirs[j]))
            magnitude = max(magnitude, _magnitude(theirs[j]))
        absolute[i], scale[i] = largest, magnitude
