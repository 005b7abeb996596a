"""One run: from a config to a run directory, with a progress bar on the way."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from nn_manual import metrics
from nn_manual.arrays import DTYPES
from nn_manual.config import EarlyStopping, RunConfig, check_sizes, dump_config
from nn_manual.data import Split, num_batches
from nn_manual.errors import ConfigError
from nn_manual.model import Sequential
from nn_manual.plotting import plot_runs
from nn_manual.trainer import Step, Trainer, mean_loss

#: The bar's text changes at most this often, in seconds: more often nobody can read, and building it costs time.
REFRESH = 0.1

SUMMARY_FILE = "summary.json"
FIGURE_FILE = "loss.png"


def load(config: RunConfig) -> tuple[Split, Sequential]:
    """The data and the model of a config, once they are known to fit each other. Raises ConfigError and DataError."""
    split = config.data.load(config.seed, DTYPES[config.dtype])
    check_sizes(config, split)
    if config.early_stopping is not None and not len(split.validation.input):
        raise ConfigError("early_stopping watches the validation loss, but there is no validation set")
    try:
        model = Sequential(*config.model, seed=config.seed, dtype=config.dtype, initializer=config.initializer)
    except MemoryError:
        raise ConfigError("model: its parameters don't fit into this machine's memory") from None
    if not model.num_parameters:
        raise ConfigError("model: no layer has parameters, there is nothing to train")
    return split, model


def default_run_directory(config_path: Path) -> Path:
    """runs/<config name>/<time>, the time with microseconds so that two runs started together differ."""
    return Path("runs", config_path.stem, datetime.now().strftime("%Y-%m-%d_%H-%M-%S.%f"))


@dataclass
class GradientTally:
    """What the checked steps of a run add up to."""

    num_tensors: int = 0
    num_steps: int = 0
    num_rounding: int = 0
    worst: dict[str, Any] = field(default_factory=dict)

    def add(self, record: dict[str, Any]) -> None:
        """Count one line of gradients.jsonl."""
        self.num_steps += 1
        self.num_tensors += record["tensors"]
        self.num_rounding += len(record.get("rounding", ()))
        if not self.worst or _severity(record) > _severity(self.worst):
            self.worst = record


def _severity(record: dict[str, Any]) -> float:
    return float(record["relative"] / record["tolerance"])


class EarlyStop:
    """Says when the validation loss has not fallen by more than `min_delta` for `patience` epochs."""

    def __init__(self, settings: EarlyStopping | None) -> None:
        self.settings = settings
        self.best, self.num_epochs_since = math.inf, 0

    def after(self, validation_loss: float) -> bool:
        """Whether to stop after an epoch with this loss."""
        if self.settings is None:
            return False
        if validation_loss < self.best - self.settings.min_delta:
            self.best, self.num_epochs_since = validation_loss, 0
        else:
            self.num_epochs_since += 1
        return self.num_epochs_since >= self.settings.patience


def run(config: RunConfig, directory: Path) -> dict[str, Any]:
    """Train as `config` says, write everything into `directory`, print a line an epoch; returns the summary.

    `directory` must not exist or be empty. Raises the errors of nn_manual.errors.
    """
    split, model = load(config)
    trainer = Trainer(
        model,
        config.loss,
        config.optimizer(model),
        clip_grad_norm=config.clip_grad_norm,
        lr_scheduler=config.lr_scheduler,
        check_every=config.gradient_check.every,
    )
    metrics.create_run_directory(directory)
    metrics.write_atomically(directory / metrics.CONFIG_FILE, dump_config(config).encode())
    tally = GradientTally()
    with (
        metrics.JsonLines(directory / metrics.METRICS_FILE) as epochs,
        metrics.JsonLines(directory / metrics.GRADIENTS_FILE) as gradients,
        # A value that overflows is found where it matters and reported there; numpy's warnings would only add noise.
        np.errstate(over="ignore", invalid="ignore", divide="ignore"),
    ):
        for record in _epochs(config, trainer, split, tally, gradients):
            epochs.append(record)
            epochs.flush()
            gradients.flush()
            print(_epoch_line(record, config.epochs), flush=True)
    return _finish(directory, model, tally, record)


def _epochs(
    config: RunConfig, trainer: Trainer, split: Split, tally: GradientTally, gradients: metrics.JsonLines
) -> Iterator[dict[str, Any]]:
    """Train epoch by epoch; the line of metrics.jsonl of each."""
    start, early_stop = time.perf_counter(), EarlyStop(config.early_stopping)
    for epoch in range(config.epochs):
        steps = trainer.epoch(split.train, config.batch_size, seed=config.seed, epoch=epoch)
        losses = []
        for step in _with_bar(steps, num_batches(len(split.train.input), config.batch_size), epoch, tally):
            losses.append((step.loss, step.num_examples))
            if step.check is not None:
                line = {"step": step.number, **step.check.record()}
                gradients.append(line)
                tally.add(line)
        record: dict[str, Any] = {"epoch": epoch + 1, "step": trainer.num_steps, "train_loss": mean_loss(trainer.loss, losses)}
        if len(split.validation.input):
            evaluation = trainer.evaluate(split.validation)
            record["validation_loss"] = evaluation.loss
            if evaluation.accuracy is not None:
                record["validation_accuracy"] = evaluation.accuracy
        yield {**record, "lr": trainer.optimizer.lr, "seconds": time.perf_counter() - start}
        if early_stop.after(record.get("validation_loss", math.inf)):
            print(f"stopped early: the validation loss has not fallen for {early_stop.num_epochs_since} epochs")
            return


def _with_bar(steps: Iterator[Step], num_steps: int, epoch: int, tally: GradientTally) -> Iterator[Step]:
    """The steps, with a bar on standard error while they run; none where that is a file."""
    refreshed = 0.0
    with tqdm(total=num_steps, desc=f"epoch {epoch + 1}", unit="step", leave=False, disable=None, ncols=80) as bar:
        for step in steps:
            yield step
            bar.update()
            if time.monotonic() - refreshed > REFRESH:
                refreshed = time.monotonic()
                worst = f", worst error {tally.worst['relative']:.0e}" if tally.worst else ""
                bar.set_postfix_str(f"loss {step.loss:.3g}{worst}", refresh=False)


def _epoch_line(record: dict[str, Any], num_epochs: int) -> str:
    line = f"epoch {record['epoch']:{len(str(num_epochs))}}/{num_epochs}  train loss {record['train_loss']:<9.4g}"
    if "validation_loss" in record:
        line += f"  validation loss {record['validation_loss']:<9.4g}"
    if "validation_accuracy" in record:
        line += f"  accuracy {record['validation_accuracy']:6.2%}"
    return line.rstrip()


def _finish(directory: Path, model: Sequential, tally: GradientTally, last: dict[str, Any]) -> dict[str, Any]:
    """Write the weights, the summary and the figure."""
    sha256 = metrics.write_weights(directory / metrics.WEIGHTS_FILE, model.state_dict())
    summary = {
        **last,
        "parameters": model.num_parameters,
        "gradient_check": {
            "steps": tally.num_steps,
            "tensors": tally.num_tensors,
            "mismatches": 0,  # a mismatch ends the run before there is a summary
            "rounding": tally.num_rounding,
            "worst": tally.worst or None,
        },
        "model_sha256": sha256,
    }
    metrics.write_atomically(directory / SUMMARY_FILE, (json.dumps(summary, indent=2) + "\n").encode())
    plot_runs([directory], directory / FIGURE_FILE)
    return summary


def describe(summary: dict[str, Any], directory: Path) -> str:
    """The summary as a few lines for the terminal."""
    lines = []
    if "validation_accuracy" in summary:
        lines.append(f"validation accuracy {summary['validation_accuracy']:.2%} after {summary['step']} steps")
    else:
        name = "validation_loss" if "validation_loss" in summary else "train_loss"
        lines.append(f"{name.replace('_', ' ')} {summary[name]:.6g} after {summary['step']} steps")
    check = summary["gradient_check"]
    if check["worst"]:
        worst = check["worst"]
        lines.append(f"{check['tensors']:,} tensors of {check['steps']:,} steps compared with torch's, 0 mismatches")
        lines.append(
            f"worst error {worst['relative']:.1e} of the tensor's norm ({worst['tolerance']:.0e} allowed): "
            f"{worst['worst']}, step {worst['step']}"
        )
        if check["rounding"]:
            lines.append(f"{check['rounding']:,} of them beyond the tolerance by rounding, says float64")
    else:
        lines.append("no gradient was checked")
    return "\n".join([*lines, f"run directory {directory}"])
