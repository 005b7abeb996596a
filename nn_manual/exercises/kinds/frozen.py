"""Arrays that the reader's code must not write to."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from nn_manual.arrays import Padded

T = TypeVar("T")


def freeze(value: T) -> T:
    """The value, with all arrays in it read-only: to write into one raises ValueError in the line that does it."""
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    elif isinstance(value, Padded):
        freeze(value.array)
    elif isinstance(value, list | tuple):
        for item in value:
            freeze(item)
    elif isinstance(value, dict):
        freeze([*value.values()])
    return value
