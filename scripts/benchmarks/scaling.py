"""How time and memory of a training step grow: `python scripts/benchmark.py scaling`.

One size of a net grows tenfold and a hundredfold, the others stay. Each measurement has a process of its own, the sizes
of an axis one after the other, in rounds. The exponent is the slope of log(time) over log(size), fitted through the
three sizes; beside it stands the exponent of the arithmetic. For the time, this counts the multiplications of all
products, forward and backward; for the memory, the numbers that backward needs, with parameters, gradients and the
optimizer's vectors. At small sizes the calls take the time, not the arithmetic, so the exponent of the last decade also
stands alone.
"""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import nn_manual  # noqa: F401 - before numpy: it makes numpy's threads leave room for torch's

# isort: split
import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.processes import ROOT, run_module, status_of
from nn_manual import LSTM, SGD, CrossEntropyLoss, Flatten, Layer, Linear, MSELoss, ReLU, Sequential, Trainer
from nn_manual.arrays import Array

#: The factors of the smallest size.
FACTORS = 1, 10, 100
NUM_ROUNDS = 3
#: Steps before the measured ones, and how long the measured ones take together; at least one is measured.
NUM_WARM_UP, SECONDS = 2, 0.5
NUM_CLASSES = 10


class Case(NamedTuple):
    """A net, its batch, and what its step holds: the numbers that backward needs and the batch."""

    model: Sequential
    input: Array
    target: Array
    num_activations: int


def _multilayer(width: int, depth: int, batch: int) -> Case:
    sizes = [width] * (depth + 1)
    layers: list[Layer] = [layer for size in sizes[1:] for layer in (Linear(width, size), ReLU())]
    generator = np.random.default_rng(0)
    input = generator.standard_normal((batch, width), np.float32)
    model = Sequential(*layers, Linear(width, NUM_CLASSES))
    return Case(model, input, generator.integers(0, NUM_CLASSES, batch), batch * width * (2 * depth + 1))


def _recurrent(steps: int) -> Case:
    hidden, batch = 32, 16
    generator = np.random.default_rng(0)
    input = generator.standard_normal((steps, batch, hidden), np.float32)
    target = generator.standard_normal((steps * batch, hidden), np.float32)
    model = Sequential(LSTM(hidden, hidden), Flatten(start_dim=0, end_dim=1))
    return Case(model, input, target, steps * batch * hidden * 9)  # input, four gates, c, tanh(c), h, target


#: By axis: the smallest size, and the case of a size.
AXES: dict[str, tuple[int, Callable[[int], Case]]] = {
    "width": (20, lambda size: _multilayer(size, 3, 64)),
    "depth": (2, lambda size: _multilayer(64, size, 64)),
    "batch": (64, lambda size: _multilayer(64, 3, size)),
    "time": (10, _recurrent),
}


class Measured(NamedTuple):
    """Milliseconds of a step, and MiB above what an untrained process has."""

    milliseconds: float
    mebibytes: float


def main() -> int:
    """Print the table."""
    exponents = f"{'exponent':>9} {'last':>5} {'arithmetic':>11}"
    print(f"{'axis':7} {'sizes':>16}  {'milliseconds a step':>24} {exponents}  {'MiB':>20} {exponents}")
    for axis, (smallest, case) in AXES.items():
        sizes = [smallest * factor for factor in FACTORS]
        rounds = [[_in_process(axis, size) for size in sizes] for _ in range(NUM_ROUNDS)]
        times = [statistics.median(each[i].milliseconds for each in rounds) for i in range(len(sizes))]
        memory = [statistics.median(each[i].mebibytes for each in rounds) for i in range(len(sizes))]
        arithmetic = [_arithmetic(case(size)) for size in sizes]
        of_times = _row(sizes, times, [each[0] for each in arithmetic], 24)
        of_memory = _row(sizes, memory, [each[1] for each in arithmetic], 20)
        print(f"{axis:7} {'/'.join(map(str, sizes)):>16}  {of_times}  {of_memory}", flush=True)
    return 0


def _row(sizes: list[int], values: list[float], arithmetic: list[float], width: int) -> str:
    numbers = "/".join(f"{value:.3g}" for value in values)
    return (
        f"{numbers:>{width}} {_exponent(sizes, values):9.2f} {_exponent(sizes[1:], values[1:]):5.2f} "
        f"{_exponent(sizes, arithmetic):6.2f} {_exponent(sizes[1:], arithmetic[1:]):4.2f}"
    )


def _exponent(sizes: list[int], values: list[float]) -> float:
    """The slope of the line that fits the logarithms best."""
    slope, _ = np.polyfit([math.log(size) for size in sizes], [math.log(max(value, 1e-9)) for value in values], 1)
    return float(slope)


def _arithmetic(case: Case) -> tuple[float, float]:
    """Multiplications of a step, and numbers that it holds."""
    products = 3 * case.model.num_products(case.input.shape)  # forward, and two of the same size backward
    return products, 3 * case.model.num_parameters + case.num_activations


def _in_process(axis: str, size: int) -> Measured:
    done = run_module("benchmarks.scaling", ROOT, axis, str(size), stdout=subprocess.PIPE)
    done.check_returncode()
    return Measured(*json.loads(done.stdout))


def _measure(axis: str, size: int) -> Measured:
    """In this process."""
    start = status_of("VmRSS")
    case = AXES[axis][1](size)
    loss: Any = CrossEntropyLoss() if case.target.dtype.kind == "i" else MSELoss()
    trainer = Trainer(case.model, loss, SGD(case.model, lr=0.01, momentum=0.9), check_every=0)
    for _ in range(NUM_WARM_UP):
        trainer.train_step(case.input, case.target)
    times: list[float] = []
    while sum(times) < SECONDS:
        begin = time.perf_counter()
        trainer.train_step(case.input, case.target)
        times.append(time.perf_counter() - begin)
    return Measured(statistics.median(times) * 1e3, (status_of("VmHWM") - start) / 2**20)


if __name__ == "__main__":
    with threadpool_limits(1):
        print(json.dumps(_measure(sys.argv[1], int(sys.argv[2]))))
