"""The steps of config/fashion_mnist.yaml alone: `python -m benchmarks.one_fashion OVERRIDE ...` prints their seconds.

Compiling counts: the first step waits for it.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Sequence

from benchmarks.processes import ROOT
from nn_manual.config import load_config
from nn_manual.run.loading import load
from nn_manual.run.training_run import TrainingRun


def main(overrides: Sequence[str]) -> None:
    """Make the steps of all epochs, and print the seconds."""
    config = load_config(ROOT / "config" / "fashion_mnist.yaml", overrides)
    split, model = load(config)
    trainer = TrainingRun(config, split, model).trainer
    start = time.perf_counter()
    for epoch in range(config.epochs):
        deque(trainer.epoch(split.train, config.batch_size, seed=config.seed, epoch=epoch), maxlen=0)
    print(time.perf_counter() - start)


if __name__ == "__main__":
    main(sys.argv[1:])
