"""A whole run, from the start of its process to its end, beside torch eager's: `python scripts/benchmark.py fashion`.

config/fashion_mnist.yaml for 20 epochs, each evaluated: `nn-manual train`, plain and compiled, with everything that it
writes, and a torch script that writes nothing. The time includes imports, data, compiling and the choice of a BLAS.
Compiled code lies in a cache, which is empty in the first round.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.processes import ROOT, SCRIPTS

NUM_ROUNDS, NUM_EPOCHS = 3, 20
OVERRIDES = [f"epochs={NUM_EPOCHS}", "gradient_check.every=0"]
#: As in the config: batch size, learning rate, momentum.
SETTINGS = ["64", "0.02", "0.9"]

#: Of compiled runs: at least so many times torch's speed, from start to end and in the steps alone, and at most so much
#: less accurate.
SPEED, SPEED_OF_STEPS, LESS_ACCURATE = 1.2, 1.5, 0.005


class Run(NamedTuple):
    """Seconds from start to end, seconds of the steps, and the accuracy at the end."""

    seconds: float
    steps: float
    accuracy: float


def main() -> int:
    """Print the table. Returns 1 if a figure is missed, else 0."""
    runs: dict[str, list[Run]] = {"plain": [], "compiled": [], "torch": []}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(NUM_ROUNDS):
            for who in runs:
                run = _torch(folder) if who == "torch" else _ours(who, Path(folder), number)
                runs[who].append(run)
                print(f"{who:9} {run.seconds:6.1f} s, steps {run.steps:6.1f} s, {run.accuracy:.2%}", flush=True)
    lines, is_missed = verdict(runs)
    print("\n".join(lines))
    return int(is_missed)


def verdict(runs: dict[str, list[Run]]) -> tuple[list[str], bool]:
    """A line for each figure, medians of the ratios of each round, and whether one is missed."""
    pairs = list(zip(runs["compiled"], runs["torch"], strict=True))
    whole = statistics.median(torch.seconds / ours.seconds for ours, torch in pairs)
    steps = statistics.median(torch.steps / ours.steps for ours, torch in pairs)
    less = statistics.median(torch.accuracy - ours.accuracy for ours, torch in pairs)
    figures = [
        (f"{whole:.2f} times torch's speed from start to end, at least {SPEED}", whole < SPEED),
        (f"{steps:.2f} times torch's speed in the steps alone, at least {SPEED_OF_STEPS}", steps < SPEED_OF_STEPS),
        (f"{100 * less:.2f} points less accurate, at most {100 * LESS_ACCURATE:g}", less > LESS_ACCURATE),
    ]
    lines = [f"compiled: {text}{': MISSED' if is_missed else ''}" for text, is_missed in figures]
    return lines, any(is_missed for _, is_missed in figures)


def _ours(who: str, folder: Path, number: int) -> Run:
    overrides = [*OVERRIDES, f"compiled={str(who == 'compiled').lower()}"]
    directory = folder / f"{who} {number}"
    config = str(ROOT / "config" / "fashion_mnist.yaml")
    start = time.monotonic()
    _process(folder, "nn_manual", "train", config, *overrides, "--run-dir", str(directory))
    seconds = time.monotonic() - start
    steps = float(_process(folder, "benchmarks.one_fashion", *overrides))
    lines = (directory / "metrics.jsonl").read_text().splitlines()
    return Run(seconds, steps, json.loads(lines[-1])["validation_accuracy"])


def _torch(folder: str) -> Run:
    start = time.monotonic()
    steps, accuracy = json.loads(_process(Path(folder), "benchmarks.torch_fashion", str(NUM_EPOCHS), *SETTINGS))
    return Run(time.monotonic() - start, steps, accuracy)


def _process(cache: Path, module: str, *arguments: str) -> str:
    """What a module prints, run in a process of its own."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("OPENBLAS_")}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(SCRIPTS)])
    # numba keeps the package's own compiled functions beside their sources, unless it is told where.
    environment |= {"NN_MANUAL_CACHE": str(cache / "kernels"), "NUMBA_CACHE_DIR": str(cache / "numba")}
    command: Sequence[str] = [sys.executable, "-P", "-m", module, *arguments]
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
