"""The matrix product of a BLAS, called at its address by a generated file."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from nn_manual.compile.intrinsics import Generate


def _product(dtype: Any, integer: Any) -> Any:
    """A call of cblas_?gemm at an address: c = a @ b + beta * c, row major."""
    ints = (types.int64,) * 8  # six of them: address, transpose_a, transpose_b, m, n, k
    pointer = types.CPointer(dtype)

    @intrinsic
    def product(
        typing: Any, address: Any, transpose_a: Any, transpose_b: Any, m: Any, n: Any, k: Any,  # noqa: ARG001
        a: Any, row_a: Any, b: Any, row_b: Any, beta: Any, c: Any, row_c: Any,  # noqa: ARG001
    ) -> tuple[Any, Generate]:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
            enum, size, real = ir.IntType(32), ir.IntType(integer), context.get_value_type(dtype)
            place = context.get_value_type(pointer)
            address, transpose_a, transpose_b, m, n, k, a, row_a, b, row_b, beta, c, row_c = arguments

            def sized(value: Any) -> Any:
                return value if integer == 64 else builder.trunc(value, size)

            kinds = [enum, enum, enum, size, size, size, real, place, size, place, size, real, place, size]
            function = builder.inttoptr(address, ir.FunctionType(ir.VoidType(), kinds).as_pointer())
            transposed = [
                builder.select(builder.icmp_signed("!=", flag, flag.type(0)), enum(112), enum(111))
                for flag in (transpose_a, transpose_b)
            ]
            values = [enum(101), *transposed, sized(m), sized(n), sized(k), real(1), a, sized(row_a), b, sized(row_b)]
            builder.call(function, [*values, beta, c, sized(row_c)])
            return context.get_dummy_value()

        of_matrices = (pointer, types.int64, pointer, types.int64, dtype, pointer, types.int64)
        return types.none(*ints[:6], *of_matrices), generate

    return product


#: By the dtype and the bits of the library's integers.
f4_product_64, f8_product_64 = _product(types.float32, 64), _product(types.float64, 64)
f4_product_32, f8_product_32 = _product(types.float32, 32), _product(types.float64, 32)
