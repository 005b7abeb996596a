"""What generated kernels need and Python doesn't have: pointers, a fused multiply-add, a choice without a branch.

Each function is a line or two of LLVM. NaN and infinity keep their meaning everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

Generate = Callable[[Any, Any, Any, Any], Any]


def _pointer(dtype: Any) -> Any:
    @intrinsic
    def pointer(typing: Any, address: Any) -> tuple[Any, Generate]:  # noqa: ARG001 - numba's signature
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

        return types.CPointer(dtype)(types.int64), generate

    return pointer


def _pointer_apart(dtype: Any) -> Any:
    @intrinsic
    def pointer(typing: Any, address: Any) -> tuple[Any, Generate]:  # noqa: ARG001 - numba's signature
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            # "noalias" on a function's result promises that its memory overlaps with no other, as fresh memory does.
            # llvmlite has no other place for this promise. The first of these two functions is no instruction at all,
            # but LLVM can't know. The second shows the pointer to code outside: otherwise LLVM would drop writes to
            # memory that nobody else could read.
            kind = context.get_value_type(signature.return_type)
            same = ir.InlineAsm(ir.FunctionType(kind, [ir.IntType(64)]), "", "=r,0", side_effect=False)
            shown = ir.InlineAsm(ir.FunctionType(ir.VoidType(), [kind]), "", "r", side_effect=True)
            place = builder.call(same, arguments, cconv="ccc noalias", attrs=("readnone", "nounwind"))
            builder.call(shown, [place])
            return place

        return types.CPointer(dtype)(types.int64), generate

    return pointer


#: Turn an address, an int64, into a pointer to numbers. A bool is a byte.
f4_at, f8_at = _pointer(types.float32), _pointer(types.float64)
i8_at, i4_at, i2_at, i1_at = (_pointer(dtype) for dtype in (types.int64, types.int32, types.int16, types.int8))
u8_at, u4_at, u2_at, u1_at = (_pointer(dtype) for dtype in (types.uint64, types.uint32, types.uint16, types.uint8))

#: The same, with the promise that no other pointer in the function leads to this memory.
f4_apart, f8_apart = _pointer_apart(types.float32), _pointer_apart(types.float64)
i8_apart, i4_apart, i2_apart, i1_apart = map(_pointer_apart, (types.int64, types.int32, types.int16, types.int8))
u8_apart, u4_apart, u2_apart, u1_apart = map(_pointer_apart, (types.uint64, types.uint32, types.uint16, types.uint8))


@intrinsic
def no_overlap(typing: Any) -> tuple[Any, Generate]:  # noqa: ARG001 - numba's signature
    """Promise that no two pointer arguments of the surrounding function lead to the same memory."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        for argument in builder.function.args:
            if isinstance(argument.type, ir.PointerType):
                argument.add_attribute("noalias")
        return context.get_dummy_value()

    return types.none(), generate


def _of_llvm(name: str, count: int) -> Any:
    """A function of LLVM, with `count` arguments of one type."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        dtype = arguments[0].type
        suffix = "f32" if dtype == ir.FloatType() else "f64"
        function_type = ir.FunctionType(dtype, [dtype] * count)
        function = builder.module.globals.get(f"{name}.{suffix}") or ir.Function(
            builder.module, function_type, f"{name}.{suffix}"
        )
        return builder.call(function, arguments)

    return generate


@intrinsic
def multiply_add(typing: Any, a: Any, b: Any, c: Any) -> tuple[Any, Generate]:  # noqa: ARG001
    """a * b + c, rounded once where the processor can."""
    return a(a, a, a), _of_llvm("llvm.fmuladd", 3)


@intrinsic
def absolute(typing: Any, a: Any) -> tuple[Any, Generate]:  # noqa: ARG001
    """|a|."""
    return a(a), _of_llvm("llvm.fabs", 1)


@intrinsic
def square_root(typing: Any, a: Any) -> tuple[Any, Generate]:  # noqa: ARG001
    """The square root; NaN of a number below 0."""
    return a(a), _of_llvm("llvm.sqrt", 1)


@intrinsic
def with_sign(typing: Any, a: Any, b: Any) -> tuple[Any, Generate]:  # noqa: ARG001
    """|a| with the sign of b."""
    return a(a, a), _of_llvm("llvm.copysign", 2)


@intrinsic
def add_in_any_order(typing: Any, a: Any, b: Any) -> tuple[Any, Generate]:  # noqa: ARG001
    """a + b, in a sum whose terms may be added in any order: so a loop can add vectors."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        if isinstance(arguments[0].type, ir.IntType):
            return builder.add(*arguments)
        return builder.fadd(*arguments, flags=["reassoc"])

    return a(a, a), generate


def _choice(comparison: str) -> Any:
    """a if a compares so with b, or if a is NaN; otherwise b. So NaN stays."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        a, b = arguments
        if isinstance(a.type, ir.IntType):
            compare = builder.icmp_signed if signature.return_type.signed else builder.icmp_unsigned
            return builder.select(compare(comparison, a, b), a, b)
        is_first = builder.or_(builder.fcmp_ordered(comparison, a, b), builder.fcmp_unordered("uno", a, a))
        return builder.select(is_first, a, b)

    return generate


@intrinsic
def maximum(typing: Any, a: Any, b: Any) -> tuple[Any, Generate]:  # noqa: ARG001
    """As np.maximum."""
    return a(a, a), _choice(">=")


@intrinsic
def minimum(typing: Any, a: Any, b: Any) -> tuple[Any, Generate]:  # noqa: ARG001
    """As np.minimum."""
    return a(a, a), _choice("<=")


@intrinsic
def largest(typing: Any, a: Any, b: Any) -> tuple[Any, Generate]:  # noqa: ARG001
    """As np.maximum, in a form that loops can run on vectors; -0 is below 0."""
    return a(a, a), _of_llvm("llvm.maximum", 2) if isinstance(a, types.Float) else _choice(">=")


@intrinsic
def smallest(typing: Any, a: Any, b: Any) -> tuple[Any, Generate]:  # noqa: ARG001
    """As np.minimum, in a form that loops can run on vectors; -0 is below 0."""
    return a(a, a), _of_llvm("llvm.minimum", 2) if isinstance(a, types.Float) else _choice("<=")


@intrinsic
def where(typing: Any, condition: Any, a: Any, b: Any) -> tuple[Any, Generate]:  # noqa: ARG001
    """a if condition else b, without a branch: both are computed."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        return builder.select(*arguments)

    return a(types.boolean, a, a), generate


@intrinsic
def bits_of(typing: Any, a: Any) -> tuple[Any, Generate]:  # noqa: ARG001
    """The bits of a float64 as an int64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


@intrinsic
def float_of(typing: Any, a: Any) -> tuple[Any, Generate]:  # noqa: ARG001
    """The float64 with these bits, an int64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


#: 1.5 * 2**23. A float32 near it is a whole number: SHIFT + n has the bits of n as its last bits.
SHIFT = 12582912.0


@intrinsic
def times_power_of_two(typing: Any, a: Any, shifted: Any) -> tuple[Any, Generate]:  # noqa: ARG001
    """a * 2**n in float32, where shifted = SHIFT + n and n is from -252 to 254. It multiplies by two powers, each small
    enough for float32.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        integer = ir.IntType(32)
        result, shifted = arguments
        power = builder.sub(builder.bitcast(shifted, integer), integer(0x4B400000))  # the bits of SHIFT
        half = builder.ashr(power, integer(1))
        for part in (half, builder.sub(power, half)):
            exponent = builder.shl(builder.add(part, integer(127)), integer(23))
            result = builder.fmul(result, builder.bitcast(exponent, ir.FloatType()))
        return result

    return a(a, a), generate


@intrinsic
def shifted(typing: Any, pointer: Any, count: Any) -> tuple[Any, Generate]:  # noqa: ARG001 - numba's signature
    """The pointer `count` elements further."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        return builder.gep(arguments[0], [arguments[1]])

    return pointer(pointer, types.int64), generate
