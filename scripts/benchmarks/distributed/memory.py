"""What `shard_optimizer` saves: the bytes of the optimizer's vectors on each process, and the resident memory.

Each figure is the largest over all processes, in MiB, on 784-2048-2048-10. Resident is what a process has after some
steps, above what it had before it made its model, without what it can give back to the system; and the most on the way.
"""

from __future__ import annotations

import ctypes
import gc
import json
import subprocess
from pathlib import Path
from typing import Any

import nn_manual  # noqa: F401 - before torch: it makes numpy's threads leave room for torch's

# isort: split
import torch

from benchmarks.distributed.arithmetic import MIB
from benchmarks.distributed.nets import Net
from benchmarks.distributed.torchruns import torchrun
from benchmarks.processes import status_of
from nn_manual import SGD, Adam, Trainer
from nn_manual.step.slices.cut import Slicing
from nn_manual.step.slices.process_group import ProcessGroup
from nn_manual.step.slices.torchrun import processes

SIZES, NUM_STEPS = (1, 2, 4), 3
#: By the words of the table; the vectors are momentum_buffer, and exp_avg and exp_avg_sq.
OPTIMIZERS: dict[str, Any] = {
    "SGD, momentum": lambda model: SGD(model, lr=0.01, momentum=0.9),
    "Adam": lambda model: Adam(model, lr=1e-3),
}
WAYS = {"whole": False, "sharded": True}


def main(*, short: bool = False) -> bool:
    """Print the table. Returns whether sharded vectors take a part of 1 / processes. In short, with 1 and 2 processes.
    """
    print("".join(f"{column:>16}" for column in ("optimizer", "processes", "way", "vectors", "resident", "most")))
    passed = True
    for size in SIZES[:2] if short else SIZES:
        process = torchrun(size, "benchmarks.distributed.memory", output=subprocess.PIPE)  # type: ignore[arg-type]  # Popen takes it
        said, _ = process.communicate()
        found = json.loads(next(line for line in said.splitlines() if line.startswith("{")))
        for name, ways in found.items():
            for way, figures in ways.items():
                shown = "".join(f"{figure / MIB:16.1f}" for figure in figures)
                print(f"{name:>16}{size:>16}{way:>16}{shown}", flush=True)
            if size > 1:
                passed &= ways["sharded"][0] < 1.01 * ways["whole"][0] / size
    return passed


def measure() -> None:
    """What a process does; the first prints the figures."""
    torch.set_num_threads(1)
    with processes() as group:
        group.connect()
        net = Net("784-2048-2048-10")
        _figures(net, group, "SGD, momentum", shard_optimizer=False)  # loads what the others then needn't load
        found = {
            name: {
                way: _figures(net, group, name, shard_optimizer=sharded)
                for way, sharded in WAYS.items()
                if group.size > 1 or not sharded
            }
            for name in OPTIMIZERS
        }
        if group.rank == 0:
            print(json.dumps(found))


def _figures(net: Net, group: ProcessGroup, name: str, *, shard_optimizer: bool) -> list[int]:
    """Bytes: of the vectors, resident in the end, and at most."""
    _trim()
    start = status_of("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # resets VmHWM, the most so far
    model = net.model()
    optimizer = OPTIMIZERS[name](model)
    slicing = Slicing(group.size, group, shard_optimizer=shard_optimizer)
    trainer = Trainer(model, net.loss, optimizer, check_every=0, slicing=slicing)
    for number in range(NUM_STEPS):
        trainer.train_step(*net.batches[number])
    most = status_of("VmHWM") - start
    _trim()
    own = [sum(vector.nbytes for vector in optimizer.vectors.values()), status_of("VmRSS") - start, most]
    return [max(figures) for figures in zip(*group.gather(own), strict=True)]


def _trim() -> None:
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)


if __name__ == "__main__":
    measure()
