"""What every process must have in the end: the same parameters and buffers."""

from __future__ import annotations

import hashlib

from nn_manual.check.judge.report import mismatch_for
from nn_manual.model import Sequential


def digests_of(model: Sequential) -> dict[str, str]:
    """The hash of each parameter and buffer, by its name."""
    own = vars(model.param) | vars(model.buffer)
    return {name: hashlib.blake2b(array.tobytes(), digest_size=8).hexdigest() for name, array in own.items()}


def compare_processes(digests: list[dict[str, str]]) -> None:
    """Raise GradientMismatch where a process has another hash than process 0. `digests` are those of the processes, by
    rank.
    """
    for rank, others in enumerate(digests):
        for name, digest in others.items():
            if digest != digests[0][name]:
                problem = f"updated {name} of process {rank} is not that of process 0"
                raise mismatch_for(problem)
