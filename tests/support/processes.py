"""Several processes, as torchrun starts them, without its seconds: forked from one that has loaded torch already.

`python processes.py CASES` runs one case after the other; `run_cases` has it done.
"""

from __future__ import annotations

import importlib
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
import traceback
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, TypedDict

#: torch looks up the name of each address, for its log. Where no name server answers, glibc asks again after 1 s then.
QUICK_LOOKUPS = {"RES_OPTIONS": "timeout:1"}

#: Processes that haven't ended after so many seconds never will, on the slowest machine too.
HANGING = 600


class Case(TypedDict, total=False):
    """`size` processes run `function`, of the module `module` or else of process_functions.py, with the directory and
    these arguments. Once the first has printed `after`, the process `victim` gets the signal `signum`. What they print
    lies in `logs`.
    """

    directory: str
    logs: str
    size: int
    module: str
    function: str
    arguments: list[str]
    victim: int
    signum: int
    after: str
    environment: dict[str, str]


def run_cases(cases: list[Case], folder: Path) -> None:
    """Run the cases; `statuses_of` and `log_of` then say how each ended, by its logs."""
    (folder / "cases.json").write_text(json.dumps(cases))
    environment = os.environ | {"OMP_NUM_THREADS": "1"} | QUICK_LOOKUPS
    subprocess.run([sys.executable, __file__, str(folder / "cases.json")], check=True, env=environment)


def statuses_of(logs: Path) -> list[int | None]:
    """The exit status of each process; None of one that had to be killed at the end."""
    statuses: list[int | None] = json.loads((logs / "statuses").read_text())
    return statuses


def log_of(logs: Path, rank: int) -> str:
    """What a process has printed."""
    return (logs / str(rank)).read_text()


def _run_case(case: Case) -> list[int | None]:
    logs = Path(case["logs"])
    logs.mkdir(parents=True)
    context = multiprocessing.get_context("fork")
    # The store's threads look up addresses. A process forked from theirs may get a lock that nobody opens again.
    port, sender = context.Pipe(duplex=False)
    store = context.Process(target=_keep_store, args=(sender,), daemon=True)
    store.start()
    sender.close()  # else nobody would notice that a store ended without a word
    environment = {
        "WORLD_SIZE": str(case["size"]),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port.recv()),
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "TORCHELASTIC_RESTART_COUNT": "0",
        **case.get("environment", {}),
    }
    processes: list[BaseProcess] = [
        context.Process(target=_run, args=(rank, case, logs, environment)) for rank in range(case["size"])
    ]
    for process in processes:
        process.start()
    if "victim" in case:
        victim = processes[case["victim"]]
        while not ((logs / "0").exists() and case["after"] in (logs / "0").read_text()):
            assert processes[0].is_alive(), f"{logs / '0'} has no {case['after']!r}"
            time.sleep(0.01)
        assert victim.pid is not None
        os.kill(victim.pid, case["signum"])
        if case["signum"] == signal.SIGSTOP:
            for process in set(processes) - {victim}:
                process.join(HANGING)
            victim.kill()
    end = time.monotonic() + HANGING
    for process in processes:
        process.join(max(0, end - time.monotonic()))
    statuses = [process.exitcode for process in processes]
    for process in [*processes, store]:
        process.kill()
        process.join()
    return statuses


def _keep_store(port: Connection) -> None:
    """Keep the store as torchrun's own process does; its port goes through `port`."""
    from torch._C._distributed_c10d import TCPStore  # as in torch.distributed, which doesn't declare it

    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    port.send(store.port)
    signal.pause()


def _run(rank: int, case: Case, logs: Path, environment: dict[str, str]) -> None:
    os.environ.update(environment, RANK=str(rank), LOCAL_RANK=str(rank))
    with (logs / str(rank)).open("w") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
    status: Any = 1
    try:
        module = importlib.import_module(case.get("module", "process_functions"))
        function = getattr(module, case.get("function", "train"))
        status = function(Path(case["directory"]), rank, *case.get("arguments", []))
    except SystemExit as end:
        status = end.code
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status or 0)


if __name__ == "__main__":
    import process_functions

    process_functions.warm_up(Path(sys.argv[1]).with_name("own.yaml"), Path(sys.argv[1]).with_name("warm"))
    for case in json.loads(Path(sys.argv[1]).read_text()):
        statuses = _run_case(case)
        Path(case["logs"], "statuses").write_text(json.dumps(statuses))
