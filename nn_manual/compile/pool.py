"""Threads that help to run the loops of plans. They sleep while no plan runs."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import numpy as np

from nn_manual.compile import driver


class Pool:
    """So many helping threads, or as many as the system grants: a plan waits for none that isn't there. One plan at a
    time has them.
    """

    def __init__(self, num_helpers: int) -> None:
        self._owner, self._num_runs = threading.Lock(), 0
        memory = np.zeros(2 * driver.CONTROL_BYTES // 8, np.int64)
        start = -memory.ctypes.data % driver.CONTROL_BYTES // 8
        self._control = memory[start : start + driver.CONTROL_BYTES // 8]
        self._wake = [threading.Semaphore(0) for _ in range(num_helpers)]
        with suppress(RuntimeError):  # no more threads
            for wake in self._wake:
                threading.Thread(target=self._help, args=(wake,), name="nn_manual: loops", daemon=True).start()

    def _help(self, wake: threading.Semaphore) -> None:
        while True:
            wake.acquire()
            number = int(self._control[driver.RUN // 8])  # 0 where that run has ended
            if number:
                driver.help_run(self._control.ctypes.data, number)

    @contextmanager
    def helping(self) -> Iterator[int]:
        """In this context the threads look at the control block at this address. It is 0 while another plan has them.
        """
        if not self._owner.acquire(blocking=False):
            yield 0
            return
        try:
            self._num_runs += 1
            self._control[driver.RUN // 8] = self._num_runs
            for wake in self._wake:
                wake.release()
            yield self._control.ctypes.data
        finally:
            self._control[driver.RUN // 8] = 0
            self._owner.release()


_pools: dict[tuple[int, int], Pool] = {}


@contextmanager
def helping(threads: int) -> Iterator[int]:
    """The context in which a plan runs on so many threads, its own among them: as `Pool.helping`; 0 for one. A process
    that was forked makes its own pool: threads aren't copied.
    """
    if threads == 1:
        yield 0
        return
    key = os.getpid(), threads
    if key not in _pools:
        _pools[key] = Pool(threads - 1)
    with _pools[key].helping() as control:
        yield control
