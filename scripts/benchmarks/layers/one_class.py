"""One class in a process of its own: `python -m benchmarks.layers.one_class NAME`. Prints JSON."""

from __future__ import annotations

import ctypes
import json
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.layers.contestants import Case, Contestant

# isort: split
import numpy as np
import torch
from threadpoolctl import threadpool_limits

from benchmarks.layers.sizes import SUBJECTS, Size
from benchmarks.processes import status_of
from nn_manual.check.compare.tolerances import SUM_OF_PRODUCTS
from nn_manual.layers import LayerWithNoise
from nn_manual.layers.composite import descendants

#: Rounds, and how many milliseconds each contestant's part of one takes at least.
ROUNDS, MILLISECONDS = 11, 20
#: So many steps show the most memory that they take.
NUM_STEPS = 4


def main(name: str) -> None:
    """Measure and print, by size and contestant: microseconds of a step in each round, and MiB."""
    torch.set_num_threads(1)
    subject = SUBJECTS[name]
    with threadpool_limits(1):
        print(json.dumps([measured(name, size, subject.values) for size in (subject.small, subject.real)]))


def measured(name: str, size: Size, values: str) -> dict[str, Any]:
    """Times and memory of all contestants. Raises ValueError if one computes another gradient than torch."""
    case = Case(name, size, values)
    contestants: dict[str, Contestant] = {}
    memory: dict[str, float] = {}
    gradients: dict[str, Any] = {}
    for contestant, make in case.contestants().items():
        contestants[contestant] = make()
        gradients[contestant] = np.array(contestants[contestant].run(1)).ravel()
        memory[contestant] = _memory(contestants[contestant])
    layers = [layer for _, layer in descendants(case.model)]
    if not any(isinstance(layer, LayerWithNoise) and layer.draws for layer in layers):
        _check(gradients)
    return {"shape": size.shape, "microseconds": _times(contestants), "MiB": memory}


def _check(gradients: dict[str, Any]) -> None:
    expected = gradients.pop("torch")
    for contestant, found in gradients.items():
        # ten times the tolerance of the check, which torch's own fast operations needn't keep
        if np.abs(found - expected).max() > 10 * SUM_OF_PRODUCTS["float32"] * np.abs(expected).max():
            raise ValueError(f"{contestant} has another gradient than torch: {found} and {expected}")


def _times(contestants: dict[str, Contestant]) -> dict[str, list[float]]:
    """Microseconds of a step of each contestant in each round."""
    calls = {name: max(1, round(MILLISECONDS * 1e3 / _microseconds(one, 1))) for name, one in contestants.items()}
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(ROUNDS):
        for name, contestant in contestants.items():
            times[name].append(_microseconds(contestant, calls[name]) / contestant.num_steps)
    return times


def _microseconds(contestant: Contestant, num_calls: int) -> float:
    """The mean time of a call that makes as many steps as one should make."""
    start = time.perf_counter()
    for _ in range(num_calls):
        contestant.run(contestant.num_steps)
    return (time.perf_counter() - start) / num_calls * 1e6


def _memory(contestant: Contestant) -> float:
    """MiB that it takes at most: what it holds, and how far the resident size grows in some steps."""
    ctypes.CDLL(None).malloc_trim(0)  # what others have freed goes back to the system, or steps would take of that
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = status_of("VmRSS:")
    contestant.run(min(NUM_STEPS, contestant.num_steps))
    return (status_of("VmHWM:") - before + contestant.held) / 2**20


if __name__ == "__main__":
    main(*sys.argv[1:])
