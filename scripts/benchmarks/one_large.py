"""A large GPT, trained for some steps in a process of its own: `python -m benchmarks.one_large WHO NAME THREADS`.

WHO is plain, checked, compiled or torch. Prints, as JSON, the seconds of the first step, with all that begins there,
and of each later one; and the most bytes that were resident during the first step, and during the later ones.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import nn_manual  # noqa: F401 - before numpy: it makes numpy's threads leave room for torch's

# isort: split
import numpy as np
import torch
from threadpoolctl import threadpool_limits

from benchmarks.large import NETS, NUM_STEPS, Net
from benchmarks.processes import status_of
from benchmarks.torch_nets import torch_loss, torch_net, torch_optimizer
from nn_manual import (
    GELU,
    AdamW,
    CausalSelfAttention,
    CrossEntropyLoss,
    Embedding,
    Flatten,
    LayerNorm,
    LearnedPositions,
    Linear,
    Residual,
    Sequential,
    Trainer,
)
from nn_manual.arrays import Array
from nn_manual.data import Examples


def main(who: str, name: str, threads: str) -> None:
    """Measure and print."""
    net, count = NETS[name], int(threads)
    torch.set_num_threads(count)
    generator = np.random.default_rng(0)
    input, target = generator.integers(0, net.num_tokens, (2, net.batch_size, net.context))
    with threadpool_limits(count):
        step = _torch(net, input, target) if who == "torch" else _ours(net, who, count, input, target)
        print(json.dumps(_measured(step)))


def model_of(net: Net) -> Sequential:
    """GPT-2 of these sizes, whose head shares the embedding's weight."""
    width, layers = net.width, []
    for _ in range(net.depth):
        layers += [Residual(LayerNorm(width), CausalSelfAttention(width, net.num_heads))]
        layers += [Residual(LayerNorm(width), Linear(width, 4 * width), GELU("tanh"), Linear(4 * width, width))]
    tokens = Embedding(net.num_tokens, width), LearnedPositions(net.context, width)
    head = LayerNorm(width), Flatten(0, 1), Linear(width, net.num_tokens, bias=False)
    number = 2 + 2 * net.depth + 2
    return Sequential(*tokens, *layers, *head, seed=0, tied=[("0.weight", f"{number}.weight")])


def _ours(net: Net, who: str, threads: int, input: Array, target: Array) -> Callable[[], object]:
    model, is_compiled = model_of(net), who == "compiled"
    trainer = Trainer(
        model,
        CrossEntropyLoss(),
        AdamW(model, lr=1e-4),
        check_every=int(who == "checked"),
        compiled=is_compiled,
        blas="numpy" if is_compiled else None,
        threads=threads if is_compiled else None,
        loop_threads=threads if is_compiled else None,
    )
    examples = Examples(input, target)
    epochs = itertools.count()

    def step() -> None:
        for _ in trainer.epoch(examples, len(input), seed=0, epoch=next(epochs)):
            pass

    return step


def _torch(net: Net, input: Array, target: Array) -> Callable[[], object]:
    model = model_of(net)
    torchs, loss = torch_net(model), torch_loss(CrossEntropyLoss())
    optimizer = torch_optimizer(AdamW(model, lr=1e-4), torchs)
    del model
    batch = torch.from_numpy(input), torch.from_numpy(target)

    def step() -> None:
        optimizer.zero_grad()
        loss(torchs(batch[0]), batch[1]).backward()
        optimizer.step()

    return step


def _measured(step: Callable[[], object]) -> dict[str, list[float]]:
    """Seconds and bytes, of the first step and of the others."""
    found: dict[str, list[float]] = {"seconds": [], "bytes": []}
    for count in (1, NUM_STEPS):
        Path("/proc/self/clear_refs").write_text("5")  # the kernel counts the most from here on
        for _ in range(count):
            start = time.perf_counter()
            step()
            found["seconds"].append(time.perf_counter() - start)
        found["bytes"].append(status_of("VmHWM"))
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
