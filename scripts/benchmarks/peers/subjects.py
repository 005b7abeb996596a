"""The nets that every contestant trains."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks import nets, one_model
from benchmarks.processes import ROOT

# isort: split
import numpy as np

from nn_manual import Trainer
from nn_manual.arrays import Array
from nn_manual.config import load_config


class Subject(NamedTuple):
    """A net by name, how many steps an epoch has, and how to make its batches and its trainer, checked or compiled or
    neither.
    """

    name: str
    num_steps: int
    new_trainer: Callable[..., Trainer]
    batches: Callable[[], list[tuple[Any, Any]]]

    def stacked(self) -> tuple[Array, Array]:
        """Inputs and targets of the batches of an epoch, each with the batches along the first axis."""
        inputs, targets = zip(*self.batches(), strict=True)
        return np.stack(inputs), np.stack(targets)


def _multilayer(sizes: tuple[int, ...], batch_size: int, num_steps: int, name: str = "") -> Subject:
    net = nets.Net(sizes, batch_size, num_steps)
    return Subject(
        f"{name} ({batch_size})" if name else str(net),
        num_steps,
        lambda *, checked=False, compiled=False: nets.new_trainer(net, checked=checked, compiled=compiled),
        lambda: nets.batches(net, num_steps),
    )


def _of_config(name: str, num_steps: int) -> Subject:
    config = load_config(ROOT / "config" / f"{name}.yaml")
    return Subject(
        f"{name}.yaml ({config.batch_size})",
        num_steps,
        lambda *, checked=False, compiled=False: one_model.new_trainer(config, checked=checked, compiled=compiled),
        lambda: one_model.random_batches(config, num_steps),
    )


#: By the name on the command line; the number of steps keeps an epoch of the slowest contestant below a second or so.
SUBJECTS: dict[str, Callable[[], Subject]] = {
    "2-16-16-2": lambda: _multilayer((2, 16, 16, 2), 32, 512),
    "64-64-10": lambda: _multilayer((64, 64, 10), 64, 512),
    "784-128-10": lambda: _multilayer((784, 128, 10), 64, 128),
    "784-512-512-10": lambda: _multilayer((784, 512, 512, 10), 128, 32),
    "784-2048-2048-10": lambda: _multilayer((784, 2048, 2048, 10), 256, 4),
    "deep": lambda: _multilayer((64,) * 10 + (10,), 64, 128, "ten layers"),
    "gpt": lambda: _of_config("gpt", 6),
    "convnet": lambda: _of_config("convnet", 16),
    "lstm": lambda: _of_config("lstm", 12),
}
