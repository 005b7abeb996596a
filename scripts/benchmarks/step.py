"""Microseconds of a training step: this trainer with every step checked, this trainer unchecked, and torch eager.

Each contestant trains whole epochs, from the first step to the last. The time includes what checked steps record, and
the proof of all of them. In a round every contestant trains one epoch, one after the other, so that a slow moment of
the machine meets all of them. Ratios are medians over the rounds' own ratios. All of it runs on one thread.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from itertools import count, pairwise
from typing import Any, NamedTuple

from benchmarks.nets import NETS, Net, batches, new_trainer

# isort: split
import numpy as np
import torch
from threadpoolctl import threadpool_info, threadpool_limits

from benchmarks import one_model
from benchmarks.processes import ROOT
from nn_manual import Trainer
from nn_manual.config import load_config
from nn_manual.data import Examples

#: Trains an epoch.
Epoch = Callable[[], object]
Batches = list[tuple[Any, Any]]

#: The bound that is wanted of torch's time over ours, at least.
SPEEDUP = 1.3


class Wanted(NamedTuple):
    """Steps in an epoch, rounds, and the most that a checked step may take, over torch's step, and over ours and
    torch's together; None if there is no limit.
    """

    num_steps: int
    num_rounds: int
    over_torch: float | None
    over_both: float | None


WANTED = dict(
    zip(
        NETS,
        (
            Wanted(256, 15, 0.7, 0.5),
            Wanted(256, 15, 0.7, 0.6),
            Wanted(128, 15, 2.3, 1.2),
            Wanted(32, 9, None, 1.4),
            Wanted(16, 5, None, 1.2),
        ),
        strict=True,
    )
)
GPT, OF_GPT = "gpt", Wanted(16, 7, 2.5, None)


def main() -> None:
    """Print the libraries and the table."""
    torch.set_num_threads(1)
    with threadpool_limits(1):
        _print_libraries()
        columns = ("ours", "checked", "torch", "torch / ours", "checked / torch", "checked / (ours + torch)")
        print("{:24} {:>8} {:>8} {:>8}  {:14} {:16} {}".format("net (batch), microseconds", *columns))
        for net in NETS:
            _print_net(net)
        _print_gpt()
    print("\nin brackets: what is wanted")


def _print_libraries() -> None:
    for library in threadpool_info():
        kind = f"{library['internal_api']} {library.get('architecture', '')}".strip()
        print(f"{library['prefix']:12} {kind} {library['version'] or ''}: {library['num_threads']} threads")
    print(f"numpy {np.__version__}, torch {torch.__version__}: {torch.get_num_threads()} threads")
    settings = torch.__config__.show().splitlines()
    print("\n".join(line.strip() for line in settings if "Math" in line or "CPU cap" in line), end="\n\n")


def _print_net(net: Net) -> None:
    wanted = WANTED[net]
    of_epoch = batches(net, wanted.num_steps)
    contestants = {
        "ours": _epochs(new_trainer(net, checked=False), of_epoch),
        "checked": _epochs(new_trainer(net, checked=True), of_epoch),
        "torch": _torch_epochs(_torch(net), of_epoch),
    }
    _print_row(str(net), _rounds(contestants, wanted), wanted)


def _print_gpt() -> None:
    config = load_config(ROOT / "config" / f"{GPT}.yaml")
    of_epoch = one_model.random_batches(config, OF_GPT.num_steps)
    contestants = {
        "ours": _epochs(one_model.new_trainer(config, checked=False), of_epoch),
        "checked": _epochs(one_model.new_trainer(config, checked=True), of_epoch),
        "torch": _torch_epochs(one_model.torch_training(config), of_epoch),
    }
    _print_row(f"{GPT}.yaml ({config.batch_size})", _rounds(contestants, OF_GPT), OF_GPT)


def _epochs(trainer: Trainer, of_epoch: Batches) -> Epoch:
    """The examples of all batches, drawn into batches anew each epoch."""
    examples = Examples(*(np.concatenate(arrays) for arrays in zip(*of_epoch, strict=True)))
    batch_size, numbers = len(of_epoch[0][0]), count()

    def epoch() -> None:
        for _ in trainer.epoch(examples, batch_size, seed=0, epoch=next(numbers)):
            pass

    return epoch


def _torch_epochs(step: one_model.TorchStep, of_epoch: Batches) -> Epoch:
    ready = [(torch.from_numpy(input), torch.from_numpy(target)) for input, target in of_epoch]

    def epoch() -> None:
        for input, target in ready:
            step(input, target)

    return epoch


def _torch(net: Net) -> one_model.TorchStep:
    layers: list[torch.nn.Module] = []
    for in_features, out_features in pairwise(net.sizes):
        layers += [torch.nn.Linear(in_features, out_features), torch.nn.ReLU()]
    model, loss = torch.nn.Sequential(*layers[:-1]), torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, fused=True)

    def step(input: torch.Tensor, target: torch.Tensor) -> None:
        optimizer.zero_grad()
        loss(model(input), target).backward()
        optimizer.step()

    return step


def _rounds(contestants: dict[str, Epoch], wanted: Wanted) -> dict[str, list[float]]:
    """Microseconds of a step of each contestant in each round. Each contestant trains an epoch first, to get ready."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for epoch in contestants.values():
        epoch()
    for _ in range(wanted.num_rounds):
        for name, epoch in contestants.items():
            start = time.perf_counter()
            epoch()
            times[name].append((time.perf_counter() - start) / wanted.num_steps * 1e6)
    return times


def _print_row(name: str, times: dict[str, list[float]], wanted: Wanted) -> None:
    both = [ours + torchs for ours, torchs in zip(times["ours"], times["torch"], strict=True)]
    ours, checked, torchs = (statistics.median(times[contestant]) for contestant in ("ours", "checked", "torch"))
    speedup = f"{_ratio(times['torch'], times['ours']):.2f}{'' if wanted is OF_GPT else f' (>= {SPEEDUP})'}"
    over_torch = f"{_ratio(times['checked'], times['torch']):.2f}{_at_most(wanted.over_torch)}"
    over_both = f"{_ratio(times['checked'], both):.2f}{_at_most(wanted.over_both)}"
    print(f"{name:25} {ours:8.0f} {checked:8.0f} {torchs:8.0f}  {speedup:14} {over_torch:16} {over_both}", flush=True)


def _ratio(above: list[float], below: list[float]) -> float:
    return statistics.median(a / b for a, b in zip(above, below, strict=True))


def _at_most(bound: float | None) -> str:
    return "" if bound is None else f" (<= {bound})"


if __name__ == "__main__":
    main()
