"""Microseconds per training step: this trainer unchecked, this trainer checked at every step, and torch eager.

Each net is timed in rounds; in a round every contestant does the same number of steps, one after the other, so that a
slow moment of the machine meets all of them. Ratios are medians over the rounds' own ratios.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import cycle, pairwise
from typing import Any

import nn_manual  # noqa: F401 - before numpy, whose threads it tells to make room for torch's

# isort: split
import numpy as np

#: Layer sizes, batch size, steps a round: enough that a round takes some ten milliseconds.
NETS = (
    ((2, 16, 16, 2), 32, 200),
    ((64, 64, 10), 64, 200),
    ((784, 128, 10), 64, 50),
    ((784, 512, 512, 10), 128, 10),
    ((784, 2048, 2048, 10), 256, 2),
)
ROUNDS = 15

#: What issue and README promise: torch's time over ours, and a checked step over (ours + torch).
SPEEDUP = 1.3
CHECKED: dict[tuple[int, ...], float] = {(784, 512, 512, 10): 1.15, (784, 2048, 2048, 10): 1.15}
CHECKED_SMALL = 2.0

#: Different batches to train on: on a single one a net reaches zero loss, and gradients that are only rounding.
NUM_BATCHES = 64


def main() -> int:
    """Measure in a process without OPENBLAS_CORETYPE and the like: a preset older core halves numpy's speed."""
    preset = {name for name in os.environ if name.startswith("OPENBLAS_")} - {"OPENBLAS_THREAD_TIMEOUT"}
    if preset:
        environment = {name: value for name, value in os.environ.items() if name not in preset}
        return subprocess.run([sys.executable, *sys.argv], env=environment, check=False).returncode
    _print_libraries()
    print(f"{'net (batch)':26} {'ours':>7} {'checked':>8} {'torch':>7} {'torch/':>7} {'bound':>6} {'checked/':>12}")
    print(f"{'':26} {'us':>7} {'us':>8} {'us':>7} {'ours':>7} {'':>6} {'(ours+torch)':>12}")
    missed = [net for net in NETS if not _print_net(*net)]
    print("\ntorch/ours: at least 1.3; checked/(ours+torch): at most 2, 1.15 for the two largest.")
    print("bound: torch's time over that of our step's matrix products alone; no step on them can be faster.")
    return 1 if missed else 0


def _print_libraries() -> None:
    import torch
    from threadpoolctl import threadpool_info

    for library in threadpool_info():
        kind = f"{library['internal_api']} {library.get('architecture', '')}".strip()
        print(f"{library['prefix']:12} {kind} {library['version'] or ''}: {library['num_threads']} threads")
    print(f"numpy {np.__version__}, torch {torch.__version__}: {torch.get_num_threads()} threads")
    settings = torch.__config__.show().splitlines()
    print("\n".join(line.strip() for line in settings if "Math" in line or "CPU cap" in line), end="\n\n")


def _print_net(sizes: tuple[int, ...], batch: int, num_steps: int) -> bool:
    contestants = {
        "ours": _ours(sizes, batch, checked=False),
        "checked": _ours(sizes, batch, checked=True),
        "torch": _torch(sizes, batch),
        "products": _products(sizes, batch),
    }
    times = _rounds(contestants, num_steps)
    speedup = statistics.median(t / o for t, o in zip(times["torch"], times["ours"], strict=True))
    bound = statistics.median(t / p for t, p in zip(times["torch"], times["products"], strict=True))
    cost = statistics.median(
        c / (o + t) for c, o, t in zip(times["checked"], times["ours"], times["torch"], strict=True)
    )
    median = {name: statistics.median(values) for name, values in times.items()}
    name = f"{'-'.join(map(str, sizes))} ({batch})"
    passed = speedup >= SPEEDUP and cost <= CHECKED.get(sizes, CHECKED_SMALL)
    print(
        f"{name:26} {median['ours']:7.0f} {median['checked']:8.0f} {median['torch']:7.0f} "
        f"{speedup:7.2f} {bound:6.2f} {cost:12.2f}{'' if passed else '  missed'}",
        flush=True,
    )
    return passed


def _rounds(contestants: dict[str, Callable[[], object]], num_steps: int) -> dict[str, list[float]]:
    """Microseconds a step of each contestant in each round."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(ROUNDS):
        for name, step in contestants.items():
            step()  # brings its memory back into the caches
            start = time.perf_counter()
            for _ in range(num_steps):
                step()
            times[name].append((time.perf_counter() - start) / num_steps * 1e6)
    return times


def _batches(sizes: tuple[int, ...], batch: int) -> Iterator[tuple[Any, Any]]:
    generator = np.random.default_rng(0)
    return cycle(
        [
            (generator.standard_normal((batch, sizes[0]), np.float32), generator.integers(0, sizes[-1], batch))
            for _ in range(NUM_BATCHES)
        ]
    )


def _ours(sizes: tuple[int, ...], batch: int, *, checked: bool) -> Callable[[], object]:
    from nn_manual import SGD, CrossEntropyLoss, Layer, Linear, ReLU, Sequential, Trainer

    layers: list[Layer] = []
    for in_features, out_features in pairwise(sizes):
        layers += [Linear(in_features, out_features), ReLU()]
    model = Sequential(*layers[:-1])
    trainer = Trainer(model, CrossEntropyLoss(), SGD(model, lr=0.01, momentum=0.9), check_every=int(checked))
    batches = _batches(sizes, batch)
    return lambda: trainer.train_step(*next(batches))


def _torch(sizes: tuple[int, ...], batch: int) -> Callable[[], object]:
    import torch

    layers: list[torch.nn.Module] = []
    for in_features, out_features in pairwise(sizes):
        layers += [torch.nn.Linear(in_features, out_features), torch.nn.ReLU()]
    model, loss = torch.nn.Sequential(*layers[:-1]), torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, fused=True)
    batches = cycle(
        [
            (torch.from_numpy(input), torch.from_numpy(target))
            for (input, target), _ in zip(_batches(sizes, batch), range(NUM_BATCHES), strict=False)
        ]
    )

    def step() -> None:
        input, target = next(batches)
        optimizer.zero_grad()
        loss(model(input), target).backward()
        optimizer.step()

    return step


def _products(sizes: tuple[int, ...], batch: int) -> Callable[[], object]:
    """The matrix products of a step, into memory that is there already: output, grad_weight, grad_input."""
    generator = np.random.default_rng(0)
    products: list[tuple[Any, Any, Any]] = []
    for index, (in_features, out_features) in enumerate(pairwise(sizes)):
        input, weight, grad_output = (
            generator.standard_normal(shape, np.float32)
            for shape in ((batch, in_features), (out_features, in_features), (batch, out_features))
        )
        products += [(input, weight.T, np.empty_like(grad_output)), (grad_output.T, input, np.empty_like(weight))]
        if index > 0:
            products.append((grad_output, weight, np.empty_like(input)))

    def step() -> None:
        for left, right, out in products:
            np.matmul(left, right, out=out)

    return step
