"""What many processes train in the benchmarks, by our trainer and by torch's."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle, pairwise
from typing import Any

import nn_manual  # noqa: F401 - before numpy: it makes numpy's threads leave room for torch's

# isort: split
import numpy as np
import torch
from torch.nn.parallel import DistributedDataParallel

from benchmarks.one_model import random_batches
from benchmarks.processes import ROOT
from benchmarks.torch_nets import torch_loss, torch_net, torch_optimizer
from nn_manual import SGD, CrossEntropyLoss, Linear, Loss, ReLU, Sequential, Trainer
from nn_manual.config import load_config
from nn_manual.optim import Optimizer
from nn_manual.step.slices.cut import ONE_SLICE, Slicing, cut
from nn_manual.step.slices.process_group import ProcessGroup

NETS = ("784-2048-2048-10", "gpt")

Step = Callable[[], object]


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

    def ours(self, slicing: Slicing = ONE_SLICE) -> Trainer:
        """Our trainer."""
        model = self.model()
        optimizer = self.optimizer(model)
        return Trainer(model, self.loss, optimizer, self.max_norm, check_every=0, slicing=slicing)

    def our_step(self, group: ProcessGroup) -> Step:
        """A step of it on the next batch."""
        trainer, endless = self.ours(Slicing(group.size, group)), cycle(self.batches)
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
