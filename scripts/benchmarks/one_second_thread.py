"""A net of config/ on one and on two threads, in a process of its own: `python -m benchmarks.one_second_thread NAME`.

Our steps are compiled: products and loops run on so many threads. Prints, as JSON, by contestant and threads the
milliseconds of a step in each round.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

import nn_manual  # noqa: F401 - before numpy: it makes numpy's threads leave room for torch's

# isort: split
import numpy as np
import torch

from benchmarks.one_model import random_batches, torch_training
from benchmarks.processes import ROOT
from nn_manual import Trainer
from nn_manual.config import RunConfig, load_config
from nn_manual.data import Examples

#: Rounds, and how many steps each contestant makes in one.
ROUNDS, NUM_STEPS = 9, 16
THREADS = 1, 2


def main(name: str) -> None:
    """Measure and print."""
    config = load_config(ROOT / "config" / f"{name}.yaml")
    contestants = {f"ours {threads}": _ours(config, threads) for threads in THREADS}
    contestants |= {f"torch {threads}": _torch(config, threads) for threads in THREADS}
    for some_steps in contestants.values():
        some_steps()
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(ROUNDS):
        for contestant, some_steps in contestants.items():
            start = time.perf_counter()
            some_steps()
            times[contestant].append((time.perf_counter() - start) / NUM_STEPS * 1e3)
    print(json.dumps(times))


def _ours(config: RunConfig, threads: int) -> Callable[[], None]:
    inputs, targets = map(np.concatenate, zip(*random_batches(config, NUM_STEPS), strict=True))
    model = config.new_model()
    trainer = Trainer(
        model,
        config.loss,
        config.optimizer(model),
        clip_grad_norm=config.clip_grad_norm,
        check_every=0,
        compiled=True,
        blas="numpy",
        threads=threads,
        loop_threads=threads,
    )

    def some_steps() -> None:
        for _ in trainer.epoch(Examples(inputs, targets), config.batch_size, seed=0, epoch=0):
            pass

    return some_steps


def _torch(config: RunConfig, threads: int) -> Callable[[], None]:
    batches = [tuple(map(torch.from_numpy, batch)) for batch in random_batches(config, NUM_STEPS)]
    step = torch_training(config)

    def some_steps() -> None:
        torch.set_num_threads(threads)
        for batch in batches:
            step(*batch)

    return some_steps


if __name__ == "__main__":
    main(*sys.argv[1:])
