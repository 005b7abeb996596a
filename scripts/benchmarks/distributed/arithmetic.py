"""The time of a step and the memory of a process, by arithmetic, beside what 1 to 4 processes take.

    time     one process alone on its share of the batch, + the bytes that it sends / the bytes a second that two
             processes exchange; where there are fewer cores than processes, the first part as many times as that
    memory   parameters, gradients and the optimizer's vectors, what is received of gradients, what forward saves of the
             share, and a gradient that comes in and one that goes out

The arithmetic hides no communication behind backward: if a step takes less time, some was hidden.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nn_manual  # noqa: F401 - before torch: it makes numpy's threads leave room for torch's

# isort: split
import numpy as np
import torch

from benchmarks.distributed.nets import NETS, Net
from benchmarks.distributed.torchruns import torchrun
from benchmarks.processes import status_of
from nn_manual import Sequential
from nn_manual.arrays import Array
from nn_manual.step.slices.buckets import BUCKET_SIZE, buckets_of
from nn_manual.step.slices.cut import Slicing, cut
from nn_manual.step.slices.gradient_sum import NUM_UNDER_WAY
from nn_manual.step.slices.process_group import ProcessGroup
from nn_manual.step.slices.torchrun import processes

SIZES = (1, 2, 3, 4)
#: The ways of adding gradients up, as arguments of Slicing.
WAYS: dict[str, dict[str, bool]] = {"fastest": {}, "bitwise": {"bitwise": True}, "sharded": {"shard_optimizer": True}}
NUM_STEPS, NUM_IN_SHORT = 20, 4
MIB, FLOAT = 1 << 20, 4


def main(*, short: bool = False) -> bool:
    """Print the table, in short after fewer steps. It has no figure to reach."""
    num_steps, num_cores = NUM_IN_SHORT if short else NUM_STEPS, len(os.sched_getaffinity(0))
    print(f"{num_cores} cores")
    for name in NETS:
        ways = [(count, way) for count in SIZES for way in (WAYS if count > 1 else ["fastest"])]
        found = {(count, way): _measured(name, count, way, num_steps) for count, way in ways}
        size = found[2, "fastest"]["size"]
        bandwidth = size / found[2, "fastest"]["communication"]  # 2 processes: 2 (N - 1) / N = 1
        print(f"{name}: {size / MIB:.1f} MiB of gradients, {bandwidth / 1e9:.2f} GB a second between two processes")
        columns = ("processes", "way", "ms: arithmetic", "measured", "MiB: arithmetic", "measured")
        print("".join(f"{column:>16}" for column in columns))
        for (count, way), measured in found.items():
            compute = measured["alone"] * max(1, count / num_cores)
            num_sent = 2 * (count - 1) / count * size  # each way, with a slice for each process
            times = f"{1e3 * (compute + num_sent / bandwidth):16.1f}{1e3 * measured['seconds']:16.1f}"
            memory = f"{_memory(measured, count, way) / MIB:16.1f}{measured['memory'] / MIB:16.1f}"
            print(f"{count:16}{way:>16}{times}{memory}", flush=True)
    return True


def _memory(found: dict[str, float], count: int, way: str) -> float:
    """The memory of a process above that of a process that trains nothing."""
    size = found["size"]
    vectors = found["num_vectors"] * size / (count if way == "sharded" else 1)
    received = {"fastest": 0, "bitwise": size, "sharded": min(size, NUM_UNDER_WAY * BUCKET_SIZE * FLOAT)}[way]
    return float(2 * size + vectors + received + found["alive"])


def _measured(name: str, size: int, way: str, num_steps: int) -> dict[str, float]:
    """Measure in new processes: a process may keep memory that another way has freed."""
    process = torchrun(size, "benchmarks.distributed.arithmetic", name, way, str(num_steps), output=subprocess.PIPE)  # type: ignore[arg-type]  # Popen takes it
    said, _ = process.communicate()
    found: dict[str, float] = json.loads(next(line for line in said.splitlines() if line.startswith("{")))
    return found


def measure(name: str, way: str, num_steps: int) -> None:
    """What a process does; the first prints the figures."""
    torch.set_num_threads(1)
    with processes() as group:
        group.connect()
        net = Net(name)
        found = _steps(net, Slicing(group.size, group, **WAYS[way]), num_steps)
        trainer = net.ours()
        sizes = _sizes(trainer.model.forward(_share(net, group, 0)[0])[1])
        found |= {"size": trainer.model.grad_arena.nbytes, "num_vectors": len(trainer.optimizer.vectors)}
        found["alive"] = sum(sizes.values()) + 2 * max(sizes.values())
        if group.rank == 0:
            print(json.dumps(found))


def _share(net: Net, group: ProcessGroup, number: int) -> tuple[Array, ...]:
    """The first process's share of a batch."""
    batch = net.batches[number % len(net.batches)]
    return tuple(array[cut(len(array), group.size)[0]] for array in batch)


def _steps(net: Net, slicing: Slicing, num_steps: int) -> dict[str, float]:
    """Bytes of the process above its start. Then, in turns, the seconds of a step, of a step of the first process alone
    on its share, and of the all-reduce of all gradients, in buckets.
    """
    start = status_of("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # resets VmHWM, the most so far
    trainer, group = net.ours(slicing), slicing.group
    for number in range(2):
        trainer.train_step(*net.batches[number])
    found: dict[str, float] = {"memory": status_of("VmHWM") - start}
    alone = net.ours()
    seconds: dict[str, list[float]] = {"seconds": [], "alone": [], "communication": []}
    steps: dict[str, Callable[[int], object]] = {
        "seconds": lambda number: trainer.train_step(*net.batches[number % len(net.batches)]),
        "alone": lambda number: group.rank or alone.train_step(*_share(net, group, number)),
        "communication": lambda _: _communicate(alone.model, group),
    }
    for number in range(num_steps):
        for name, step in steps.items():
            group.gather(None)  # all begin together
            begin = time.perf_counter()
            step(number)
            seconds[name].append(time.perf_counter() - begin)
    return found | {name: statistics.median(times) for name, times in seconds.items()}


def _communicate(model: Sequential, group: ProcessGroup) -> None:
    for work in [group.start_sum(model.grad_arena[bucket.where]) for bucket in buckets_of(model)]:
        work.wait()


def _sizes(saved: Any) -> dict[int, int]:
    """The bytes of each piece of memory of the arrays in what forward saved."""
    if isinstance(saved, np.ndarray):
        owner = saved if saved.base is None else saved.base
        return {id(owner): owner.nbytes} if isinstance(owner, np.ndarray) else {}
    parts = saved if isinstance(saved, tuple | list) else []
    return {key: size for part in parts for key, size in _sizes(part).items()}


if __name__ == "__main__":
    measure(sys.argv[1], sys.argv[2], int(sys.argv[3]))
