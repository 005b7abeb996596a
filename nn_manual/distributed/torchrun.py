"""The processes that torchrun has started, and torch.distributed between them.

torch is imported where a process is one of several, and nowhere else.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any, TypeVar

import numpy as np

from nn_manual.arrays import Array
from nn_manual.distributed.group import ALONE, DONE, Group, Work
from nn_manual.errors import ProcessLostError

#: What torchrun sets in the environment of each process.
RANK, WORLD_SIZE, RESTARTS = "RANK", "WORLD_SIZE", "TORCHELASTIC_RESTART_COUNT"

#: The name in the environment of the seconds that a process waits for the others, in a collective alone. By default the
#: run has ended within a minute: to find out who is to blame takes a few more.
TIME_LIMIT = "NN_MANUAL_TIME_LIMIT"
SECONDS = 55.0

#: So many seconds a process has to say that it is there, where one misses another.
GRACE = 3.0

#: What the store has: the directory of the run, whether a process misses another, who says what ended the run.
RUN, MISSED, LAST_WORD = "run", "missed", "last word"

#: So many seconds the first process may take to say what ended the run.
PRECEDENCE = 1.0

Result = TypeVar("Result")


@contextmanager
def processes() -> Iterator[Group]:
    """The context in which this process is one of those that torchrun has started, by its environment; ALONE without.
    An error that another process reports gets `is_told`. Raises ProcessLostError where the others don't come.
    """
    if int(os.environ.get(WORLD_SIZE, "1")) == 1 or RANK not in os.environ:
        yield ALONE
        return
    group = TorchGroup()
    try:
        yield group
        group.leave()
    except BaseException as error:
        error.is_told = not group.claim_last_word()  # type: ignore[attr-defined]  # any error can carry it
        group.part()
        raise


class TorchGroup(Group):
    """Processes that torchrun has started, with gloo between them. Arrays are sent and received where they lie.

    A collective that fails, or takes longer than the limit, raises ProcessLostError, which names the processes that
    were lost. Before the first one, `gather` goes through torchrun's store: gloo aborts a process where sizes differ.
    """

    def __init__(self) -> None:
        import torch
        import torch.distributed

        self._torch, self._distributed = torch, torch.distributed
        self.rank, self.size = int(os.environ[RANK]), int(os.environ[WORLD_SIZE])
        self.limit = float(os.environ.get(TIME_LIMIT, SECONDS))
        self.num_restarts = int(os.environ.get(RESTARTS, "0"))
        self._num_gathered, self._num_collectives, self._is_connected, self._is_lost = 0, 0, False, False
        try:
            self._lasting = self._new_store("", is_master=self.rank == 0 and not _is_by_torchrun())
            self._store = self._new_store(f"start {self.num_restarts}")
            others_see = self._new_store(f"start {self.num_restarts}")
        except RuntimeError as error:
            raise ProcessLostError(f"process {self.rank} can't reach the others: {_first_line(error)}") from None
        self._has_left = threading.Event()
        self._answering = threading.Thread(target=self._answer, args=(others_see,), daemon=True)
        self._answering.start()

    def _new_store(self, prefix: str, *, is_master: bool = False) -> Any:
        """A connection of its own to the store that the environment names: torchrun's, or the first process's, where it
        is not torchrun that has started them. Each start of the processes has a part of its own.
        """
        from torch._C._distributed_c10d import PrefixStore, TCPStore  # as in torch.distributed, which declares neither

        address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        limit = timedelta(seconds=self.limit)
        store = TCPStore(address, port, is_master=is_master, timeout=limit, wait_for_workers=False)
        return PrefixStore(f"nn_manual {os.environ.get('TORCHELASTIC_RUN_ID', '')} {prefix}", store)

    def _answer(self, store: Any) -> None:
        """In a thread: once a process misses another, say that this one is there, and how many collectives it has
        begun. One that has died or was stopped doesn't.
        """
        with suppress(RuntimeError):  # the store goes when the run ends
            while not store.check([MISSED]):
                if self._has_left.wait(0.1):
                    return
            store.set(f"there/{self.rank}", str(self._num_collectives))

    def connect(self) -> None:
        """Go on with gloo: the processes have found that they agree."""
        limit = timedelta(seconds=self.limit)
        self._collective(
            lambda: self._distributed.init_process_group(
                "gloo", store=self._store, rank=self.rank, world_size=self.size, timeout=limit
            )
        )
        self._is_connected = True

    def remember_run(self, directory: str) -> None:
        """As of every Group."""
        self._lasting.set(RUN, directory)

    def remembered_run(self) -> str | None:
        """As of every Group."""
        if not self.num_restarts or not self._lasting.check([RUN]):
            return None
        return str(self._lasting.get(RUN).decode())

    def gather(self, value: Any) -> list[Any]:
        """As of every Group."""
        if self._is_connected:
            own = np.frombuffer(json.dumps(value).encode(), np.uint8)
            return [json.loads(array.tobytes()) for array in self.gather_arrays(own)]
        self._num_gathered += 1
        key = f"gather/{self._num_gathered}"
        try:
            self._store.set(f"{key}/{self.rank}", json.dumps(value))
            return [json.loads(self._got(f"{key}/{rank}", rank)) for rank in range(self.size)]
        except RuntimeError as error:
            raise ProcessLostError(f"process {self.rank} has lost the others: {_first_line(error)}") from None

    def _got(self, key: str, rank: int) -> bytes:
        """What the process `rank` has set. Raises ProcessLostError where it doesn't in time."""
        end = time.monotonic() + self.limit
        while time.monotonic() < end:
            if self._store.check([key]):
                value: bytes = self._store.get(key)
                return value
            if self._store.check([LAST_WORD]):
                break
            time.sleep(0.01)
        raise ProcessLostError(f"process {rank} didn't come within {self.limit:g} s")

    def gather_arrays(self, array: Array) -> list[Array]:
        """As of every Group."""
        torch = self._torch
        row = int(np.prod(array.shape[1:])) * array.itemsize
        counts = torch.zeros(self.size, dtype=torch.int64)
        counts[self.rank] = len(array)
        self._collective(lambda: self._distributed.all_reduce(counts))
        largest = int(counts.max()) * row
        own = np.zeros(largest, np.uint8)
        own[: array.nbytes] = np.frombuffer(array.tobytes(), np.uint8)
        received = [torch.empty(largest, dtype=torch.uint8) for _ in range(self.size)]
        self._collective(lambda: self._distributed.all_gather(received, torch.from_numpy(own)))
        return [
            tensor.numpy()[: count * row].view(array.dtype).reshape(count, *array.shape[1:])
            for tensor, count in zip(received, counts.tolist(), strict=True)
        ]

    def broadcast(self, array: Array, source: int) -> None:
        """As of every Group."""
        self.start_broadcast(array, source).wait()

    def start_broadcast(self, array: Array, source: int) -> Work:
        """As of every Group."""
        if not array.size:
            return DONE
        tensor = self._torch.from_numpy(array)
        return _Started(self, self._collective(lambda: self._distributed.broadcast(tensor, source, async_op=True)))

    def start_sum(self, array: Array) -> Work:
        """As of every Group."""
        tensor = self._torch.from_numpy(array)
        return _Started(self, self._collective(lambda: self._distributed.all_reduce(tensor, async_op=True)))

    def start_exchange(self, sent: Array, sent_sizes: list[int], received: Array, received_sizes: list[int]) -> Work:
        """As of every Group."""
        given, taken = self._torch.from_numpy(sent), self._torch.from_numpy(received)
        return _Started(
            self,
            self._collective(
                lambda: self._distributed.all_to_all_single(taken, given, received_sizes, sent_sizes, async_op=True)
            ),
        )

    def _collective(self, run: Callable[[], Result]) -> Result:
        """What `run` returns. Raises ProcessLostError where it fails."""
        self._num_collectives += 1
        try:
            return run()
        except RuntimeError as error:
            raise self.lost(error) from None

    def lost(self, error: RuntimeError) -> ProcessLostError:
        """A collective has failed: find out who is to blame."""
        self._is_lost = True
        there: dict[int, int] = {}
        try:
            self._store.set(MISSED, "1")
            end = time.monotonic() + GRACE
            while len(there) < self.size and time.monotonic() < end and not self._store.check([LAST_WORD]):
                for rank in set(range(self.size)) - there.keys():
                    if self._store.check([f"there/{rank}"]):
                        there[rank] = int(self._store.get(f"there/{rank}"))
                time.sleep(0.02)
        except RuntimeError:  # the store has gone, too
            return ProcessLostError(f"process {self.rank} has lost the others: {_first_line(error)}")
        missing = sorted(set(range(self.size)) - there.keys())
        if not missing and min(there.values()) == max(there.values()):
            return ProcessLostError(f"the processes can't reach each other: {_first_line(error)}")
        if not missing:  # they are there, and some have not come
            missing = [rank for rank, count in sorted(there.items()) if count < max(there.values())]
        names = f"process{'es' if len(missing) > 1 else ''} {' and '.join(map(str, missing))}"
        if "imed out" in str(error):
            return ProcessLostError(f"{names} didn't come within {self.limit:g} s")
        return ProcessLostError(f"{names} died")

    def claim_last_word(self) -> bool:
        """As of every Group. The others leave it to the first for a moment: what it says has more to it."""
        try:
            end = time.monotonic() + (PRECEDENCE if self.rank else 0)
            while time.monotonic() < end and not self._store.check([LAST_WORD]):
                time.sleep(0.02)
            return bool(self._store.compare_set(LAST_WORD, "", str(self.rank)) == str(self.rank).encode())
        except RuntimeError:  # the store was in the first process, which has said what there was to say
            return self.rank == 0

    def leave(self) -> None:
        """As of every Group."""
        self.part()
        if self._is_connected and not self._is_lost:
            self._distributed.destroy_process_group()

    def part(self) -> None:
        """End the thread: one that still calls the store while Python ends would abort the process."""
        self._has_left.set()
        self._answering.join(GRACE)


class _Started:
    """A collective under way."""

    def __init__(self, group: TorchGroup, work: Any) -> None:
        self._group, self._work = group, work

    def wait(self) -> None:
        """As of every Work."""
        try:
            self._work.wait()
        except RuntimeError as error:
            raise self._group.lost(error) from None


def _is_by_torchrun() -> bool:
    return os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
