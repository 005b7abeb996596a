"""The nets whose steps are timed, and their training. It uses only public names of nn_manual, since it must also work
in other commits.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from itertools import cycle, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import nn_manual  # noqa: F401 - before numpy: it makes numpy's threads leave room for torch's

# isort: split
import numpy as np

if TYPE_CHECKING:
    from nn_manual import Trainer

#: Different batches to train on. On a single one a net would reach zero loss, and gradients that are only rounding.
NUM_BATCHES = 64


class Net(NamedTuple):
    """Layer sizes, with a ReLU between; the batch size; and how many steps `against` measures at a time."""

    sizes: tuple[int, ...]
    batch_size: int
    num_steps: int

    def __str__(self) -> str:
        return f"{'-'.join(map(str, self.sizes))} ({self.batch_size})"


NETS = (
    Net((2, 16, 16, 2), 32, 200),
    Net((64, 64, 10), 64, 200),
    Net((784, 128, 10), 64, 50),
    Net((784, 512, 512, 10), 128, 10),
    Net((784, 2048, 2048, 10), 256, 3),
)


def batches(net: Net, num_batches: int = NUM_BATCHES) -> list[tuple[Any, Any]]:
    """Random inputs and labels, float32 and int64."""
    generator = np.random.default_rng(0)
    return [
        (
            generator.standard_normal((net.batch_size, net.sizes[0]), np.float32),
            generator.integers(0, net.sizes[-1], net.batch_size),
        )
        for _ in range(num_batches)
    ]


def new_trainer(net: Net, *, checked: bool, compiled: bool = False, **more: Any) -> Trainer:
    """A trainer that checks every step or none, compiled or not; `more` of its settings."""
    from nn_manual import SGD, CrossEntropyLoss, Layer, Linear, ReLU, Sequential, Trainer

    layers: list[Layer] = []
    for in_features, out_features in pairwise(net.sizes):
        layers += [Linear(in_features, out_features), ReLU()]
    model = Sequential(*layers[:-1])
    if compiled:
        more["compiled"] = True  # older commits don't have it
    return Trainer(model, CrossEntropyLoss(), SGD(model, lr=0.01, momentum=0.9), check_every=int(checked), **more)


def training(net: Net, *, checked: bool) -> Callable[[], object]:
    """A function that takes one step of training, with every tensor checked at once or none."""
    trainer = new_trainer(net, checked=checked)
    endless: Iterator[tuple[Any, Any]] = cycle(batches(net))
    return lambda: trainer.train_step(*next(endless))


def microseconds(step: Callable[[], object], num_steps: int) -> float:
    """The median time of a step: a stall of the machine, which can take a thousand times as long, spoils only one step.
    """
    times = []
    for _ in range(num_steps):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6
