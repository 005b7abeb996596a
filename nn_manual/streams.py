"""Streams of random numbers: seeded, one for each purpose, independent of each other."""

from __future__ import annotations

import math
from enum import IntEnum

import numpy as np
import numpy.typing as npt

#: How many float32 numbers one step of the counter gives: Philox makes four of 64 bits, and a float32 takes 32.
NUMBERS_A_COUNT = 8


class Stream(IntEnum):
    """What random numbers are drawn for: each purpose has a stream of its own, so none disturbs another."""

    GENERATE = 0
    SPLIT = 1
    SHUFFLE = 2
    NOISE = 3
    SAMPLE = 4
    UPSTREAM = 5
    KINDS = 6
    HALF = 7
    REPEATED = 8
    STEADY = 9
    INPUT_NOISE = 10


def generator(seed: int, stream: Stream, *counters: int) -> np.random.Generator:
    """The random generator that (seed, stream, counters) alone determine; it is independent of all others."""
    return np.random.default_rng(_sequence(seed, stream, *counters))


class RowGenerator:
    """The random numbers of one layer in one step, each at an address: which array it is for, which row, which place in
    the row. `first_row` is the row in the batch at which the arrays drawn here begin.

    So a part of a batch draws exactly what the whole batch draws there, whoever computes it, in whatever order:

        RowGenerator(seed, layer, step).random((128, 512))[32:64]
        RowGenerator(seed, layer, step, first_row=32).random((32, 512))

    are equal. Philox (Salmon et al. 2011) makes such numbers: it is a function of a key and a counter that mixes them
    like a cipher, and no number needs the one before it. The key comes from the seed. The counter has four words: the
    place in the array, the number of the array, the step and the layer. Two counters that differ anywhere give numbers
    that are independent of each other.

    Raises ValueError for a seed, layer, step or row below 0.
    """

    def __init__(self, seed: int, layer: int, step: int, *, first_row: int = 0) -> None:
        for name, value in (("seed", seed), ("layer", layer), ("step", step), ("first_row", first_row)):
            if value < 0:
                raise ValueError(f"{name} must be at least 0, not {value}")
        self._key = _sequence(seed, Stream.NOISE).generate_state(2, np.uint64)
        self._layer, self._step, self._first_row = layer, step, first_row
        self._num_arrays = 0

    def random(self, shape: tuple[int, ...]) -> npt.NDArray[np.float32]:
        """Uniform numbers in [0, 1), shape (rows, ...), independent of what was drawn here before. They are multiples
        of 2**-24 in float32. A float64 model gets the same numbers, so its masks are those of the float32 model.

        It is the part of the whole batch's array that begins at the row `first_row`. Raises ValueError for a shape
        without rows.
        """
        if not shape:
            raise ValueError("random numbers are drawn in rows: the shape () has none")
        return self._numbers(self._first_row * math.prod(shape[1:]), math.prod(shape)).reshape(shape)

    def random_of_batch(self) -> np.float32:
        """One number as those of `random`, which each part of the batch draws alike."""
        number: np.float32 = self._numbers(0, 1)[0]
        return number

    def standard_normal(self, shape: tuple[int, ...]) -> npt.NDArray[np.float32]:
        """Normal numbers with mean 0 and variance 1, otherwise as `random`. Each of its numbers is moved to the middle
        of its interval of 2**-24, and its quantile is taken. So no magnitude is above 5.5.
        """
        from scipy.special import ndtri  # here, so that a data set is read without waiting for it

        quantiles: npt.NDArray[np.float64] = ndtri(self.random(shape).astype(np.float64) + 2.0**-25)
        return quantiles.astype(np.float32)

    def _numbers(self, num_before: int, size: int) -> npt.NDArray[np.float32]:
        """The next array's numbers, without so many before them."""
        count, num_skipped = divmod(num_before, NUMBERS_A_COUNT)
        counter = [count, self._num_arrays, self._step, self._layer]
        self._num_arrays += 1
        philox = np.random.Philox(key=self._key, counter=np.array(counter, np.uint64))
        return np.random.Generator(philox).random(num_skipped + size, np.float32)[num_skipped:]


def _sequence(seed: int, stream: Stream, *counters: int) -> np.random.SeedSequence:
    """The seed sequence of (seed, stream, counters). The stream is in the spawn key and not in the entropy: there numpy
    takes [5] and [5, 0] for the same seed.
    """
    return np.random.SeedSequence(seed, spawn_key=(stream, *counters))
