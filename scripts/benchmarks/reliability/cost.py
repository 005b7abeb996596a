"""What checkpoints cost: the time that a run spends on them, as a part of all of its time."""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.processes import ROOT
from nn_manual.config import load_config
from nn_manual.run import writer
from nn_manual.run.keeper import CheckpointKeeper
from nn_manual.run.new_run import run

#: The runs, each with its overrides. Unchecked steps are the stricter case: the run is shorter.
RUNS = (
    ("gpt.yaml", ["gradient_check.every=0"]),
    ("digits.yaml", ["epochs=1000"]),
    ("digits.yaml", ["epochs=1000", "gradient_check.every=0"]),
)
#: The largest part that is allowed.
LARGEST = 0.02


def cost_of(name: str, overrides: list[str]) -> tuple[int, float, float]:
    """How many checkpoints a run writes, the seconds that they take, and the seconds of the whole run."""
    times: list[float] = []
    write = CheckpointKeeper.write

    def timed(keeper: CheckpointKeeper) -> Any:
        start = time.perf_counter()
        write(keeper)
        times.append(time.perf_counter() - start)

    with (
        tempfile.TemporaryDirectory() as folder,
        patch.object(CheckpointKeeper, "write", timed),
        patch.object(writer, "plot_runs"),  # the figure is no part of the training
        contextlib.redirect_stdout(io.StringIO()),
    ):
        run(load_config(ROOT / "config" / name, overrides), Path(folder) / "run")
        seconds = json.loads((Path(folder) / "run" / "summary.json").read_text())["seconds"]
    return len(times), sum(times), seconds


def main(runs: tuple[tuple[str, list[str]], ...] = RUNS) -> bool:
    """Print this part for each run. Returns whether none is larger than LARGEST."""
    passed = True
    for name, overrides in runs:
        num_checkpoints, of_checkpoints, seconds = cost_of(name, overrides)
        part = of_checkpoints / seconds
        passed &= part <= LARGEST
        print(
            f"{' '.join([name, *overrides]):44} {num_checkpoints:4} checkpoints {of_checkpoints:7.3f} s of "
            f"{seconds:7.1f} s: {part:.2%} (<= {LARGEST:.0%})",
            flush=True,
        )
    return passed
