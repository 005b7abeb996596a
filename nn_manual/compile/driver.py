"""Runs a program: step by step, one call after the other, and the pieces of long loops side by side.

Pieces are handed out through a control block in memory. Its counter has three numbers in it: the number of the loop,
how many pieces it has, and the number of the next piece. Whoever increases the counter has this piece: so a thread that
comes late can't take a piece of another loop than the one it has seen, and waits for none that nobody has.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from nn_manual.compile.atomics import add, give_way, load, pause, replace_if, store
from nn_manual.compile.intrinsics import Generate, i8_at
from nn_manual.machine_code import machine_code

#: The entries of a control block, in bytes from its beginning. The counter, what is done and the number of the run
#: have lines of the cache of their own: several threads look at them all the time.
COUNTER, DONE, RUN, FUNCTION, ARGUMENTS, EXTENT, SIZE = 0, 64, 128, 192, 200, 208, 216
CONTROL_BYTES = 256
#: The bits of a number of pieces in the counter.
BITS = 16
MOST_PIECES = (1 << BITS) - 1
#: The number of a loop stays below this one, and begins again: no thread is so many loops late.
MOST_LOOPS = 1 << 30
#: A thread that has waited so many times lets others have its core: some 100 microseconds.
PATIENCE = 2048


@intrinsic
def _call(typing: Any, address: Any, arguments: Any, first: Any, last: Any) -> tuple[Any, Generate]:  # noqa: ARG001 - numba's signature
    """Calls the function at an address, and returns its result."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        integer = ir.IntType(64)
        kinds = [integer.as_pointer(), integer, integer]
        function = builder.inttoptr(arguments[0], ir.FunctionType(integer, kinds).as_pointer())
        return builder.call(function, [builder.inttoptr(arguments[1], kinds[0]), *arguments[2:]])

    return types.int64(*(types.int64,) * 4), generate


@machine_code("void(int64, int64)", error_model="numpy", nogil=True)
def _run_piece(control: int, number: int) -> None:
    """Run a piece of the loop in the control block."""
    entry = i8_at(control)
    size, extent = entry[SIZE // 8], entry[EXTENT // 8]
    first = number * size
    _call(entry[FUNCTION // 8], entry[ARGUMENTS // 8], first, min(extent, first + size))
    add(control + DONE, 1)


@machine_code("void(int64, int64)", error_model="numpy", nogil=True)
def help_run(control: int, number: int) -> None:
    """Run pieces of the loops that come into a control block, while it has this number of a run."""
    num_waits = 0
    while True:
        counter = load(control + COUNTER)
        if counter & MOST_PIECES < counter >> BITS & MOST_PIECES:
            if replace_if(control + COUNTER, counter, counter + 1):
                _run_piece(control, counter & MOST_PIECES)
                num_waits = 0
        elif load(control + RUN) != number:
            return
        else:
            num_waits += 1
            pause()
            if num_waits > PATIENCE:
                give_way()


@machine_code("void(int64, int64, int64, int64, int64)", error_model="numpy", nogil=True)
def _side_by_side(control: int, function: int, arguments: int, extent: int, size: int) -> None:
    """Run a loop of `extent` iterations in pieces of `size`, with the help of whoever looks at the control block."""
    entry, count = i8_at(control), (extent + size - 1) // size
    loop = (load(control + COUNTER) >> 2 * BITS) + 1
    if loop >= MOST_LOOPS:
        loop = 0
    entry[FUNCTION // 8], entry[ARGUMENTS // 8] = function, arguments
    entry[EXTENT // 8], entry[SIZE // 8] = extent, size
    store(control + DONE, 0)
    store(control + COUNTER, loop << 2 * BITS | count << BITS)
    while True:
        counter = load(control + COUNTER)
        if counter & MOST_PIECES >= count:
            break
        if replace_if(control + COUNTER, counter, counter + 1):
            _run_piece(control, counter & MOST_PIECES)
    num_waits = 0
    while load(control + DONE) < count:
        num_waits += 1
        pause()
        if num_waits > PATIENCE:
            give_way()


@machine_code("int64(int64, int64, int64, int64, int64, int64, int64, int64)", error_model="numpy", nogil=True)
def run(
    first: int, last: int, calls: int, num_calls: int, moving: int, num_moving: int, arguments: int, control: int
) -> int:
    """Run the steps from `first` to before `last`. A call that doesn't return 0 ends the run. Returns the step that
    ended it, or `last`.

    `calls` has four integers for each call: the address of the function, the index of its first argument, the extent of
    its outermost loop if that may be cut, and the size of the pieces; 1 and 1 where it may not. `moving` has three
    integers for each argument that moves with the step: its index, its value at step 0, and by how much it grows from
    step to step. `control` is the address of a control block, or 0: then the pieces run one after the other.
    """
    call, move, argument = i8_at(calls), i8_at(moving), i8_at(arguments)
    for step in range(first, last):
        for i in range(num_moving):
            argument[move[3 * i]] = move[3 * i + 1] + step * move[3 * i + 2]
        for i in range(num_calls):
            function, own = call[4 * i], arguments + 8 * call[4 * i + 1]
            extent, size = call[4 * i + 2], call[4 * i + 3]
            if control and size < extent:
                _side_by_side(control, function, own, extent, size)
                continue
            for start in range(0, extent, size):
                if _call(function, own, start, min(extent, start + size)):
                    return step
    return last


#: The kernels that are the same in all programs, by the ends of their names. `check` writes down the loss, and returns
#: 1 if the loss or the gradient isn't finite. Of a product, some rows or columns may be computed. They are texts, so
#: that the cache keeps them: numba can't cache closures.
_TEXTS = {
    "_check": """
@cfunc("int64(CPointer(int64), int64, int64)", error_model="numpy", cache=True)
def entry(arguments, _, __):
    f8_at(arguments[0])[0] = {code}_at(arguments[1])[0]
    is_finite = all_finite({code}_at(arguments[1]), 1) and all_finite({code}_at(arguments[2]), arguments[3])
    return 0 if is_finite else 1
""",
    "_product": """
@cfunc("int64(CPointer(int64), int64, int64)", error_model="numpy", cache=True)
def entry(arguments, _, __):
    {code}_product(
        arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5],
        {code}_at(arguments[6]), arguments[7], {code}_at(arguments[8]), arguments[9],
        {code}(0), {code}_at(arguments[10]), arguments[11],
    )
    return 0
""",
    "_product_rows": """
@cfunc("int64(CPointer(int64), int64, int64)", error_model="numpy", cache=True)
def entry(arguments, first, last):
    a = shifted({code}_at(arguments[6]), first if arguments[1] else first * arguments[7])
    {code}_product(
        arguments[0], arguments[1], arguments[2], last - first, arguments[4], arguments[5],
        a, arguments[7], {code}_at(arguments[8]), arguments[9],
        {code}(0), shifted({code}_at(arguments[10]), first * arguments[11]), arguments[11],
    )
    return 0
""",
    "_product_columns": """
@cfunc("int64(CPointer(int64), int64, int64)", error_model="numpy", cache=True)
def entry(arguments, first, last):
    b = shifted({code}_at(arguments[8]), first * arguments[9] if arguments[2] else first)
    {code}_product(
        arguments[0], arguments[1], arguments[2], arguments[3], last - first, arguments[5],
        {code}_at(arguments[6]), arguments[7], b, arguments[9],
        {code}(0), shifted({code}_at(arguments[10]), first), arguments[11],
    )
    return 0
""",
}


def text_of(kernel: str) -> str:
    """The text of a kernel. `kernel` is the text itself, or the name of one of these: f4_check, f8_product."""
    code, end = kernel[:2], kernel[2:]
    return _TEXTS[end].format(code=code) if end in _TEXTS else kernel
