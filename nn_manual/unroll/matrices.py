"""Large matrices of layers that make images of another size: a call that makes one, in place of all its numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from nn_manual.arrays import Array

#: A matrix with more numbers isn't written out, if one of the functions makes it.
MOST_NUMBERS = 100

#: The functions' sources, in NumPy alone. Place i of the output is step * (i + shift) - shift in the input.
SOURCES = {
    "mean_matrix": '''\
def mean_matrix(size, output_size, dtype):
    """Times a vector of this size: the means of its bins. Bins overlap if the sizes don't divide each other."""
    number, place = np.arange(output_size)[:, np.newaxis], np.arange(size)
    first, end = number * size // output_size, -(-(number + 1) * size // output_size)
    return (((first <= place) & (place < end)) / (end - first)).astype(dtype)''',
    "nearest_matrix": '''\
def nearest_matrix(size, output_size, step, dtype):
    """Times a vector of this size: at each place of the output, step * i, the number before it."""
    place = np.arange(output_size, dtype=np.float32) * np.float32(step)
    return np.eye(size, dtype=dtype)[place.astype(int)]''',
    "linear_matrix": '''\
def linear_matrix(size, output_size, step, shift, dtype):
    """Times a vector of this size: at each place of the output, step * (i + shift) - shift, the mean of the two numbers
    beside it, weighted by their distance."""
    number, matrix = np.arange(output_size), np.zeros((output_size, size), dtype)
    place = np.maximum(dtype(step) * (number.astype(dtype) + dtype(shift)) - dtype(shift), 0)
    x = place - np.floor(place)
    for i, weight in enumerate([1 - x, x]):
        matrix[number, np.clip(np.floor(place).astype(int) + i, 0, size - 1)] += weight
    return matrix''',
    "cubic_matrix": '''\
def cubic_matrix(size, output_size, step, shift, dtype):
    """Times a vector of this size: at each place of the output, step * (i + shift) - shift, the sum of the four numbers
    around it, each times a cubic of its distance."""
    number, matrix = np.arange(output_size), np.zeros((output_size, size), dtype)
    place = dtype(step) * (number.astype(dtype) + dtype(shift)) - dtype(shift)
    x = place - np.floor(place)
    near = [(1.25 * x - 2.25) * x * x + 1 for x in (x, 1 - x)]
    far = [((-0.75 * x + 3.75) * x - 6) * x + 3 for x in (x + 1, 2 - x)]
    for i, weight in enumerate([far[0], *near, far[1]], start=-1):
        matrix[number, np.clip(np.floor(place).astype(int) + i, 0, size - 1)] += weight
    return matrix''',
}

_FUNCTIONS: dict[str, Any] = {"np": np}
exec("\n\n".join(SOURCES.values()), _FUNCTIONS)


def call_that_makes(array: Array) -> str | None:
    """The call of one of the functions that makes exactly this matrix; None where there is none, or it is small."""
    if array.ndim != 2 or array.size <= MOST_NUMBERS or array.dtype.kind != "f":
        return None
    for matrix, transposed in ((array, ""), (array.T, ".T")):
        output_size, size = matrix.shape
        for name, numbers in _candidates(size, output_size):
            if np.array_equal(_FUNCTIONS[name](size, output_size, *numbers, matrix.dtype.type), matrix):
                said = ", ".join(map(repr, (size, output_size, *numbers)))
                return f"{name}({said}, np.{matrix.dtype}){transposed}"
    return None


def _candidates(size: int, output_size: int) -> Iterator[tuple[str, tuple[float, ...]]]:
    """The functions, each with its step and shift: pixels as squares, or as points with the corners aligned."""
    yield "mean_matrix", ()
    squares, points = size / output_size, (size - 1) / max(output_size - 1, 1)
    yield "nearest_matrix", (squares,)
    for name in ("linear_matrix", "cubic_matrix"):
        yield name, (squares, 0.5)
        yield name, (points, 0.0)
