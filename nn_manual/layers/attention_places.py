"""What attention makes of the places in time: which of them see each other, what distance costs, rotations."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from nn_manual.arrays import Array


@functools.lru_cache(maxsize=8)
def offset(time: int, dtype: np.dtype[Any], is_causal: bool, window: int | None, num_slopes: int) -> Array:
    """What is added to the scores, (time, time), or with slopes (num_slopes, time, time): -infinity where the row's
    time doesn't see the column's, because it is later, or at a distance of at least `window`; and otherwise 0, or minus
    the head's slope times the distance.
    """
    later = np.arange(time) - np.arange(time)[:, np.newaxis]
    is_hidden = np.zeros_like(later, np.bool_)
    if is_causal:
        is_hidden |= later > 0
    if window is not None:
        is_hidden |= np.abs(later) >= window
    cost = slopes(num_slopes)[:, np.newaxis, np.newaxis] * np.abs(later) if num_slopes else np.zeros_like(later)
    added: Array = np.where(is_hidden, -np.inf, -cost).astype(dtype)
    added.setflags(write=False)  # every call shares it
    return added


def slopes(num_heads: int) -> Array:
    """ALiBi's slope of each head, 2**(-8 / n), 2**(-16 / n), ..., 2**-8 for a power n of 2. For another number, those
    of the next lower power, then every second one of twice that power.
    """
    power = 1 << (num_heads.bit_length() - 1)
    first = 2.0 ** (-8 * np.arange(1, power + 1) / power)
    between = 2.0 ** (-8 * np.arange(1, 2 * power, 2) / (2 * power))
    return np.concatenate([first, between])[:num_heads]


def rotate(array: Array, *, back: bool = False) -> None:
    """Turn each pair of features of queries or keys, (..., time, width), in place: the pair i is the features i and i +
    width / 2, and its angle time * 10000**(-2 i / width). `back` turns the other way.
    """
    *_, time, width = array.shape
    cos, sin = _waves(time, width, array.dtype)
    first, second = array[..., : width // 2], array[..., width // 2 :]
    ahead = second * cos - first * sin if back else second * cos + first * sin
    first[...] = first * cos + second * sin if back else first * cos - second * sin
    second[...] = ahead


@functools.lru_cache(maxsize=8)
def _waves(time: int, width: int, dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """Cosine and sine of each angle, (time, width / 2), in float64 and rounded once."""
    angle = np.arange(time)[:, np.newaxis] * 10000.0 ** (-2 * np.arange(width // 2) / width)
    waves = np.cos(angle).astype(dtype), np.sin(angle).astype(dtype)
    for each in waves:
        each.setflags(write=False)  # every call shares them
    return waves
