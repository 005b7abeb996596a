"""Other values for the arrays of a step. With them, everything that a formula computes from a value changes."""

from __future__ import annotations

import numpy as np

from nn_manual.arrays import Array


def others(name: str, array: Array, generator: np.random.Generator) -> Array:
    """Other values that are as valid as these. Integers are drawn again from the same column, random numbers are
    permuted, and floats are scaled by 0.5 to 1, those of input and target also permuted. Some parameters change their
    sign, and counters grow by 1.
    """
    if name == "counters":
        return array + 1
    if array.ndim and ".noise." in name:
        return generator.permuted(array.ravel()).reshape(array.shape)
    columns = array if len(array.shape) and len(array) > 1 else array.reshape(-1, 1)
    if array.dtype.kind != "f":
        rows = generator.integers(len(columns), size=columns.shape)
        return np.take_along_axis(columns, rows, axis=0).reshape(array.shape)
    factor = generator.uniform(0.5, 1, array.shape)
    if name == "param":
        factor *= generator.choice([-1.0, 1.0], array.shape)
    if name in ("input", "target"):
        array = generator.permuted(columns, axis=0).reshape(array.shape)
    else:
        array = np.where(array == 0, array.dtype.type(0.1), array)
    return np.asarray(array * factor, array.dtype)
