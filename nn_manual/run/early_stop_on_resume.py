"""Early stopping when a run goes on: with other settings, and after it has ended the run."""

from __future__ import annotations

import math
from pathlib import Path

from nn_manual.errors import ConfigError, DataError
from nn_manual.run.training_run import TrainingRun, early_stop_of
from nn_manual.run_directory.columns import columns
from nn_manual.run_directory.metrics import METRICS_COLUMNS, METRICS_FILE, OPTIONAL_COLUMNS
from nn_manual.run_directory.records import read_records
from nn_manual.run_directory.within import within


def follow_again(training: TrainingRun, directory: Path) -> None:
    """Let early stopping, with the settings of the run's config, follow the validation losses so far. Then it remembers
    what it would if it had had these settings from the beginning.

    Raises ConfigError where it would have ended the run before, and DataError where the losses are not the run's.
    """
    path, settings = within(directory, METRICS_FILE), training.config.early_stopping
    metrics = columns(path, read_records(path), METRICS_COLUMNS, OPTIONAL_COLUMNS)
    if metrics["epoch"].tolist() != list(range(1, len(metrics["epoch"]) + 1)):
        raise DataError(f"{path}: its epochs are not 1, 2, 3, ...")
    losses = [float(loss) for loss in metrics.get("validation_loss", ())][: training.epoch]
    lowest = min((loss for loss in losses if not math.isnan(loss)), default=None)
    if lowest != (runs := training.best.get("validation_loss")):
        raise DataError(f"{path}: its lowest validation loss is {lowest}, the run's {runs}")
    training.early_stop = early_stop_of(training.config)
    for epoch, loss in enumerate(losses, start=1):
        training.early_stop.after(loss)
        is_at_the_end = epoch == training.epoch and not training.losses
        if settings is not None and training.early_stop.has_stopped and not is_at_the_end:
            words = f"patience {settings.patience} and min_delta {settings.min_delta:g}"
            done = f"done {training.epoch}" if epoch < training.epoch else f"begun epoch {epoch + 1}"
            raise ConfigError(
                f"early_stopping: with {words}, the run would have ended after epoch {epoch}, and it has {done}"
            )


def how_to_go_on(training: TrainingRun) -> str:
    """The sentence about a run that has ended, which says what to add to go on from its end."""
    more, has_stopped = f"epochs=N, N above {training.epoch}", training.early_stop.has_stopped
    patience = f"early_stopping.patience=N, N above {training.early_stop.num_epochs_since}, or early_stopping=null"
    if training.epoch >= training.config.epochs:
        also = f", and {patience}" if has_stopped else ""
        return f"this run has finished; to go on from its end, add {more}{also}"
    return f"early stopping has ended this run after epoch {training.epoch}; to go on, add {patience}"
