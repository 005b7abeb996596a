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
from nn_manual.errors import ConfigError, Interrupted, ProcessLostError, raise_if_out_of_memory
from nn_manual.step.slices.process_group import ALONE, DONE, ProcessGroup, Work
from nn_manual.step.slices.roll_call import RollCall, first_line
from nn_manual.step.slices.torchrun_environment import (
    ADDRESS,
    MOST_PORT,
    MOST_SECONDS,
    PORT,
    RANK,
    RESTARTS,
    SECONDS,
    TIME_LIMIT,
    WORLD_SIZE,
    is_by_torchrun,
    number,
    seconds_of,
)

#: The key of the run's directory in the store.
RUN = "run"

Result = TypeVar("Result")


@contextmanager
def processes() -> Iterator[ProcessGroup]:
    """The context in which this process is one of those that torchrun has started, as its environment says. Gives their
    group, or ALONE for a process by itself. An error that another process reports gets `is_told`. Raises
    ProcessLostError where the others don't come.
    """
    if RANK not in os.environ or number(WORLD_SIZE, 1, least=1) == 1:
        yield ALONE
        return
    text = os.environ.get(TIME_LIMIT, str(SECONDS))
    limit = seconds_of(text)
    try:
        group = TorchGroup(limit or SECONDS)
    except Interrupted as end:  # torchrun stops all where one has ended: that one, or the first, says why
        end.is_told = os.environ[RANK] != "0"  # type: ignore[attr-defined]  # any error can carry it
        raise
    try:
        if limit is None:
            known = f"a number of seconds above 0 and below {MOST_SECONDS:g}"
            raise ConfigError(f"{TIME_LIMIT} must be {known}, not {text!r}")
        yield group
        group.leave()
    except BaseException as end:
        error = group.roll_call.died() or end if isinstance(end, Interrupted) else end
        error.is_told = not group.claim_last_word()  # type: ignore[attr-defined]  # any error can carry it
        if group.rank and not isinstance(error, ProcessLostError):
            error.add_note(f"process {group.rank} says so, of {group.size}")
        group.roll_call.end()
        if error is end:
            raise
        raise error from None


class TorchGroup(ProcessGroup):
    """Processes that torchrun has started, with gloo between them. Arrays are sent and received where they lie.

    A collective that fails, or takes longer than the limit, raises ProcessLostError, which names the processes that
    were lost. Before the first one, `gather` goes through torchrun's store: gloo aborts a process where sizes differ.
    """

    def __init__(self, limit: float) -> None:
        import torch
        import torch.distributed

        # Loaded now, since torch.vmap would load it later: its default arguments would then keep the group that is
        # there. The group's threads would outlive destroy_process_group, and a thread that lets go of a tensor while
        # Python ends aborts the process.
        import torch.distributed.nn

        self._torch, self._distributed = torch, torch.distributed
        self.size = number(WORLD_SIZE, 1, least=1)
        self.rank = number(RANK, 0, most=self.size - 1)
        self.limit = limit
        self.num_restarts = number(RESTARTS, 0)
        self._num_gathered, self._is_connected, self._is_lost = 0, False, False
        try:
            self._lasting = self._new_store("", is_master=self.rank == 0 and not is_by_torchrun())
            self._store = self._new_store_of_start()
            self.roll_call = RollCall(self._new_store_of_start, self.rank, self.size, self.limit)
        except RuntimeError as error:
            raise_if_out_of_memory(error)
            raise ProcessLostError(f"process {self.rank} can't reach the others: {first_line(error)}") from None

    def _new_store_of_start(self) -> Any:
        """A connection to the part of the store that belongs to this start of the processes."""
        return self._new_store(f"start {self.num_restarts}")

    def _new_store(self, prefix: str, *, is_master: bool = False) -> Any:
        """A new connection to the store that the environment names. It is torchrun's store, or the first process's if
        torchrun has not started them.
        """
        from torch._C._distributed_c10d import PrefixStore, TCPStore  # as in torch.distributed, which declares neither

        address, port = os.environ.get(ADDRESS), number(PORT, 0, most=MOST_PORT)
        if not address or not port:
            raise ConfigError(f"{ADDRESS} and {PORT} must say where the processes meet, as torchrun has them do")
        limit = timedelta(seconds=self.limit)
        store = TCPStore(address, port, is_master=is_master, timeout=limit, wait_for_workers=False)
        return PrefixStore(f"nn_manual {os.environ.get('TORCHELASTIC_RUN_ID', '')} {prefix}", store)

    def connect(self) -> None:
        """See ProcessGroup. From here on, gloo connects the processes."""
        limit = timedelta(seconds=self.limit)
        self._collective(
            lambda: self._distributed.init_process_group(
                "gloo", store=self._store, rank=self.rank, world_size=self.size, timeout=limit
            )
        )
        self._is_connected = True

    def remember_run(self, directory: str) -> None:
        """See ProcessGroup."""
        self._lasting.set(RUN, directory)

    def remembered_run(self) -> str | None:
        """See ProcessGroup."""
        if not self.num_restarts or not self._lasting.check([RUN]):
            return None
        return str(self._lasting.get(RUN).decode())

    def gather(self, value: Any) -> list[Any]:
        """See ProcessGroup."""
        if self._is_connected:
            own = np.frombuffer(json.dumps(value).encode(), np.uint8)
            return [json.loads(array.tobytes()) for array in self.gather_arrays(own)]
        self._num_gathered += 1
        key = f"gather/{self._num_gathered}"
        try:
            self._store.set(f"{key}/{self.rank}", json.dumps(value))
            return [json.loads(self._got(f"{key}/{rank}", rank)) for rank in range(self.size)]
        except RuntimeError as error:
            raise_if_out_of_memory(error)
            raise ProcessLostError(f"process {self.rank} has lost the others: {first_line(error)}") from None

    def _got(self, key: str, rank: int) -> bytes:
        """What the process `rank` has set. Raises ProcessLostError where it sets nothing in time."""
        end = time.monotonic() + self.limit
        while time.monotonic() < end:
            is_over = self.roll_call.someone_has_the_last_word()  # asked first: what was set before counts
            if self._store.check([key]):
                value: bytes = self._store.get(key)
                return value
            if is_over:
                break
            time.sleep(0.01)
        raise ProcessLostError(f"process {rank} didn't come within {self.limit:g} s")

    def gather_arrays(self, array: Array) -> list[Array]:
        """See ProcessGroup."""
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
        """See ProcessGroup."""
        self.start_broadcast(array, source).wait()

    def start_broadcast(self, array: Array, source: int) -> Work:
        """See ProcessGroup."""
        if not array.size:
            return DONE
        tensor = self._torch.from_numpy(array)
        return _Started(self, self._collective(lambda: self._distributed.broadcast(tensor, source, async_op=True)))

    def start_sum(self, array: Array) -> Work:
        """See ProcessGroup."""
        tensor = self._torch.from_numpy(array)
        return _Started(self, self._collective(lambda: self._distributed.all_reduce(tensor, async_op=True)))

    def start_exchange(self, sent: Array, sent_sizes: list[int], received: Array, received_sizes: list[int]) -> Work:
        """See ProcessGroup."""
        given, taken = self._torch.from_numpy(sent), self._torch.from_numpy(received)
        return _Started(
            self,
            self._collective(
                lambda: self._distributed.all_to_all_single(taken, given, received_sizes, sent_sizes, async_op=True)
            ),
        )

    def _collective(self, run: Callable[[], Result]) -> Result:
        """What `run` returns. Raises ProcessLostError where it fails."""
        self.roll_call.num_collectives += 1
        try:
            return run()
        except RuntimeError as error:
            raise_if_out_of_memory(error)
            raise self.lost(error) from None

    def lost(self, error: RuntimeError) -> ProcessLostError:
        """The error to raise where a collective has failed."""
        self._is_lost = True
        return self.roll_call.lost(error)

    def claim_last_word(self) -> bool:
        """See ProcessGroup."""
        return self.roll_call.claim_last_word()

    def leave(self) -> None:
        """See ProcessGroup."""
        self.roll_call.end()
        if self._is_connected and not self._is_lost:
            self._distributed.destroy_process_group()


class _Started:
    """A collective under way."""

    def __init__(self, group: TorchGroup, work: Any) -> None:
        self._group, self._work = group, work

    def wait(self) -> None:
        """See Work."""
        try:
            self._work.wait()
        except RuntimeError as error:
            raise_if_out_of_memory(error)
            raise self._group.lost(error) from None
