"""A ledger of a million checked steps of config/gpt.yaml: how large gradients.jsonl becomes, and how long its figure
takes.

The tensors are those of a real step. The errors are drawn: from 0.01 to 100% of the tolerance, some equal to torch's,
and one step in EXCUSED_EVERY with a tensor beyond its tolerance by rounding, which gets its own line. A real run has
fewer such steps: none in 400 steps.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.processes import ROOT

# isort: split
import numpy as np

from nn_manual.arrays import Array
from nn_manual.config import load_config
from nn_manual.run.loading import load
from nn_manual.run_directory.files import JsonLines, write_atomically
from nn_manual.run_directory.ledger import GRADIENTS_FILE, LedgerLines, window_size
from nn_manual.run_directory.metrics import CONFIG_FILE, METRICS_FILE
from nn_manual.trainer.trainer import Trainer

NUM_STEPS, NUM_EPOCHS, EXCUSED_EVERY = 1_000_000, 1_000, 1_000
#: So many steps are drawn. They are repeated, each time in another order.
DRAWN = 500

#: What is wanted.
MOST_MEGABYTES, MOST_SECONDS = 100, 10


@dataclass(frozen=True)
class Step:
    """What the ledger needs of a checked step; every tensor's scale is 1."""

    tensors: tuple[str, ...]
    tolerances: Array
    absolute: Array
    severity: Array
    ulps: Array
    rounding: frozenset[str]
    not_judged: frozenset[str] = frozenset()

    @property
    def relative(self) -> Array:
        """As large as the absolute error."""
        return self.absolute


def main() -> bool:
    """Print both figures. Returns whether they are good enough."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder)
        write_run(run)
        megabytes = (run / GRADIENTS_FILE).stat().st_size / 1e6
        seconds = time_of_plot(run)
    print(f"a ledger of {NUM_STEPS:,} steps of config/gpt.yaml: {megabytes:.0f} MB (<= {MOST_MEGABYTES})")
    print(f"its figure: {seconds:.1f} s (<= {MOST_SECONDS})", flush=True)
    return megabytes <= MOST_MEGABYTES and seconds <= MOST_SECONDS


def write_run(run: Path) -> None:
    """A run directory with drawn errors and losses."""
    write_atomically(run / CONFIG_FILE, (ROOT / "config" / "gpt.yaml").read_bytes())
    with JsonLines(run / METRICS_FILE) as lines:
        for epoch in range(1, NUM_EPOCHS + 1):
            losses = {"train_loss": 3 / epoch, "validation_loss": 3.1 / epoch}
            lines.append(
                {"epoch": epoch, "step": epoch * NUM_STEPS // NUM_EPOCHS, **losses, "lr": 0.1, "seconds": 1.0}
            )
    generator = np.random.default_rng(0)
    steps = drawn_steps(generator)
    order = generator.integers(len(steps) - 1, size=NUM_STEPS)
    order[generator.integers(NUM_STEPS, size=NUM_STEPS // EXCUSED_EVERY)] = len(steps) - 1
    with LedgerLines(run / GRADIENTS_FILE, window_size(NUM_STEPS)) as ledger:
        for number, index in enumerate(order.tolist(), start=1):
            ledger.append_step(number, steps[index])


def drawn_steps(generator: np.random.Generator) -> list[Step]:
    """Steps with the tensors of config/gpt.yaml, the last one with a tensor beyond its tolerance."""
    config = load_config(ROOT / "config" / "gpt.yaml")
    split, model = load(config)
    trainer = Trainer(model, config.loss, config.optimizer(model), clip_grad_norm=config.clip_grad_norm)
    check = next(trainer.epoch(split.train, config.batch_size, seed=0, epoch=0)).check
    assert check is not None
    percent = 10 ** generator.uniform(-2, 2, (DRAWN, len(check.tensors)))
    percent[generator.random(percent.shape) < 0.15] = 0  # as in a real step
    percent[-1, 0] = 150
    return [
        Step(
            check.tensors,
            check.tolerances,
            absolute=row / 100 * check.tolerances,
            severity=row / 100,
            ulps=row / 3,
            rounding=frozenset([check.tensors[0]] if row.max() > 100 else []),
        )
        for row in percent
    ]


def time_of_plot(run: Path) -> float:
    """Seconds of `nn-manual plot`, from the start of the process to its end."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "nn_manual", "plot", str(run), "-o", str(run / "loss.png")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=ROOT)
    return time.perf_counter() - start
