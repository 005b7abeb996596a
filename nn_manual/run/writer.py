"""What the first process of a run does for all: it writes the run directory, and says how far the run is."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

from nn_manual.arrays import Array
from nn_manual.config import RunConfig, dump_config
from nn_manual.data import Split
from nn_manual.errors import DataError, GradientMismatch
from nn_manual.messages.text import print_note, shell_word
from nn_manual.plotting import plot_runs
from nn_manual.run.bundle import keep
from nn_manual.run.event_log import EventLog
from nn_manual.run.training_run import BEST_FILE, TrainingRun
from nn_manual.run_directory import files, ledger, metrics
from nn_manual.run_directory.checkpoints import (
    CHECKPOINTS_DIRECTORY,
    checkpoints_of,
    remove_checkpoint,
    step_of,
    write_checkpoint,
)
from nn_manual.run_directory.lock import lock
from nn_manual.run_directory.weights import write_weights
from nn_manual.run_directory.within import within
from nn_manual.step.slices.process_group import ProcessGroup
from nn_manual.trainer.progress import RunBar

FIGURE_FILE = "loss.png"


class RunWriter:
    """Writes a run into `directory`, and its curves into a log, if it has one. The other processes of a run have a
    NoWriter.
    """

    def __init__(self, directory: Path, log: EventLog | None = None) -> None:
        self.directory, self._log = directory, log

    def check_new(self) -> None:
        """Raise DataError where a new run can't be made."""
        files.check_run_directory(self.directory)

    def create(self) -> None:
        """Make the directory."""
        files.create_run_directory(self.directory)

    def lock(self) -> AbstractContextManager[None]:
        """The context in which no other process writes into the directory."""
        return lock(self.directory)

    def remove_temporary(self) -> None:
        """Remove the temporary files that a killed process has left."""
        files.remove_temporary(self.directory)
        files.remove_temporary(within(self.directory, CHECKPOINTS_DIRECTORY))

    def write_config(self, config: RunConfig, split: Split) -> None:
        """Write the config, and what was done to the data."""
        # Both paths are checked before the first file is written.
        config_file, data_file = (within(self.directory, name) for name in (metrics.CONFIG_FILE, metrics.DATA_FILE))
        files.write_atomically(config_file, dump_config(config).encode())
        files.write_json(data_file, split.transform.as_json())

    def cut_back(self, checkpoint: Path | None) -> None:
        """Bring the directory back to where the run goes on: remove later checkpoints, and the files of a run's end."""
        if self._log is not None:
            self._log.make_folder()  # first: a run whose log can't be written stays as it is
        grown = () if checkpoint else (metrics.METRICS_FILE, ledger.GRADIENTS_FILE)
        of_the_end = (metrics.SUMMARY_FILE, FIGURE_FILE, metrics.WEIGHTS_FILE, BEST_FILE)
        # All paths are checked before the first file is removed.
        names = (*of_the_end, *grown, metrics.CONFIG_FILE, metrics.DATA_FILE)
        paths = {name: within(self.directory, name) for name in names}
        for later in checkpoints_of(self.directory):
            if checkpoint is None or (step_of(later) or 0) > (step_of(checkpoint) or 0):
                remove_checkpoint(later)
        for name in (*of_the_end, *grown):
            paths[name].unlink(missing_ok=True)

    def remember(self, group: ProcessGroup) -> None:
        """Let processes that start again find the run."""
        group.remember_run(str(self.directory))

    def say(self, text: str) -> None:
        """Print a line on standard output."""
        print(text, flush=True)

    def note(self, text: str) -> None:
        """Print a note on standard error."""
        print_note(text)

    def epochs(self, size: int | None) -> files.JsonLines:
        """Open the file with a line for each epoch, from this size on, or a new file if the size is None."""
        listener = None if self._log is None else self._log.add
        self._epochs = files.JsonLines(within(self.directory, metrics.METRICS_FILE), size, listener)
        if self._log is not None:
            try:
                self._log.begin()
            except BaseException:
                self._epochs.close()
                raise
        return self._epochs

    def gradients(self, window: int, size: int | None) -> ledger.LedgerLines:
        """Open the ledger in the same way."""
        self._gradients = ledger.LedgerLines(within(self.directory, ledger.GRADIENTS_FILE), window, size)
        return self._gradients

    def bar(self, training: TrainingRun) -> RunBar:
        """The bar on the terminal."""
        config = training.config
        return RunBar(config.epochs, training.num_batches, training.tally, training.trainer.num_steps)

    def write_checkpoint(
        self, training: TrainingRun, origin: Mapping[str, Any], tensors: dict[str, dict[str, Array]]
    ) -> None:
        """Write a checkpoint, after the lines that it refers to are on the disk."""
        sizes = {lines.path.name: lines.sync() for lines in (self._epochs, self._gradients)}
        data_file = files.sha256_of_file(within(self.directory, metrics.DATA_FILE))
        of_files = {"sizes": sizes, "ledger": self._gradients.state(), "data_file": data_file}
        manifest = {**training.manifest(), **of_files, **origin}
        keep_last = training.config.checkpoint.keep
        write_checkpoint(self.directory, training.trainer.num_steps, tensors, manifest, keep=keep_last)

    def keep_mismatch(self, training: TrainingRun, sources: dict[str, str], mismatch: GradientMismatch) -> None:
        """Keep a step that differed from torch's, to be replayed; a note says how."""
        mismatch.add_note(keep(self.directory, training.config, sources, training.trainer, mismatch))

    def write_stopped(self, summary: Mapping[str, Any]) -> None:
        """Write the summary of a run that ended early, if that is possible: a full disk may be why it ended."""
        with suppress(DataError):
            files.write_json(within(self.directory, metrics.SUMMARY_FILE), summary)

    def finish(self, training: TrainingRun, origin: Mapping[str, Any]) -> dict[str, Any]:
        """Write the weights and the summary; returns the summary."""
        directory, model, tally = self.directory, training.trainer.model, training.tally
        sha256 = write_weights(within(directory, metrics.WEIGHTS_FILE), model.state_dict(aliases=False))
        summary: dict[str, Any] = {
            **training.record,
            "parameters": model.num_parameters,
            "gradient_check": {
                "steps": tally.num_steps,
                "tensors": tally.num_tensors,
                "together": tally.num_together,
                "mismatches": 0,  # a mismatch ends the run before there is a summary
                "rounding": tally.num_rounding,
                "worst": tally.worst or None,
                "unproven": training.unproven,
                "vacuous": training.vacuous,
            },
            "model_sha256": sha256,
            "sha256": {
                **{name: files.sha256_of_file(directory / name) for name in (metrics.CONFIG_FILE, metrics.DATA_FILE)},
                "examples": origin["data"],
            },
        }
        if training.best:
            best_sha256 = write_weights(within(directory, BEST_FILE), training.best_weights)
            summary["best"] = {**training.best, "sha256": best_sha256}
        files.write_json(within(directory, metrics.SUMMARY_FILE), summary)
        return summary

    def draw(self) -> None:
        """Draw the figure of a run that has finished. An error says that nothing else is missing."""
        try:
            plot_runs([self.directory], within(self.directory, FIGURE_FILE))
        except BaseException as error:
            run, figure = (shell_word(path) for path in (self.directory, self.directory / FIGURE_FILE))
            error.add_note(f"the training has ended: only the figure is missing in {self.directory}")
            error.add_note(f"to draw it: nn-manual plot {run} -o {figure}")
            raise
