"""A new run: from a config to a run directory."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from nn_manual.arrays import Padded
from nn_manual.config import RunConfig, check_read_back
from nn_manual.data import Split
from nn_manual.run.agreement import agree, check_all_see
from nn_manual.run.epochs import train
from nn_manual.run.init_from import start_from_file
from nn_manual.run.keeper import origin_of
from nn_manual.run.loading import check_machine, load, quiet
from nn_manual.run.needed_memory import note_of_memory
from nn_manual.run.notes_of_loss import notes_of_loss
from nn_manual.run.silent import NoWriter, writer_of
from nn_manual.run.training_run import TrainingRun
from nn_manual.run.unheeded_lengths import note_of_lengths
from nn_manual.run.writer import RunWriter
from nn_manual.step.slices.process_group import ALONE, ProcessGroup


def default_run_directory(config_path: Path) -> Path:
    """runs/<config name>/<time>, the time with microseconds so that two runs started together differ."""
    return Path("runs", config_path.stem, datetime.now().strftime("%Y-%m-%d_%H-%M-%S.%f"))


@quiet
def run(config: RunConfig, directory: Path, group: ProcessGroup = ALONE, *, has_log: bool = False) -> dict[str, Any]:
    """Train as `config` says, write everything into `directory`, print a line for each epoch; returns the summary.

    `directory` must be empty or not exist. Raises the errors of nn_manual.errors, and Interrupted once a signal has
    asked to stop. An error that ends a run early gets notes that say where it stopped and how to go on; the files in
    `directory` are whole. All processes of a `group` call this. The first alone writes and prints; the summary of the
    others is empty. With `has_log`, the curves are also written for TensorBoard.
    """
    writer, config = writer_of(directory, group, has_log=has_log), config.with_slices(group.size)
    writer.check_new()
    check_machine(config)
    split, model = load(config)
    for note in start_from_file(config, split, model):
        writer.note(note)
    _note_schedule(config, split, writer)
    if isinstance(split.train.input, Padded) and (note := note_of_lengths(model)):
        writer.note(note)
    for note in notes_of_loss(config, split, model):
        writer.note(note)
    if needs := note_of_memory(config, split.train.input.shape):
        writer.note(needs)
    agree(config, split, model, group, **{"--run-dir": str(directory)})
    check_read_back(config)  # before anything is made
    writer.create()
    check_all_see(directory, group)
    group.connect()
    training = TrainingRun(config, split, model, group)
    config = training.config
    with writer.lock():
        writer.check_new()  # again, under the lock: another process may have trained into it since
        writer.write_config(config, split)
        writer.remember(group)  # not before: where there is no run yet, processes that start again begin a new one
        return train(training, directory, writer, None, origin_of(config, split))


def _note_schedule(config: RunConfig, split: Split, writer: RunWriter | NoWriter) -> None:
    """Say on standard error if this run ends before its schedule does."""
    if config.lr_scheduler is None:
        return
    length, unit = config.num_counts(len(split.train.input))
    duration = config.lr_scheduler.duration
    if duration > length:
        place, name = config.places.get("lr_scheduler", "lr_scheduler"), type(config.lr_scheduler).__name__
        writer.note(f"{place}: note: {name} takes {duration:,} {unit}, the run has {length:,}")
