"""The processes that torchrun has started, and torch.distributed between them.

torch is imported where a process is one of several, and nowhere else.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import numpy as np

from nn_manual.arrays import Array
from nn_manual.distributed.group import ALONE, DONE, Group, Work
from nn_manual.errors import ProcessLostError

#: What torchrun sets in the environment of each process.
RANK, WORLD_SIZE, RESTARTS = "RANK", "WORLD_SIZE", "TORCHELASTIC_RESTART_COUNT"

#: The name in the environment of the seconds that a process waits for the others, in a collective alone.
TIME_LIMIT = "NN_MANUAL_TIME_LIMIT"
SECONDS = 60.0

#: After a collective has failed, so long each process waits for the others to say that they are there: they notice it
#: within moments of each other.
GRACE = 3.0

#: Where the store has the directory of the run.
RUN = "nn_manual run of " + os.environ.get("TORCHELASTIC_RUN_ID", "")

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
        raise


class TorchGroup(Group):
    """Processes that torchrun has started, with gloo between them. Arrays are sent and received where they lie.

    A collective that fails, or takes longer than the limit, raises ProcessLostError, which names the processes that
    were lost. Before the first one, `gather` goes through torchrun's store: gloo aborts a process where sizes differ.
    """

    def __init__(self) -> None:
        import torch
        import torch.distributed
        from torch.distributed.distributed_c10d import PrefixStore
        from torch.distributed.rendezvous import rendezvous as rendezvous_of

        self._torch, self._distributed = torch, torch.distributed
        self.rank, self.size = int(os.environ[RANK]), int(os.environ[WORLD_SIZE])
        self.limit = float(os.environ.get(TIME_LIMIT, SECONDS))
        self.num_restarts = int(os.environ.get(RESTARTS, "0"))
        self._num_gathered, self._is_connected, self._is_lost = 0, False, False
        limit = timedelta(seconds=self.limit)
        try:
            rendezvous = rendezvous_of("env://", self.rank, self.size, timeout=limit)
            store, _, _ = next(rendezvous)
        except Exception as error:
            raise ProcessLostError(f"process {self.rank} can't reach the others: {error}") from None
        store.set_timeout(limit)
        self._lasting = _lasting_store(limit)
        self._store = PrefixStore("nn_manual", store)

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
        if self._lasting is not None:
            self._lasting.set(RUN, directory)

    def remembered_run(self) -> str | None:
        """As of every Group."""
        if self._lasting is None or not self.num_restarts or not self._lasting.check([RUN]):
            return None
        return str(self._lasting.get(RUN).decode())

    def gather(self, value: Any) -> list[Any]:
        """As of every Group."""
        if self._is_connected:
            own = np.frombuffer(json.dumps(value).encode(), np.uint8)
            return [json.loads(array.tobytes()) for array in self.gather_arrays(own)]
        self._num_gathered += 1
        key = f"gather/{self._num_gathered}"
        self._store.set(f"{key}/{self.rank}", json.dumps(value))
        return [json.loads(self._got(f"{key}/{rank}", rank)) for rank in range(self.size)]

    def _got(self, key: str, rank: int) -> bytes:
        """What the process `rank` has set. Raises ProcessLostError where it doesn't in time."""
        end = time.monotonic() + self.limit
        while time.monotonic() < end and not self._store.check(["last word"]):
            if self._store.check([key]):
                value: bytes = self._store.get(key)
                return value
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
        try:
            return run()
        except RuntimeError as error:
            raise self.lost(error) from None

    def lost(self, error: RuntimeError) -> ProcessLostError:
        """A collective has failed: find out who is to blame. Those who can still answer say so in the store, which is
        torchrun's own process's.
        """
        self._is_lost = True
        others = set(range(self.size)) - {self.rank}
        try:
            self._store.set(f"there/{self.rank}", "1")
            end = time.monotonic() + GRACE
            while others and time.monotonic() < end and not self._store.check(["last word"]):
                others -= {rank for rank in others if self._store.check([f"there/{rank}"])}
                time.sleep(0.02)
        except RuntimeError:  # the store has gone, too: with torchrun, or with the process that had it
            return ProcessLostError(f"process {self.rank} has lost the others: {_first_line(error)}")
        if not others:
            return ProcessLostError(f"the processes can't reach each other: {_first_line(error)}")
        names = " and ".join(map(str, sorted(others)))
        how = f"answered within {self.limit:g} s" if "imed out" in str(error) else "lives any more"
        who = f"process {names} no longer" if len(others) == 1 else f"processes {names} no longer"
        return ProcessLostError(f"{who} {how.replace('answered', 'answer') if len(others) > 1 else how}")

    def claim_last_word(self) -> bool:
        """As of every Group."""
        try:
            return bool(self._store.compare_set("last word", "", str(self.rank)) == str(self.rank).encode())
        except RuntimeError:
            return True

    def leave(self) -> None:
        """As of every Group."""
        if self._is_connected and not self._is_lost:
            self._distributed.destroy_process_group()


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


def _lasting_store(limit: timedelta) -> Any:
    """torchrun's store itself: of what `rendezvous` gives, each start of the processes has a part of its own. None
    where it is not torchrun that has started them.
    """
    from torch._C._distributed_c10d import TCPStore  # torch.distributed.TCPStore, which it doesn't declare

    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        return None
    return TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False, timeout=limit)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
