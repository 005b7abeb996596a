"""Which processes are still there, once one process misses another: they answer through the store of torchrun."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any

from nn_manual.errors import ProcessLostError

#: How many seconds a process has to answer that it is there.
GRACE = 3.0

#: For how many seconds the others leave it to the first process to report what ended the run.
PRECEDENCE = 1.0

#: Keys of the store: set once a process misses another, and with the process that reports what ended the run.
MISSED, LAST_WORD = "missed", "last word"


class RollCall:
    """Finds out which process is lost where a collective has failed. `new_store` makes a connection to the processes'
    store; `limit` is how many seconds they wait for each other.

    The caller counts in `num_collectives` how many collectives this process has begun.
    """

    def __init__(self, new_store: Callable[[], Any], rank: int, size: int, limit: float) -> None:
        self.rank, self.size, self.limit = rank, size, limit
        self.num_collectives = 0
        self._store, others_see = new_store(), new_store()  # one for each thread
        self._store.set(f"came/{rank}", "")
        self._has_left = threading.Event()
        self._answering = threading.Thread(target=self._answer, args=(others_see,), daemon=True)
        self._answering.start()

    def _answer(self, store: Any) -> None:
        """Run in a thread: once a process misses another, answer that this one is there, and how many collectives it
        has begun. A process that has died or was stopped doesn't answer.
        """
        with suppress(RuntimeError):  # the store goes when the run ends
            while not store.check([MISSED]):
                if self._has_left.wait(0.1):
                    return
            store.set(f"there/{self.rank}", str(self.num_collectives))

    def lost(self, error: RuntimeError) -> ProcessLostError:
        """The error to raise where a collective has failed: it names the processes that are lost."""
        try:
            there = self._call(range(self.size))
        except RuntimeError:  # the store has gone, too
            return ProcessLostError(f"process {self.rank} has lost the others: {first_line(error)}")
        missing = sorted(set(range(self.size)) - there.keys())
        if not missing and min(there.values()) == max(there.values()):
            return ProcessLostError(f"the processes can't reach each other: {first_line(error)}")
        if not missing:  # they are there, and some have not come
            missing = [rank for rank, count in sorted(there.items()) if count < max(there.values())]
        if _is_of_time(error):
            return ProcessLostError(f"{_names(missing)} didn't come within {self.limit:g} s")
        return ProcessLostError(f"{_names(missing)} died")

    def died(self) -> ProcessLostError | None:
        """The error to raise where a process that had come is no longer there; None where all are. When a process has
        died, torchrun stops the others with a signal: this tells that signal from a user's.
        """
        try:
            came = [rank for rank in range(self.size) if self._store.check([f"came/{rank}"])]
            missing = sorted(set(came) - self._call(came).keys())
            is_told = self.someone_has_the_last_word()
        except RuntimeError:  # the store has gone, too
            return None
        return ProcessLostError(f"{_names(missing)} died") if missing and not is_told else None

    def _call(self, ranks: Collection[int]) -> dict[int, int]:
        """Those of the processes that are there, and how many collectives each has begun."""
        there: dict[int, int] = {}
        self._store.set(MISSED, "1")
        end = time.monotonic() + GRACE
        while len(there) < len(ranks) and time.monotonic() < end and not self.someone_has_the_last_word():
            for rank in set(ranks) - there.keys():
                if self._store.check([f"there/{rank}"]):
                    there[rank] = int(self._store.get(f"there/{rank}"))
            time.sleep(0.02)
        return there

    def someone_has_the_last_word(self) -> bool:
        """Whether some process reports what ended the run."""
        return bool(self._store.check([LAST_WORD]))

    def claim_last_word(self) -> bool:
        """Whether this process reports what ended the run. The others leave that to the first process for a moment:
        its report says more.
        """
        try:
            end = time.monotonic() + (PRECEDENCE if self.rank else 0)
            while time.monotonic() < end and not self.someone_has_the_last_word():
                time.sleep(0.02)
            return bool(self._store.compare_set(LAST_WORD, "", str(self.rank)) == str(self.rank).encode())
        except RuntimeError:  # the store was in the first process, which has reported already
            return self.rank == 0

    def end(self) -> None:
        """End the thread. This waits for its call to the store, which takes no longer than the store's own limit: a
        thread that still calls the store while Python ends would abort the process.
        """
        self._has_left.set()
        self._answering.join()


def _names(ranks: Collection[int]) -> str:
    return f"process{'es' if len(ranks) > 1 else ''} {' and '.join(map(str, ranks))}"


def first_line(error: Exception) -> str:
    """The first line of torch's message: a user can't read the rest."""
    return str(error).partition("\n")[0]


def _is_of_time(error: RuntimeError) -> bool:
    """Whether a collective has ended because of the limit: gloo says "Timed out waiting" for the first one, and
    "Application timeout caused pair closure" for those that were under way beside it.
    """
    return any(words in str(error).lower() for words in ("timed out", "timeout"))
