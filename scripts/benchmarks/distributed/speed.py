"""How much faster two processes of one thread are than one, beside torch's DistributedDataParallel.

Both processes are there all the time. In each round all contestants do the same steps, one after the other: ours and
torch's by both processes, then ours and torch's by the first alone, while the second waits.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import cycle, pairwise
from typing import Any

import nn_manual  # noqa: F401 - before numpy: it makes numpy's threads leave room for torch's

# isort: split
import numpy as np
import torch
import torch.distributed
from torch.nn.parallel import DistributedDataParallel

from benchmarks.distributed.torchruns import torchrun
from benchmarks.one_model import random_batches
from benchmarks.processes import ROOT
from benchmarks.torch_nets import torch_loss, torch_net, torch_optimizer
from nn_manual import SGD, CrossEntropyLoss, Linear, Loss, ReLU, Sequential, Trainer
from nn_manual.config import load_config
from nn_manual.distributed import torchrun as our_torchrun
from nn_manual.distributed.buckets import buckets_of
from nn_manual.distributed.group import Group
from nn_manual.distributed.sliced_step import Slicing
from nn_manual.distributed.slices import cut
from nn_manual.optim import Optimizer

#: Our speed-up over DistributedDataParallel's, at least.
WANTED = 0.95
NETS = ("784-2048-2048-10", "gpt")
ROUNDS, ROUNDS_IN_SHORT, SECONDS = 15, 3, 0.3

Step = Callable[[], object]


def main(*, short: bool = False) -> bool:
    """Print the table, in short after fewer rounds."""
    rounds = ROUNDS_IN_SHORT if short else ROUNDS
    columns = " ".join(f"{name:>7}" for name in ("ours", "by 2", "torch", "by 2"))
    print(f"{'milliseconds a step':20} {columns}   speed-up  torch's  ratio  hidden")
    passed = True
    for name in NETS:
        process = torchrun(2, "benchmarks.distributed.speed", name, str(rounds), output=subprocess.PIPE)  # type: ignore[arg-type]  # Popen takes it
        said, _ = process.communicate()
        found = json.loads(next(line for line in said.splitlines() if line.startswith("{")))
        passed &= found["ratio"] >= WANTED
        times = " ".join(f"{found[key]:7.2f}" for key in ("ours by 1", "ours by 2", "torch by 1", "torch by 2"))
        print(f"{name:20} {times}   {found['ours']:8.2f} {found['torch']:8.2f}  {found['ratio']:5.2f}", end="")
        print(f"  {found['hidden']:6.0%}  (>= {WANTED})", flush=True)
    return passed


class Net:
    """What is trained, and on which batches."""

    def __init__(self, name: str) -> None:
        if name == "gpt":
            config = load_config(ROOT / "config" / "gpt.yaml")
            self.model, self.loss, self.max_norm = config.new_model, config.loss, config.clip_grad_norm
            self.optimizer: Callable[[Sequential], Optimizer] = config.optimizer
            self.batches: list[Any] = random_batches(config)
            return
        sizes = [int(size) for size in name.split("-")]
        self.model, self.loss, self.max_norm = lambda: _dense(sizes), CrossEntropyLoss(), None
        self.optimizer = lambda model: SGD(model, lr=0.01, momentum=0.9)
        rng = np.random.default_rng(0)
        shape = (512, sizes[0])
        self.batches = [
            (rng.standard_normal(shape, np.float32), rng.integers(0, sizes[-1], 512)) for _ in range(8)
        ]

    loss: Loss

    def ours(self, group: Group) -> Trainer:
        """Our trainer."""
        model = self.model()
        optimizer, slicing = self.optimizer(model), Slicing(group.size, group)
        return Trainer(model, self.loss, optimizer, self.max_norm, check_every=0, slicing=slicing)

    def our_step(self, group: Group) -> Step:
        """A step of it on the next batch."""
        trainer, endless = self.ours(group), cycle(self.batches)
        return lambda: trainer.train_step(*next(endless))

    def torch_step(self, rank: int, size: int) -> Step:
        """torch's, as its users write it."""
        model = self.model()
        net: torch.nn.Module = torch_net(model)
        optimizer, loss = torch_optimizer(self.optimizer(model), net), torch_loss(self.loss)
        if size > 1:
            net = DistributedDataParallel(net)
        rows = cut(len(self.batches[0][0]), size)[rank]
        endless = cycle([tuple(torch.from_numpy(array[rows]) for array in batch) for batch in self.batches])

        def step() -> None:
            input, target = next(endless)
            optimizer.zero_grad()
            loss(net(input), target).backward()
            if self.max_norm is not None:
                torch.nn.utils.clip_grad_norm_(net.parameters(), self.max_norm)
            optimizer.step()

        return step


def _dense(sizes: list[int]) -> Sequential:
    layers: list[Any] = []
    for inputs, outputs in pairwise(sizes):
        layers += [Linear(inputs, outputs), ReLU()]
    return Sequential(*layers[:-1])


def measure(name: str, rounds: int) -> None:
    """What a process does; the first prints the figures."""
    torch.set_num_threads(1)
    with our_torchrun.processes() as group:
        group.connect()
        net, waits = Net(name), _waits()
        both = {"ours by 2": net.our_step(group), "torch by 2": net.torch_step(group.rank, group.size)}
        alone = {"ours by 1": net.our_step(Group()), "torch by 1": net.torch_step(0, 1)}
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
        communication = _communication(net, group)
        if group.rank == 0:
            medians = {key: 1e3 * statistics.median(each) for key, each in times.items()}
            pairs = (zip(times[f"{who} by 1"], times[f"{who} by 2"], strict=True) for who in ("ours", "torch"))
            ours, torchs = ([one / two for one, two in both_times] for both_times in pairs)
            found = medians | {"ours": statistics.median(ours), "torch": statistics.median(torchs)}
            found["ratio"] = statistics.median(a / b for a, b in zip(ours, torchs, strict=True))
            found["hidden"] = max(0.0, 1 - exposed / communication)
            print(json.dumps(found))


def _waits() -> list[float]:
    """A list that grows by the seconds of each wait for a collective of ours."""
    waits: list[float] = []
    wait = our_torchrun._Started.wait

    def timed(self: our_torchrun._Started) -> None:
        start = time.perf_counter()
        wait(self)
        waits.append(time.perf_counter() - start)

    our_torchrun._Started.wait = timed  # type: ignore[method-assign]
    return waits


def _communication(net: Net, group: Group) -> float:
    """The seconds that a step's collectives take where nothing is computed meanwhile."""
    model = net.model()
    buckets, seconds = buckets_of(model), []
    for _ in range(ROUNDS):
        torch.distributed.barrier()
        start = time.perf_counter()
        for work in [group.start_sum(model.grad_arena[bucket.where]) for bucket in buckets]:
            work.wait()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


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
