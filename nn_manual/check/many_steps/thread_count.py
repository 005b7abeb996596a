"""On how many threads waiting steps are proven: as many as are given, or the faster of one and all."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch

#: So many proofs on each number of threads are timed. The first makes what later ones use again.
NUM_TIMED = 3


class ThreadCount:
    """How many threads the next proof has. Without a `given` number, the first proofs of full rings are timed on one
    thread and on as many as torch has, in turn; then the faster number stays. With small tensors that is one: most of
    the time goes to Python, which runs on one thread.
    """

    def __init__(self, given: int | None) -> None:
        numbers = [given] if given else sorted({1, torch.get_num_threads()})
        #: The seconds of the proofs on each of the numbers of threads that are left.
        self._seconds: dict[int, list[float]] = {number: [] for number in numbers}

    @contextmanager
    def proving(self, *, is_full: bool) -> Iterator[int]:
        """The context of a proof, with how many threads it has; `is_full` says that the ring is full."""
        number = min(self._seconds, key=lambda number: len(self._seconds[number]))
        if len(self._seconds) == 1:
            yield number
        elif not is_full:
            yield 1
        else:
            start = time.perf_counter()
            yield number
            self._seconds[number].append(time.perf_counter() - start)
            if all(len(times) == NUM_TIMED for times in self._seconds.values()):
                fastest = min(self._seconds, key=lambda number: min(self._seconds[number]))
                self._seconds = {fastest: []}
