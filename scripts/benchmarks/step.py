"""Microseconds of a training step: this trainer unchecked, this trainer with every step checked, and torch eager.

Each net is timed in rounds; in a round every contestant does the same number of steps, one after the other, so that a
slow moment of the machine meets all of them. Ratios are medians over the rounds' own ratios.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from itertools import cycle, pairwise
from typing import Any

from benchmarks.nets import NETS, Net, batches, microseconds, training

# isort: split
import numpy as np

ROUNDS = 15

#: The bounds that are wanted: torch's time over ours, at least; a checked step's over (ours + torch), at most.
SPEEDUP = 1.3
CHECKED_SMALL, CHECKED_LARGE = 2.0, 1.15
#: A net of this many parameters is large: the check's own work is little beside the products'.
LARGE = 500_000


def main() -> None:
    """Print the libraries and the table."""
    _print_libraries()
    columns = ("ours", "checked", "torch", "limit", "torch / ours", "checked / (ours + torch)")
    print("{:24} {:>8} {:>8} {:>8} {:>7}  {:14} {}".format("net (batch), microseconds", *columns).rstrip())
    for net in NETS:
        _print_net(net)
    print("\nin brackets: what is wanted")
    print("limit: torch's time over that of our step's matrix products alone; no step on them can be faster")


def _print_libraries() -> None:
    import torch
    from threadpoolctl import threadpool_info

    for library in threadpool_info():
        kind = f"{library['internal_api']} {library.get('architecture', '')}".strip()
        print(f"{library['prefix']:12} {kind} {library['version'] or ''}: {library['num_threads']} threads")
    print(f"numpy {np.__version__}, torch {torch.__version__}: {torch.get_num_threads()} threads")
    settings = torch.__config__.show().splitlines()
    print("\n".join(line.strip() for line in settings if "Math" in line or "CPU cap" in line), end="\n\n")


def _print_net(net: Net) -> None:
    contestants = {
        "ours": training(net, checked=False),
        "checked": training(net, checked=True),
        "torch": _torch(net),
        "products": _products(net),
    }
    times = _rounds(contestants, net.num_steps)
    speedup = statistics.median(t / o for t, o in zip(times["torch"], times["ours"], strict=True))
    limit = statistics.median(t / p for t, p in zip(times["torch"], times["products"], strict=True))
    cost = statistics.median(
        c / (o + t) for c, o, t in zip(times["checked"], times["ours"], times["torch"], strict=True)
    )
    median = {name: statistics.median(values) for name, values in times.items()}
    num_parameters = sum((in_features + 1) * out_features for in_features, out_features in pairwise(net.sizes))
    wanted = CHECKED_LARGE if num_parameters >= LARGE else CHECKED_SMALL
    print(
        f"{net!s:25} {median['ours']:7.0f} {median['checked']:8.0f} {median['torch']:8.0f} {limit:7.2f}  "
        f"{f'{speedup:.2f} (>= {SPEEDUP})':14} {cost:.2f} (<= {wanted})",
        flush=True,
    )


def _rounds(contestants: dict[str, Callable[[], object]], num_steps: int) -> dict[str, list[float]]:
    """Microseconds of a step of each contestant in each round."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(ROUNDS):
        for name, step in contestants.items():
            step()  # brings its memory back into the caches
            times[name].append(microseconds(step, num_steps))
    return times


def _torch(net: Net) -> Callable[[], object]:
    import torch

    layers: list[torch.nn.Module] = []
    for in_features, out_features in pairwise(net.sizes):
        layers += [torch.nn.Linear(in_features, out_features), torch.nn.ReLU()]
    model, loss = torch.nn.Sequential(*layers[:-1]), torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, fused=True)
    endless = cycle([(torch.from_numpy(input), torch.from_numpy(target)) for input, target in batches(net)])

    def step() -> None:
        input, target = next(endless)
        optimizer.zero_grad()
        loss(model(input), target).backward()
        optimizer.step()

    return step


def _products(net: Net) -> Callable[[], object]:
    """The matrix products of a step, into memory that is there already: output, grad_weight, grad_input."""
    generator = np.random.default_rng(0)
    products: list[tuple[Any, Any, Any]] = []
    for index, (in_features, out_features) in enumerate(pairwise(net.sizes)):
        input, weight, grad_output = (
            generator.standard_normal(shape, np.float32)
            for shape in ((net.batch_size, in_features), (out_features, in_features), (net.batch_size, out_features))
        )
        products += [(input, weight.T, np.empty_like(grad_output)), (grad_output.T, input, np.empty_like(weight))]
        if index > 0:
            products.append((grad_output, weight, np.empty_like(input)))

    def step() -> None:
        for left, right, out in products:
            np.matmul(left, right, out=out)

    return step


if __name__ == "__main__":
    main()
