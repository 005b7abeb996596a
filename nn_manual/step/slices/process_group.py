"""The processes of a run, as a step sees them: which one this is, and what they can do together."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from nn_manual.arrays import Array


class Work(Protocol):
    """Something that goes on while this process computes."""

    def wait(self) -> None:
        """Return when it is done."""


class ProcessGroup:
    """The group of a process that is alone. A TorchGroup has several processes, all of which make the same calls in the
    same order.
    """

    rank, size = 0, 1
    #: The signal that has asked this process to stop, and the one that all processes know of since their last step.
    signum, agreed_signum = 0, 0

    def gather(self, value: Any) -> list[Any]:
        """The value of each process, by rank. It must be one that JSON can hold."""
        return [value]

    def gather_arrays(self, array: Array) -> list[Array]:
        """The array of each process, by rank. All have the same dtype, and the same shape but for the first dimension.
        """
        return [array]

    def broadcast(self, array: Array, source: int) -> None:
        """Overwrite a contiguous array with that of the process `source`."""

    def start_broadcast(self, array: Array, source: int) -> Work:  # noqa: ARG002 - alone, it is there already
        """The same, while this process goes on."""
        return DONE

    def start_sum(self, array: Array) -> Work:  # noqa: ARG002 - as above
        """Overwrite a contiguous array with the sum of the arrays of all processes, while this process goes on."""
        return DONE

    def start_exchange(self, sent: Array, sent_sizes: list[int], received: Array, received_sizes: list[int]) -> Work:
        """Send a piece of the flat array `sent` to each process and receive one from each, while this process goes on.
        The sizes are those of the pieces, by rank.
        """
        del sent_sizes, received_sizes
        np.copyto(received, sent)
        return DONE

    def connect(self) -> None:
        """Connect the processes: from here on, arrays can be sent."""

    def remember_run(self, directory: str) -> None:
        """Keep the run's directory for the processes that torchrun starts if it has to replace these."""

    def remembered_run(self) -> str | None:
        """The directory of the run that these processes must go on with; None for a new run."""
        return None

    def claim_last_word(self) -> bool:
        """Whether this process reports what ended the run: the first one that asks does."""
        return True

    def leave(self) -> None:
        """End the connection to the other processes."""


class _Done:
    def wait(self) -> None:
        """See Work."""


DONE = _Done()

#: A process that knows of no others.
ALONE = ProcessGroup()
