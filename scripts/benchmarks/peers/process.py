"""One contestant on one net, in a process of its own: `python -m benchmarks.peers.process CONTESTANT SUBJECT THREADS`.

It trains an epoch, so that everything is compiled, and prints whose BLAS it uses, and on how many threads, as JSON.
Then, for each line that it reads, it trains an epoch and prints the microseconds that a step took. If it can't train,
the first line that it prints says why.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

import nn_manual  # noqa: F401 - before numpy: it makes numpy's threads leave room for torch's

# isort: split
from threadpoolctl import threadpool_limits


def main(contestant: str, subject: str, threads: str) -> None:
    """Serve rounds until standard input ends."""
    _bind(int(threads))
    with threadpool_limits(int(threads)):
        from benchmarks.peers.contestants import blas_of

        try:
            made, epoch = _made(contestant, subject)
        except Exception as error:  # whatever is missing or can't be done: it is reported beside the other contestants
            print(json.dumps({"problem": f"{type(error).__name__}: {error}".splitlines()[0]}), flush=True)
            return
        print(json.dumps({"blas": blas_of(contestant, epoch, int(threads))}), flush=True)
        for _ in sys.stdin:
            start = time.perf_counter()
            epoch()
            print((time.perf_counter() - start) / made.num_steps * 1e6, flush=True)


def _bind(threads: int) -> None:
    """Run on that many cores: some libraries accept no other limit for their threads."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


def _made(contestant: str, subject: str) -> tuple[Any, Any]:
    from benchmarks.peers.contestants import CONTESTANTS
    from benchmarks.peers.subjects import SUBJECTS

    made = SUBJECTS[subject]()
    epoch = CONTESTANTS[contestant](made)
    epoch()
    return made, epoch


if __name__ == "__main__":
    main(*sys.argv[1:])
