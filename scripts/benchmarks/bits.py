"""Random nets trained by a plan, on one thread and on several: weights and figures of the check must have equal bits.

`python scripts/benchmark.py bits`. Loops of any length are cut, and more threads prove than the machine may have cores.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import groupby
from typing import NamedTuple

import numpy as np

from benchmarks.processes import on_all_cores
from benchmarks.random_nets import NUM_TIMES, drawn, size_of_batch
from nn_manual.compile import parallel
from nn_manual.data import Examples
from nn_manual.errors import NotFiniteError

#: How many nets are drawn, and how many epochs each batch size of a net gets.
NUM_NETS, NUM_EPOCHS = 200, 2
#: The numbers of threads of loops and of the proof, which are compared with one of each.
THREADS = (2, 3)
#: Loops of this much work, and at these places, are cut: those of small nets, too, with a rest.
LEAST_WORK, GRAIN = 1, 16


class Bits(NamedTuple):
    """What a training leaves: hashes of the weights and of the figures of all steps, how many steps there were, and
    whether a plan made them.
    """

    weights: str
    figures: str
    num_steps: int
    is_compiled: bool


def main(nets: range | None = None) -> int:
    """Train these nets, by default NUM_NETS. Returns 0, or 1 if bits differ."""
    seeds = nets or range(NUM_NETS)
    differing, num_compiled, num_steps = [], 0, 0
    for seed, (one, several) in zip(seeds, on_all_cores(_both, seeds), strict=True):
        num_compiled, num_steps = num_compiled + one.is_compiled, num_steps + one.num_steps
        if one != several:
            differing.append(seed)
            print(f"net {seed}: {one} on one thread, {several} on several", flush=True)
    print(f"{len(seeds)} nets, of which {num_compiled} are compiled; {num_steps:,} steps on one thread")
    print(f"other bits on several threads: {', '.join(map(str, differing)) or 'none'}")
    return int(bool(differing))


def _both(seed: int) -> tuple[Bits, Bits]:
    with _everything_cut():
        return bits(seed, 1, 1), bits(seed, *THREADS)


def bits(seed: int, loop_threads: int, check_threads: int) -> Bits:
    """The bits of a training of the net of this seed on so many threads."""
    trainer, batches = drawn(seed, compiled=True, blas="numpy", threads=1, check_threads=check_threads)
    compiled, figures, num_steps = trainer._compiled, hashlib.sha256(), 0
    if compiled is None:  # it heeds lengths
        return Bits("", "", 0, is_compiled=False)
    compiled.plans.loop_threads = loop_threads  # more than there are cores, perhaps
    for size, same in groupby(sorted(batches, key=size_of_batch), size_of_batch):
        inputs, targets = zip(*same, strict=True)
        data = Examples(np.concatenate(inputs * NUM_TIMES), np.concatenate(targets * NUM_TIMES))
        if not trainer.loss.counted(data.target).any():  # no target counts, which is refused
            continue
        with suppress(NotFiniteError), np.errstate(all="ignore"):  # some of them diverge
            for epoch in range(NUM_EPOCHS):
                steps = list(trainer.epoch(data, size, seed=0, epoch=epoch))
                trainer.observe(steps[-1].loss)
                num_steps += len(steps)
                for step in steps:
                    assert step.check is not None  # the trainer checks every step
                    figures.update(step.check.absolute.tobytes() + step.check.scale.tobytes())
    weights = hashlib.sha256(trainer.model.param_arena.tobytes())
    return Bits(weights.hexdigest(), figures.hexdigest(), num_steps, is_compiled=not compiled.plans.reason)


@contextmanager
def _everything_cut() -> Iterator[None]:
    before = parallel.LEAST_WORK, parallel.GRAIN
    parallel.LEAST_WORK, parallel.GRAIN = LEAST_WORK, GRAIN
    try:
        yield
    finally:
        parallel.LEAST_WORK, parallel.GRAIN = before
