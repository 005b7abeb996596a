"""The processes of a run, as the step sees them: which one this is, and what they can do together."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from nn_manual.arrays import Array


class Work(Protocol):
    """Something that goes on while this process computes."""

    def wait(self) -> None:
        """Return when it is done."""


class ProcessGroup:
    """One process alone: it is all there is. TorchGroup has more; each of its processes makes the same calls in the
    same order.
    """

    rank, size = 0, 1
    #: The signal that has asked this process to stop, and the one that all of them know of since their last step.
    signum, agreed_signum = 0, 0

    def gather(self, value: Any) -> list[Any]:
        """What each process gave, by rank, of values that JSON knows."""
        return [value]

    def gather_arrays(self, array: Array) -> list[Array]:
        """The array of each process, by rank: of one dtype, and of one shape but for the first dimension."""
        return [array]

    def broadcast(self, array: Array, source: int) -> None:
        """Overwrite a contiguous array by that of the process `source`."""

    def start_broadcast(self, array: Array, source: int) -> Work:  # noqa: ARG002 - alone, it is there already
        """The same, while this process goes on."""
        return DONE

    def start_sum(self, array: Array) -> Work:  # noqa: ARG002 - as above
        """Overwrite a contiguous array by the sum of those of all processes, while this process goes on."""
        return DONE

    def start_exchange(self, sent: Array, sent_sizes: list[int], received: Array, received_sizes: list[int]) -> Work:
        """Send a piece of the flat array `sent` to each process, and receive one of each, while this process goes on.
        The sizes are those of the pieces, by rank.
        """
        del sent_sizes, received_sizes
        np.copyto(received, sent)
        return DONE

    def connect(self) -> None:
        """From here on, arrays can be sent."""

    def remember_run(self, directory: str) -> None:
        """Keep the run's directory, for processes that are started again in the place of these."""

    def remembered_run(self) -> str | None:
        """The directory of the run that these processes are to go on with; None where it is a new one."""
        return None

    def claim_last_word(self) -> bool:
        """Whether this process is to say what ended the run: the first that asks is."""
        return True

    def leave(self) -> None:
        """Part from the others."""


class _Done:
    def wait(self) -> None:
        """It is."""


DONE = _Done()

#: A process that knows of no others.
ALONE = ProcessGroup()
