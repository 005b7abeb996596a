"""How much faster two processes of one thread are than one, beside torch's DistributedDataParallel.

Both processes are there all the time. In each round all contestants do the same steps, one after the other: ours and
torch's by both processes, then ours and torch's by the first alone, while the second waits. The last columns are the
part of the communication that is hidden behind backward, and the milliseconds for which it keeps a core busy.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time

import nn_manual  # noqa: F401 - before torch: it makes numpy's threads leave room for torch's

# isort: split
import torch
import torch.distributed

from benchmarks.distributed.nets import NETS, Net, Step
from benchmarks.distributed.torchruns import torchrun
from nn_manual.step.slices import torchrun as our_torchrun
from nn_manual.step.slices.buckets import buckets_of
from nn_manual.step.slices.process_group import ProcessGroup

#: Our speed-up over DistributedDataParallel's, at least.
WANTED = 0.95
ROUNDS, ROUNDS_IN_SHORT, SECONDS = 15, 3, 0.3


def main(*, short: bool = False) -> bool:
    """Print the table, in short after fewer rounds."""
    rounds = ROUNDS_IN_SHORT if short else ROUNDS
    columns = " ".join(f"{name:>7}" for name in ("ours", "by 2", "torch", "by 2"))
    print(f"{'milliseconds a step':20} {columns}   speed-up  torch's  ratio  hidden  core")
    passed = True
    for name in NETS:
        process = torchrun(2, "benchmarks.distributed.speed", name, str(rounds), output=subprocess.PIPE)  # type: ignore[arg-type]  # Popen takes it
        said, _ = process.communicate()
        found = json.loads(next(line for line in said.splitlines() if line.startswith("{")))
        passed &= found["ratio"] >= WANTED
        times = " ".join(f"{found[key]:7.2f}" for key in ("ours by 1", "ours by 2", "torch by 1", "torch by 2"))
        print(f"{name:20} {times}   {found['ours']:8.2f} {found['torch']:8.2f}  {found['ratio']:5.2f}", end="")
        print(f"  {found['hidden']:6.0%}  {1e3 * found['core']:4.0f}  (>= {WANTED})", flush=True)
    return passed


def measure(name: str, rounds: int) -> None:
    """What a process does; the first prints the figures."""
    torch.set_num_threads(1)
    with our_torchrun.processes() as group:
        group.connect()
        net = Net(name)
        times, exposed = _times(net, group, rounds)
        communication, core = _communication(net, group)
        if group.rank == 0:
            medians = {key: 1e3 * statistics.median(each) for key, each in times.items()}
            pairs = (zip(times[f"{who} by 1"], times[f"{who} by 2"], strict=True) for who in ("ours", "torch"))
            ours, torchs = ([one / two for one, two in both_times] for both_times in pairs)
            found = medians | {"ours": statistics.median(ours), "torch": statistics.median(torchs)}
            found["ratio"] = statistics.median(a / b for a, b in zip(ours, torchs, strict=True))
            found |= {"hidden": max(0.0, 1 - exposed / communication), "core": core}
            print(json.dumps(found))


def _times(net: Net, group: ProcessGroup, rounds: int) -> tuple[dict[str, list[float]], float]:
    """The seconds of a step of each contestant in each round, and the seconds for which our step waits for a
    collective.

    DistributedDataParallel is released at the end of this function, while the group exists: without a group, that may
    wait for ever.
    """
    waits = _waits()
    both = {"ours by 2": net.our_step(group), "torch by 2": net.torch_step(group.rank, group.size)}
    alone = {"ours by 1": net.our_step(ProcessGroup()), "torch by 1": net.torch_step(0, 1)}
    steps = {**both, **alone}
    times: dict[str, list[float]] = {key: [] for key in steps}
    counts = {key: _count(step) if key in both or group.rank == 0 else 1 for key, step in steps.items()}
    counts = group.gather(counts)[0]
    exposed = 0.0
    for _ in range(rounds):
        for key, step in steps.items():
            torch.distributed.barrier()
            before = sum(waits)
            if key in both or group.rank == 0:
                times[key].append(_seconds(step, counts[key]))
            if key == "ours by 2":
                exposed += (sum(waits) - before) / counts[key] / rounds
    return times, exposed


def _waits() -> list[float]:
    """A list to which the seconds of each of our waits for a collective are added."""
    waits: list[float] = []
    wait = our_torchrun._Started.wait

    def timed(self: our_torchrun._Started) -> None:
        start = time.perf_counter()
        wait(self)
        waits.append(time.perf_counter() - start)

    our_torchrun._Started.wait = timed  # type: ignore[method-assign]
    return waits


def _communication(net: Net, group: ProcessGroup) -> tuple[float, float]:
    """The seconds that a step's collectives take while nothing is computed, and the seconds for which they keep a core
    busy. If no core is free, hidden communication takes the latter from backward.
    """
    model = net.model()
    buckets, seconds, of_core = buckets_of(model), [], []
    for _ in range(ROUNDS):
        torch.distributed.barrier()
        start, busy = time.perf_counter(), time.process_time()
        for work in [group.start_sum(model.grad_arena[bucket.where]) for bucket in buckets]:
            work.wait()
        seconds.append(time.perf_counter() - start)
        of_core.append(time.process_time() - busy)
    return statistics.median(seconds), statistics.median(of_core)


def _count(step: Step) -> int:
    step()
    return max(2, round(SECONDS / _seconds(step, 3)))


def _seconds(step: Step, count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        step()
    return (time.perf_counter() - start) / count


if __name__ == "__main__":
    measure(sys.argv[1], int(sys.argv[2]))
