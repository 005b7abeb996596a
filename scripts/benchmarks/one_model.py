"""One measurement of a config's net, in a process of its own: `python -m benchmarks.one_model WHAT NAME THREADS`.

WHAT is "time", "memory of ours" or "memory of torch". Prints JSON.
"""

from __future__ import annotations

import json
import resource
import statistics
import sys
import time
from collections.abc import Callable
from itertools import cycle
from typing import Any

import nn_manual  # noqa: F401 - before numpy: it makes numpy's threads leave room for torch's

# isort: split
import numpy as np
import torch
from threadpoolctl import threadpool_limits

from benchmarks.processes import ROOT
from benchmarks.torch_nets import torch_loss, torch_net, torch_optimizer
from nn_manual import Sequential, Trainer
from nn_manual.config import RunConfig, load_config

#: A step of torch on an input and a target.
TorchStep = Callable[[torch.Tensor, torch.Tensor], object]

NUM_BATCHES = 8
#: Rounds, and how many milliseconds each contestant's part of one takes at least.
ROUNDS, MILLISECONDS = 15, 200
#: So many steps show the most memory that training takes.
NUM_STEPS = 8
#: The number of values from which a target is drawn: of a text, and of digits or clothes.
NUM_CHARACTERS, NUM_CLASSES = 100, 10


def main(what: str, name: str, threads: str) -> None:
    """Measure and print."""
    torch.set_num_threads(int(threads))
    with threadpool_limits(int(threads)):
        config = load_config(ROOT / "config" / f"{name}.yaml")
        print(json.dumps(_times(config) if what == "time" else {"MiB": [_memory(config, what.rpartition(" ")[2])]}))


def random_batches(config: RunConfig, num_batches: int = NUM_BATCHES) -> list[tuple[Any, Any]]:
    """Random batches in the shapes of the data: text, or images as rows."""
    generator = np.random.default_rng(0)
    assert config.data.example_shape is not None
    shape = (config.batch_size, *config.data.example_shape)
    if config.data.predicts_characters:
        return [tuple(generator.integers(0, NUM_CHARACTERS, (2, *shape))) for _ in range(num_batches)]
    return [
        (generator.standard_normal(shape, np.float32), generator.integers(0, NUM_CLASSES, config.batch_size))
        for _ in range(num_batches)
    ]


def new_trainer(config: RunConfig, *, checked: bool, compiled: bool = False) -> Trainer:
    """A trainer that checks every step or none, compiled or not."""
    model = config.new_model()
    return Trainer(
        model,
        config.loss,
        config.optimizer(model),
        clip_grad_norm=config.clip_grad_norm,
        check_every=int(checked),
        compiled=compiled,
    )


def _ours(config: RunConfig, *, checked: bool) -> Callable[[], object]:
    trainer, endless = new_trainer(config, checked=checked), cycle(random_batches(config))
    return lambda: trainer.train_step(*next(endless))


def torch_training(config: RunConfig) -> TorchStep:
    """A training step as a user of torch writes it."""
    model: Sequential = config.new_model()
    net = torch_net(model)
    optimizer = torch_optimizer(config.optimizer(model), net)
    torchs_loss = torch_loss(config.loss)

    def step(input: torch.Tensor, target: torch.Tensor) -> None:
        optimizer.zero_grad()
        loss = torchs_loss(net(input), target)
        loss.backward()
        if config.clip_grad_norm is not None:
            torch.nn.utils.clip_grad_norm_(net.parameters(), config.clip_grad_norm)
        optimizer.step()

    return step


def _torch(config: RunConfig) -> Callable[[], object]:
    batches = [(torch.from_numpy(input), torch.from_numpy(target)) for input, target in random_batches(config)]
    step, endless = torch_training(config), cycle(batches)
    return lambda: step(*next(endless))


def _times(config: RunConfig) -> dict[str, list[float]]:
    """Milliseconds of a step of each contestant in each round."""
    contestants = {
        "ours": _ours(config, checked=False),
        "torch": _torch(config),
        "checked": _ours(config, checked=True),
    }
    for step in contestants.values():
        step()
    num_steps = {name: max(1, round(MILLISECONDS / _milliseconds(step, 3))) for name, step in contestants.items()}
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(ROUNDS):
        for name, step in contestants.items():
            times[name].append(_milliseconds(step, num_steps[name]))
    return times


def _milliseconds(step: Callable[[], object], num_steps: int) -> float:
    """The median time of a step: a stall of the machine, which can take a thousand times as long, spoils only one step.
    """
    times = []
    for _ in range(num_steps):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def _memory(config: RunConfig, side: str) -> float:
    """The largest resident size during some steps, above the size after all imports."""
    start = _resident()
    step = _ours(config, checked=False) if side == "ours" else _torch(config)
    for _ in range(NUM_STEPS):
        step()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    return peak - start


def _resident() -> float:
    """MiB now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20


if __name__ == "__main__":
    main(*sys.argv[1:])
