"""Who is still there, once a process misses another: asked through the store of torchrun."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any

from nn_manual.errors import ProcessLostError

#: So many seconds a process has to say that it is there, where one misses another.
GRACE = 3.0

#: So many seconds the first process may take to say what ended the run.
PRECEDENCE = 1.0

#: What the store has: whether a process misses another, and who says what ended the run.
MISSED, LAST_WORD = "missed", "last word"


class RollCall:
    """Tells who is to blame where a collective has failed. `new_store` makes a connection to the processes' store,
    `limit` is what they wait for each other, in seconds.

    `num_collectives` counts those that this process has begun: the caller counts.
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
        """In a thread: once a process misses another, say that this one is there, and how many collectives it has
        begun. One that has died or was stopped doesn't.
        """
        with suppress(RuntimeError):  # the store goes when the run ends
            while not store.check([MISSED]):
                if self._has_left.wait(0.1):
                    return
            store.set(f"there/{self.rank}", str(self.num_collectives))

    def lost(self, error: RuntimeError) -> ProcessLostError:
        """A collective has failed: find out who is to blame."""
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
        """What to raise where a process that had come is there no more; None where all are. torchrun stops those that
        are left of processes, which can't tell that from a user's signal else.
        """
        try:
            came = [rank for rank in range(self.size) if self._store.check([f"came/{rank}"])]
            missing = sorted(set(came) - self._call(came).keys())
            is_told = self.someone_has_the_last_word()
        except RuntimeError:  # the store has gone, too
            return None
        return ProcessLostError(f"{_names(missing)} died") if missing and not is_told else None

    def _call(self, ranks: Collection[int]) -> dict[int, int]:
        """Of these processes, those that are there, and how many collectives they have begun."""
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
        """Whether some process has said what ended the run."""
        return bool(self._store.check([LAST_WORD]))

    def claim_last_word(self) -> bool:
        """Whether it is this process that says what ended the run. The others leave it to the first for a moment: what
        it says has more to it.
        """
        try:
            end = time.monotonic() + (PRECEDENCE if self.rank else 0)
            while time.monotonic() < end and not self.someone_has_the_last_word():
                time.sleep(0.02)
            return bool(self._store.compare_set(LAST_WORD, "", str(self.rank)) == str(self.rank).encode())
        except RuntimeError:  # the store was in the first process, which has said what there was to say
            return self.rank == 0

    def end(self) -> None:
        """End the thread, however long the store takes for the call under way, its own limit at most: a thread that
        still calls the store while Python ends would abort the process.
        """
        self._has_left.set()
        self._answering.join()


def _names(ranks: Collection[int]) -> str:
    return f"process{'es' if len(ranks) > 1 else ''} {' and '.join(map(str, ranks))}"


def first_line(error: Exception) -> str:
    """Of a message of torch's, what a user can read."""
    return str(error).partition("\n")[0]


def _is_of_time(error: RuntimeError) -> bool:
    """Whether it was the limit that ended a collective: gloo says "Timed out waiting" of the first one, and
    "Application timeout caused pair closure" of those that were under way beside it.
    """
    return any(words in str(error).lower() for words in ("timed out", "timeout"))
