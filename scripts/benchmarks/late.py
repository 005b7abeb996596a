"""Runs in which a fault begins late: each must end at that very step, name it, and leave a checkpoint to go on from.

Everything about a fault is drawn: the config, the step, the tensor that it changes, how, and for how long. The runs are
those of `nn-manual train`. When a step is proven, the run has long gone on from it.
"""

from __future__ import annotations

import contextlib
import io
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.faults import DURATIONS, KINDS, Fault, with_fault
from benchmarks.processes import ROOT
from benchmarks.reliability.kills import end_of, quick_runs
from benchmarks.wrapped import wrapped
from nn_manual.cli import main as command
from nn_manual.config import load_config
from nn_manual.errors import GradientMismatch
from nn_manual.run.bundle import BUNDLE_FILE, read_bundle
from nn_manual.run.loading import load
from nn_manual.run.training_run import TrainingRun
from nn_manual.run_directory.checkpoints import checkpoints_of, step_of

NUM_RUNS = 200

DIGITS, SPIRALS = (str(ROOT / "config" / f"{name}.yaml") for name in ("digits", "spirals"))
#: What is trained, by a name: a config and its overrides. There is one checkpoint in several groups of steps that are
#: proven together, or several in one group. A group is as large as an epoch, or as a little memory allows.
RUNS: dict[str, list[str]] = {
    "digits.yaml": [DIGITS, "epochs=2", "batch_size=16", "checkpoint.every=50 steps"],
    "little memory": [DIGITS, "epochs=2", "batch_size=16", "checkpoint.every=70 steps", "gradient_check.memory=1 MB"],
    "batch norm, dropout, Adam": [
        *(DIGITS, "epochs=2", "batch_size=24", "checkpoint.every=31 steps"),
        "model=[{Linear: {in_features: 64, out_features: 24, bias: false}}, {BatchNorm1d: {num_features: 24}}, ReLU, "
        "{Dropout: {p: 0.3}}, {Linear: {in_features: 24, out_features: 10}}]",
        "optimizer={Adam: {lr: 0.01}}",
    ],
    "residual, clipped, AdamW": [
        *(DIGITS, "epochs=2", "batch_size=24", "checkpoint.every=1 epochs", "clip_grad_norm=1"),
        "model=[{Linear: {in_features: 64, out_features: 24}}, {Residual: [{LayerNorm: {normalized_shape: 24}}, "
        "{Linear: {in_features: 24, out_features: 24}}, GELU]}, {Linear: {in_features: 24, out_features: 10}}]",
        "optimizer={AdamW: {lr: 0.01}}",
        *("lr_step=step", "lr_scheduler={CosineAnnealingLR: {T_max: 120}}"),
    ],
    "spirals.yaml": [SPIRALS, "epochs=3", "batch_size=16", "checkpoint.every=40 steps"],
}


@dataclass(frozen=True)
class Outcome:
    """What was wrong with the end of a run, in words; empty where all is right."""

    fault: Fault
    wrong: tuple[str, ...]


class Campaign:
    """The faulty runs of one config, in a folder. The run without a fault is made first."""

    def __init__(self, arguments: list[str], folder: Path) -> None:
        self.arguments, self.folder = arguments, folder
        self.config = load_config(Path(arguments[0]), arguments[1:])
        status, words = commanded("train", *arguments, "--run-dir", str(folder / "right"))
        if status:
            raise RuntimeError(words)
        self.right = end_of(folder / "right")
        training = TrainingRun(self.config, *load(self.config))
        self.num_steps = self.config.epochs * training.num_batches
        self.num_batches = training.num_batches
        step = next(training.steps())
        assert step.check is not None  # every step is checked
        #: The tensors that can be made wrong, and the label of the part that each belongs to.
        self.tensors = {
            quantity.name: quantity.layer
            for quantity in step.check.plan.quantities
            if not quantity.name.endswith((".input", ".grad_output", ".num_batches_tracked"))
        }

    def drawn(self, generator: np.random.Generator) -> Fault:
        """Any tensor, in any step but the first."""
        return Fault(
            int(generator.integers(2, self.num_steps + 1)),
            str(generator.choice(list(self.tensors))),
            str(generator.choice(list(KINDS))),
            str(generator.choice(DURATIONS)),
        )

    def outcome(self, fault: Fault) -> Outcome:
        """Train with a fault, examine what the run leaves, and go on without the fault."""
        directory = self.folder / "wrong"
        with with_fault(fault):
            status, words = commanded("train", *self.arguments, "--run-dir", str(directory))
        wrong = list(self._found(fault, directory, status, words))
        if not wrong:
            status, words = commanded("train", "--resume", str(directory))
            differs = [] if status else [name for name, hash in end_of(directory).items() if hash != self.right[name]]
            if status or differs:
                wrong.append(f"resumed, it ended with status {status}, and other {', '.join(differs)}; {words}")
        shutil.rmtree(directory, ignore_errors=True)
        return Outcome(fault, tuple(wrong))

    def _found(self, fault: Fault, directory: Path, status: int, words: str) -> Iterator[str]:
        if not fault.made:
            yield "the fault changed nothing"
        if status != GradientMismatch.exit_status:
            yield f"status {status}: {words}"
            return
        layer = self.tensors[fault.tensor]
        if f"wrong first in {layer}: {fault.tensor} " not in " ".join(words.split()):
            yield f"it said: {words}"
        bundles = [path.name for path in directory.glob("mismatch-step-*")]
        if bundles != [f"mismatch-step-{fault.step}"]:
            yield f"the bundles are {bundles}"
            return
        bundle = read_bundle(directory / bundles[0] / BUNDLE_FILE)
        if (bundle.step, bundle.layer, bundle.tensor) != (fault.step, layer, fault.tensor):
            yield f"the bundle says step {bundle.step}, {bundle.layer}: {bundle.tensor}"
        newest = next(map(step_of, checkpoints_of(directory)), 0)
        if newest != self._last_checkpoint(fault.step):
            yield f"the newest checkpoint is of step {newest}"

    def _last_checkpoint(self, step: int) -> int:
        """The last step before this one that has a checkpoint."""
        settings = self.config.checkpoint
        if not settings.of_steps:  # epochs that are over sooner than checkpoints come
            return 0
        return (step - 1) // settings.count * settings.count


def commanded(*arguments: str) -> tuple[int, str]:
    """The exit status of a command, and what it wrote to standard error."""
    words = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(words):
        status = command(arguments)
    return status, words.getvalue()


def late_faults(num_runs: int = NUM_RUNS) -> bool:
    """Print what became of the runs. Returns whether all of them ended as they should."""
    num_right, generator = 0, np.random.default_rng(0)
    for number, (name, arguments) in enumerate(RUNS.items()):
        with quick_runs(), tempfile.TemporaryDirectory() as folder:
            campaign = Campaign(arguments, Path(folder))
            own = range(number, num_runs, len(RUNS))
            outcomes = [campaign.outcome(campaign.drawn(generator)) for _ in own]
        right = sum(not outcome.wrong for outcome in outcomes)
        print(f"{name:28} {len(outcomes):4} faults, {right:4} named, with the last proven checkpoint", flush=True)
        for outcome in outcomes:
            if outcome.wrong:
                print(wrapped(f"{outcome.fault}: {'; '.join(outcome.wrong)}"))
        num_right += right
    print(f"late faults: {num_right} of {num_runs} right\n")
    return num_right == num_runs
