"""One run: from a config to a run directory."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nn_manual.arrays import DTYPES
from nn_manual.config import EarlyStopping, RunConfig, check_sizes, dump_config
from nn_manual.data import Split, batches, num_batches
from nn_manual.data.reading import machine_memory
from nn_manual.dry_run import first_misfit
from nn_manual.errors import ConfigError, GradientMismatch, NotFiniteError
from nn_manual.model import Sequential
from nn_manual.optim import ReduceLROnPlateau
from nn_manual.plotting import plot_runs
from nn_manual.registry import takes_layers
from nn_manual.run_directory import files, ledger, metrics
from nn_manual.running.bundle import keep
from nn_manual.running.progress import GradientTally, RunBar, epoch_line
from nn_manual.running.recorded_loss import recorded_loss
from nn_manual.running.sources import sources_of
from nn_manual.running.trainer import Trainer

if TYPE_CHECKING:  # torch is only loaded for a run that is checked
    from nn_manual.check.verdict.report import GradientReport

DATA_FILE = "data.json"
SUMMARY_FILE = "summary.json"
FIGURE_FILE = "loss.png"

#: A value that overflows is found where it matters and reported there: numpy's warnings would only add noise.
quiet = np.errstate(over="ignore", invalid="ignore", divide="ignore")


def load(config: RunConfig) -> tuple[Split, Sequential]:
    """The data and the model of a config, once they are known to fit each other. Raises ConfigError and DataError."""
    _check_memory(config)
    split = config.data.load(config.seed, DTYPES[config.dtype])
    check_sizes(config, split)
    if config.early_stopping is not None and not len(split.validation.input):
        raise ConfigError("early_stopping watches the validation loss, but there is no validation set")
    if isinstance(config.lr_scheduler, ReduceLROnPlateau) and not len(split.validation.input):
        place = config.places.get("lr_scheduler", "lr_scheduler")
        raise ConfigError(f"{place}: ReduceLROnPlateau watches the validation loss, but there is no validation set")
    model = config.new_model()
    if not model.num_parameters:
        raise ConfigError("model: no layer has parameters, there is nothing to train")
    _check_composites(config, split, model)
    return split, model


def _check_composites(config: RunConfig, split: Split, model: Sequential) -> None:
    """Raise ConfigError where a composite of the user's gives a layer in it what that one doesn't take, in a whole
    batch or in the last one. The package's own have been followed layer by layer.
    """
    paths = config.named_layers()
    if all(takes_layers(type(layer)) for layer in paths.values() if layer.children()):
        return
    names = [name for name, layer in model.descendants() if not isinstance(layer, Sequential)]
    num_examples = len(split.train.input)
    last = ", in the last batch of an epoch"
    for size, when in ((min(config.batch_size, num_examples), ""), (num_examples % config.batch_size, last)):
        misfit = first_misfit(model, split.train.input[:size]) if size else None
        if misfit is not None:
            path = dict(zip(names, paths, strict=True))[misfit.name]
            raise ConfigError(f"{config.places.get(path, path)}: {misfit.words}{when}")


def _check_memory(config: RunConfig) -> None:
    """Raise ConfigError, naming the largest layer, for a model whose parameters and gradients exceed the machine's
    memory. Left to the system, such a model may be granted, and the process killed when it fills what it was given.
    """
    layers = {path: layer for path, layer in config.named_layers().items() if not layer.children()}
    needed = 2 * sum(layer.num_parameters for layer in layers.values()) * DTYPES[config.dtype].itemsize
    memory = machine_memory()
    if needed > memory:
        path, largest = max(layers.items(), key=lambda item: item[1].num_parameters)
        raise ConfigError(
            f"{config.places.get(path, path)}: {largest} has {largest.num_parameters:,} parameters; with their "
            f"gradients, the model takes {needed / 2**30:,.0f} GiB, and this machine has {memory / 2**30:,.0f}"
        )


@quiet
def check(config: RunConfig) -> GradientReport:
    """Compare every tensor of the run's first batch with torch's, the first whose loss is a number. Raises the errors
    of `load`, and NotFiniteError where a right formula gives no number: that is the data's or the initializer's fault.
    """
    split, model = load(config)
    from nn_manual.check.checker import check_gradients  # torch, for which a mistake in the data needn't wait

    in_order = batches(split.train, config.batch_size, config.seed, epoch=0)
    input, target = next(batch for batch in in_order if config.loss.has_value(config.loss.denominator(batch[1])))
    report = check_gradients(model, config.loss, input, target)
    if report.not_finite is not None:
        raise NotFiniteError(f"{report.not_finite} in the first batch")
    return report


def default_run_directory(config_path: Path) -> Path:
    """runs/<config name>/<time>, the time with microseconds so that two runs started together differ."""
    return Path("runs", config_path.stem, datetime.now().strftime("%Y-%m-%d_%H-%M-%S.%f"))


def _note_schedule(config: RunConfig, split: Split) -> None:
    """Say it on standard error where the schedule doesn't come to its end in this run."""
    if config.lr_scheduler is None:
        return
    length, unit = config.epochs, "epochs"
    if config.lr_step == "step":
        length, unit = config.epochs * num_batches(len(split.train.input), config.batch_size), "steps"
    duration = config.lr_scheduler.duration
    if duration > length:
        place, name = config.places.get("lr_scheduler", "lr_scheduler"), type(config.lr_scheduler).__name__
        print(f"{place}: note: {name} takes {duration:,} {unit}, the run has {length:,}", file=sys.stderr)


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


@quiet
def run(config: RunConfig, directory: Path) -> dict[str, Any]:
    """Train as `config` says, write everything into `directory`, print a line an epoch; returns the summary.

    `directory` must not exist or be empty. Raises the errors of nn_manual.errors. An error that ends a run early,
    KeyboardInterrupt too, gets a note that says where it stopped; the files in `directory` are whole.
    """
    files.check_run_directory(directory)
    split, model = load(config)
    _note_schedule(config, split)
    trainer = Trainer(
        model,
        config.loss,
        config.optimizer(model),
        clip_grad_norm=config.clip_grad_norm,
        lr_scheduler=config.new_scheduler(),
        lr_step=config.lr_step,
        check_every=config.gradient_check.every,
    )
    files.create_run_directory(directory)
    sources = sources_of(config)  # now: a user who sees the run go wrong may change a file before it ends
    try:
        return _train(config, trainer, split, directory)
    except BaseException as end:
        if isinstance(end, NotFiniteError):
            end.add_note("a smaller lr, or clip_grad_norm, keeps most runs finite")
        steps_per_epoch = num_batches(len(split.train.input), config.batch_size)
        epoch = math.ceil(trainer.num_steps / steps_per_epoch)
        end.add_note(f"stopped in epoch {epoch} at step {trainer.num_steps}; the run so far lies in {directory}")
        if isinstance(end, GradientMismatch):
            end.add_note(keep(directory, config, sources, trainer, end))
        raise


def _train(config: RunConfig, trainer: Trainer, split: Split, directory: Path) -> dict[str, Any]:
    """The run itself, in a directory that is there."""
    files.write_atomically(directory / metrics.CONFIG_FILE, dump_config(config).encode())
    _write_json(directory / DATA_FILE, split.transform.as_json())
    tally = GradientTally()
    with (
        files.JsonLines(directory / metrics.METRICS_FILE) as epochs,
        ledger.LedgerLines(directory / ledger.GRADIENTS_FILE) as gradients,
        RunBar(config.epochs, num_batches(len(split.train.input), config.batch_size), tally) as bar,
    ):
        for record in _epochs(config, trainer, split, tally, gradients, bar):
            epochs.append(record)
            epochs.flush()
            gradients.flush()
            print(epoch_line(record, config.epochs), flush=True)
    return _finish(directory, trainer, tally, record)


def _epochs(
    config: RunConfig,
    trainer: Trainer,
    split: Split,
    tally: GradientTally,
    gradients: ledger.LedgerLines,
    bar: RunBar,
) -> Iterator[dict[str, Any]]:
    """Train epoch by epoch; the line of metrics.jsonl of each."""
    start, early_stop = time.perf_counter(), EarlyStop(config.early_stopping)
    for epoch in range(config.epochs):
        steps = trainer.epoch(split.train, config.batch_size, seed=config.seed, epoch=epoch)
        losses = []
        for step in bar.over(steps, epoch):
            losses.append((step.loss, step.denominator))
            if step.check is not None:
                gradients.append_step(step.number, step.check)
                tally.add(step.number, step.check)
        train_loss = trainer.mean_loss("the training loss", losses)
        record: dict[str, Any] = {"epoch": epoch + 1, "step": trainer.num_steps}
        record |= recorded_loss("train_loss", train_loss, split.train.target, config)
        if len(split.validation.input):
            evaluation = trainer.evaluate(split.validation)
            record |= recorded_loss("validation_loss", evaluation.loss, split.validation.target, config)
            trainer.observe(evaluation.loss)
            if evaluation.accuracy is not None:
                record["validation_accuracy"] = evaluation.accuracy
        yield {**record, "lr": trainer.optimizer.lr, "seconds": time.perf_counter() - start}
        if early_stop.after(record.get("validation_loss", math.inf)):
            print(f"stopped early: the validation loss has not fallen for {early_stop.num_epochs_since} epochs")
            return


def _finish(directory: Path, trainer: Trainer, tally: GradientTally, last: dict[str, Any]) -> dict[str, Any]:
    """Write the weights, the summary and the figure."""
    sha256 = files.write_weights(directory / metrics.WEIGHTS_FILE, trainer.model.state_dict(aliases=False))
    checker = trainer.checker if tally.num_steps else None
    summary = {
        **last,
        "parameters": trainer.model.num_parameters,
        "gradient_check": {
            "steps": tally.num_steps,
            "tensors": tally.num_tensors,
            "mismatches": 0,  # a mismatch ends the run before there is a summary
            "rounding": tally.num_rounding,
            "worst": tally.worst or None,
            "unproven": list(checker.unproven()) if checker else [],
        },
        "model_sha256": sha256,
    }
    _write_json(directory / SUMMARY_FILE, summary)
    plot_runs([directory], directory / FIGURE_FILE)
    return summary


def _write_json(path: Path, content: dict[str, Any]) -> None:
    files.write_atomically(path, (json.dumps(content, indent=2) + "\n").encode())
