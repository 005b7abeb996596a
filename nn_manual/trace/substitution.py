"""Other values for the arrays of a step: what a formula makes of a value can't stay the same on them."""

from __future__ import annotations

import numpy as np

from nn_manual.arrays import Array


def others(name: str, array: Array, generator: np.random.Generator) -> Array:
    """Values that fit where these did: integers of the same columns, in other numbers, and floats of about the same
    size, in another order. Parameters change their signs, too. Counts go on.
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
