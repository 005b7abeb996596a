"""Copies that a program makes before and after each step, to one row per step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nn_manual.arrays import Array

#: The kernel that copies bytes. Its arguments: source, destination, number of bytes.
COPY = '''
@cfunc("int64(CPointer(int64), int64, int64)", error_model="numpy", cache=True)
def entry(arguments, _, __):
    source, destination, count = u1_apart(arguments[0]), u1_apart(arguments[1]), arguments[2]
    for i in range(count):
        destination[i] = source[i]
    return 0
'''


class Copies(NamedTuple):
    """What is copied before each step, and what after it: pairs of an array, whose memory stays, and its rows."""

    before: Sequence[tuple[Array, Array]]
    after: Sequence[tuple[Array, Array]]


def with_copies(
    copies: Copies, copy: int, calls: Array, moving: Array, arguments: Array
) -> tuple[Array, Array, Array]:
    """The calls, the moving arguments and all arguments of a program, as the driver takes them, with the copies added.
    `copy` is the address of COPY.
    """
    both = [*copies.before, *copies.after]
    places = len(arguments) + 3 * np.arange(len(both))
    own = np.stack([np.full_like(places, copy), places, *np.ones((2, len(both)), np.int64)], axis=1)
    given = np.array([(array.ctypes.data, rows.ctypes.data, array.nbytes) for array, rows in both], np.int64)
    strides = np.array([rows.strides[0] for _, rows in both], np.int64)
    moving = np.concatenate([moving, np.stack([places + 1, given[:, 1], strides], axis=1)])
    first = len(copies.before)
    return np.concatenate([own[:first], calls, own[first:]]), moving, np.concatenate([arguments, given.ravel()])
