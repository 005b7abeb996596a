"""The ways in which an array can lie in memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nn_manual.arrays import Array

#: Each gives equal numbers in another order in memory: the first index fastest, the last two or the outermost two
#: dimensions swapped, every second element, backwards.
LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "Fortran": np.asfortranarray,
    "last two swapped": lambda array: array.swapaxes(-1, -2).copy().swapaxes(-1, -2) if array.ndim > 1 else array,
    "first and last swapped": lambda array: array.swapaxes(0, -1).copy().swapaxes(0, -1),
    "strided": lambda array: np.repeat(array, 2, axis=-1)[..., ::2],
    "reversed": lambda array: array[..., ::-1].copy()[..., ::-1],
}
