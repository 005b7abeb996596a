"""Other values for the arrays of a step. With them, everything that a formula computes from a value changes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nn_manual.arrays import Array, blocks


def take_others(arrays: Mapping[str, Array], originals: Mapping[str, Array]) -> None:
    """Write other values into `arrays` that are as valid as `originals`, and always the same. Integers are drawn again
    from the same column, random numbers are permuted, and floats are scaled by 0.5 to 1, those of input and target also
    permuted. Some parameters change their sign, and counters grow by 1.
    """
    generator = np.random.default_rng(0)
    for name, array in arrays.items():
        original = originals[name]
        if name == "counters":
            array[...] = original + 1
        elif array.ndim and ".noise." in name:
            array[...] = generator.permuted(original.ravel()).reshape(array.shape)
        elif array.dtype.kind != "f" or name in ("input", "target"):
            array[...] = _of_examples(original, generator)
        else:
            _scale(name, array.reshape(-1), original.reshape(-1), generator)


def _of_examples(array: Array, generator: np.random.Generator) -> Array:
    columns = array if len(array.shape) and len(array) > 1 else array.reshape(-1, 1)
    if array.dtype.kind != "f":
        rows = generator.integers(len(columns), size=columns.shape)
        return np.take_along_axis(columns, rows, axis=0).reshape(array.shape)
    permuted = generator.permuted(columns, axis=0).reshape(array.shape)
    return np.asarray(permuted * generator.uniform(0.5, 1, array.shape), array.dtype)


def _scale(name: str, array: Array, original: Array, generator: np.random.Generator) -> None:
    """A block after the other: an array may be as large as the memory that is left."""
    for block in blocks(array.size):
        values = original[block]
        factor = generator.uniform(0.5, 1, values.size)
        if name == "param":
            factor *= generator.choice([-1.0, 1.0], values.size)
        array[block] = np.where(values == 0, 0.1, values) * factor
