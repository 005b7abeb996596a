"""One start of a training, in a process of its own: `python -m benchmarks.one_start WHO NAME STARTED STEPS`.

WHO is plain, compiled or torch; NAME is a file of config/; STARTED is the time.monotonic at which the process was asked
for. Prints the seconds from then to the end of the first step, and to the end of the last of STEPS, as JSON.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Iterator

from benchmarks.processes import ROOT
from nn_manual.config import RunConfig, load_config
from nn_manual.data import batches
from nn_manual.run.loading import load
from nn_manual.run.training_run import TrainingRun


def main(who: str, name: str, started: str, num_steps: str) -> None:
    """Train so many steps and print the two times."""
    compiled = str(who == "compiled").lower()
    config = load_config(ROOT / "config" / f"{name}.yaml", ["gradient_check.every=0", f"compiled={compiled}"])
    steps = _torch_steps(config) if who == "torch" else _steps(config)
    ends = []
    for _ in itertools.islice(steps, int(num_steps)):
        ends.append(time.monotonic() - float(started))
    print(json.dumps([ends[0], ends[-1]]))


def _steps(config: RunConfig) -> Iterator[object]:
    split, model = load(config)
    trainer = TrainingRun(config, split, model).trainer
    for epoch in itertools.count():
        yield from trainer.epoch(split.train, config.batch_size, seed=config.seed, epoch=epoch)


def _torch_steps(config: RunConfig) -> Iterator[object]:
    """The same with torch, on the same batches: eager, as its users write it."""
    import torch

    from benchmarks.torch_nets import torch_loss, torch_net, torch_optimizer

    split, model = load(config)
    net, loss = torch_net(model), torch_loss(config.loss)
    optimizer = torch_optimizer(config.optimizer(model), net)
    for epoch in itertools.count():
        for input, target in batches(split.train, config.batch_size, config.seed, epoch):
            optimizer.zero_grad()
            loss(net(torch.from_numpy(input)), torch.from_numpy(target)).backward()
            if config.clip_grad_norm is not None:
                torch.nn.utils.clip_grad_norm_(net.parameters(), config.clip_grad_norm)
            optimizer.step()
            yield None


if __name__ == "__main__":
    main(*sys.argv[1:])
