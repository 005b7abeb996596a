"""What threads need that share memory: loads and stores in an order, and ways to wait."""

from __future__ import annotations

import platform
import sys
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from nn_manual.compile.intrinsics import Generate


def _at(builder: Any, address: Any) -> Any:
    return builder.inttoptr(address, ir.IntType(64).as_pointer())


@intrinsic
def load(typing: Any, address: Any) -> tuple[Any, Generate]:  # noqa: ARG001
    """The integer at an address, and all that was written before it was stored."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        return builder.load_atomic(_at(builder, arguments[0]), "acquire", 8)

    return types.int64(types.int64), generate


@intrinsic
def store(typing: Any, address: Any, value: Any) -> tuple[Any, Generate]:  # noqa: ARG001
    """Stores an integer after all that was written before."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        builder.store_atomic(arguments[1], _at(builder, arguments[0]), "release", 8)
        return context.get_dummy_value()

    return types.none(types.int64, types.int64), generate


@intrinsic
def add(typing: Any, address: Any, value: Any) -> tuple[Any, Generate]:  # noqa: ARG001
    """Adds to the integer at an address; returns what it was."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        return builder.atomic_rmw("add", _at(builder, arguments[0]), arguments[1], "acq_rel")

    return types.int64(types.int64, types.int64), generate


@intrinsic
def replace_if(typing: Any, address: Any, before: Any, after: Any) -> tuple[Any, Generate]:  # noqa: ARG001
    """Writes `after` in the place of `before`; returns whether `before` was there."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        address, before, after = arguments
        result = builder.cmpxchg(_at(builder, address), before, after, "acq_rel", "acquire")
        return builder.extract_value(result, 1)

    return types.boolean(*(types.int64,) * 3), generate


@intrinsic
def pause(typing: Any) -> tuple[Any, Generate]:  # noqa: ARG001
    """Says to the processor that this thread waits, where LLVM has a name for it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        if platform.machine() in ("x86_64", "AMD64"):
            _call_named(builder, "llvm.x86.sse2.pause", ir.VoidType())
        return context.get_dummy_value()

    return types.none(), generate


def _call_named(builder: Any, name: str, result: Any) -> None:
    """A call of a function without arguments."""
    function = builder.module.globals.get(name) or ir.Function(builder.module, ir.FunctionType(result, []), name)
    builder.call(function, [])


@intrinsic
def give_way(typing: Any) -> tuple[Any, Generate]:  # noqa: ARG001
    """Lets another thread have the core, where the system has POSIX's call for that."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        if sys.platform != "win32":
            _call_named(builder, "sched_yield", ir.IntType(32))
        return context.get_dummy_value()

    return types.none(), generate
