"""Several processes, forked from this one, in which torch is loaded already: torchrun takes seconds to start them."""

from __future__ import annotations

import multiprocessing
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from torch._C._distributed_c10d import TCPStore  # torch.distributed.TCPStore, which it doesn't declare

from nn_manual.cli import main

#: As torchrun's own process has it: they outlive the processes.
_stores: list[TCPStore] = []


def started(
    size: int, function: Callable[[int], object], logs: Path, environment: dict[str, str] | None = None
) -> list[multiprocessing.process.BaseProcess]:
    """`size` processes that run `function(rank)`, in an environment as torchrun makes it. What each prints goes to
    `logs/rank`; its exit status is what the function returns.
    """
    logs.mkdir(parents=True, exist_ok=True)
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    _stores.append(store)
    shared = {
        "WORLD_SIZE": str(size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(store.port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "TORCHELASTIC_RESTART_COUNT": "0",
        **(environment or {}),
    }
    context = multiprocessing.get_context("fork")
    processes: list[multiprocessing.process.BaseProcess] = [
        context.Process(target=_run, args=(rank, function, logs, shared)) for rank in range(size)
    ]
    for process in processes:
        process.start()
    return processes


def statuses(processes: list[multiprocessing.process.BaseProcess], seconds: float = 60) -> list[int | None]:
    """The exit statuses. What still runs after so many seconds is killed, and has None."""
    for process in processes:
        process.join(seconds)
    ended = [process.exitcode for process in processes]
    for process in processes:
        process.kill()
        process.join()
    return ended


def train(size: int, directory: Path, *arguments: str, environment: dict[str, str] | None = None) -> list[int | None]:
    """The exit statuses of `nn-manual train ARGUMENTS --run-dir DIRECTORY` by so many processes."""
    options = ["train", *arguments, "--run-dir", str(directory)]
    return statuses(started(size, lambda _: main(options), Path(f"{directory}.logs"), environment))


def _run(rank: int, function: Callable[[int], object], logs: Path, environment: dict[str, str]) -> None:
    os.environ.update(environment, RANK=str(rank), LOCAL_RANK=str(rank))
    with (logs / str(rank)).open("w") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
    status = 1
    try:
        status = int(function(rank) or 0)  # type: ignore[call-overload]  # None, or a number
    except SystemExit as end:
        status = int(end.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
