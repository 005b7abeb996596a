"""The inputs of steps as rows of examples: each step puts its own batch together, which is then in the cache."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nn_manual.arrays import Array

#: The title of the kernel below.
BATCH = "a batch, of rows of the examples"

#: The kernel that puts a batch together. Its arguments: examples, indices, batch, number of rows, and the distance of
#: two examples in words. The number of words in a row stands in its text, so that short rows are copied without a call.
_GATHER = '''
@cfunc("int64(CPointer(int64), int64, int64)", error_model="numpy", cache=True)
def entry(arguments, _, __):
    examples, order, batch = {word}_apart(arguments[0]), i8_apart(arguments[1]), {word}_apart(arguments[2])
    count, stride = arguments[3], arguments[4]
    for i in range(count):
        for j in range({num_words}):
            batch[i * {num_words} + j] = examples[order[i] * stride + j]
    return 0
'''


@dataclass(frozen=True)
class Rows:
    """The inputs of steps: the `examples` with the indices `order`, int64 (steps, batch)."""

    examples: Array
    order: Array

    def __len__(self) -> int:
        return len(self.order)


def gather_of(row: Array) -> str:
    """The text of the kernel for rows of this shape and dtype."""
    return _GATHER.format(word=f"u{row.itemsize}", num_words=row.size)


def with_rows(
    rows: Rows, batch: Array, gather: int, calls: Array, moving: Array, arguments: Array
) -> tuple[Array, Array, Array]:
    """The calls, the moving arguments and all arguments of a program, as the driver takes them, with the call added
    that puts each `batch` together. `gather` is the address of its kernel.
    """
    examples, order, place = rows.examples, rows.order, len(arguments)
    assert batch.nbytes == order.shape[1] * examples[0].nbytes
    own = [examples.ctypes.data, order.ctypes.data, batch.ctypes.data, order.shape[1]]
    own.append(examples.strides[0] // examples.itemsize)
    moved = [(place + 1, order.ctypes.data, order.strides[0])]
    return (
        np.concatenate([[(gather, place, 1, 1)], calls]),
        np.concatenate([moving, moved]),
        np.concatenate([arguments, own]),
    )
