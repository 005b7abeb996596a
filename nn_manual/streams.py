"""Streams of random numbers: seeded, one for each purpose, independent of each other."""

from __future__ import annotations

from enum import IntEnum

import numpy as np


class Stream(IntEnum):
    """What random numbers are drawn for: each purpose has a stream of its own, so none disturbs another."""

    GENERATE = 0
    SPLIT = 1
    SHUFFLE = 2


def generator(seed: int, stream: Stream, *counters: int) -> np.random.Generator:
    """The random generator that (seed, stream, counters) alone determine; it is independent of all others.

    The purpose is the spawn key and not part of the entropy, where numpy takes [5] and [5, 0] for the same seed.
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(stream, *counters)))
