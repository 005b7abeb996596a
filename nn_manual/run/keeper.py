"""When a run writes its checkpoints, and what all of them say of the run."""

from __future__ import annotations

import time
from typing import Any

from nn_manual.config import RunConfig, dump_config
from nn_manual.data import Split
from nn_manual.run.environment import blas, blas_of_compiled_steps, sha256_of, versions
from nn_manual.run.silent import NoLines, NoWriter
from nn_manual.run.sources import sources_of
from nn_manual.run.training_run import TrainingRun
from nn_manual.run.writer import RunWriter
from nn_manual.run_directory.files import JsonLines
from nn_manual.run_directory.ledger import LedgerLines

#: The least time between two checkpoints at the ends of epochs: a quick run must spend its time on training.
SECONDS_BETWEEN = 10.0
#: How long a line of the ledger may wait in memory while steps are made: this is what a killed run loses of it.
SECONDS_BEHIND = 1.0


class CheckpointKeeper:
    """Lets the writer write the checkpoints of a run. `origin` is what `origin_of` returns. `epochs` and `gradients`
    are the writer's files that grow with the run.
    """

    def __init__(
        self,
        training: TrainingRun,
        writer: RunWriter | NoWriter,
        origin: dict[str, Any],
        epochs: JsonLines | NoLines,
        gradients: LedgerLines | NoLines,
    ) -> None:
        self.training, self.writer, self.origin = training, writer, origin
        self.epochs, self.gradients = epochs, gradients
        self.settings = training.config.checkpoint
        self._last, self._last_step = time.monotonic(), -1
        self._last_flush = time.monotonic()

    def add_proven(self) -> None:
        """Add the steps that have been proven to the ledger."""
        for step, check in self.training.checked.proven():
            self.gradients.append_step(step, check)
        if time.monotonic() - self._last_flush >= SECONDS_BEHIND:
            self.gradients.flush()
            self._last_flush = time.monotonic()

    def after_step(self) -> None:
        """Write a checkpoint if one is due within an epoch."""
        if self.settings.of_steps and self.training.trainer.num_steps % self.settings.count == 0:
            self.write()

    def after_epoch(self) -> None:
        """Write a checkpoint if one is due at the end of an epoch, or if the run has ended."""
        training, count = self.training, self.settings.count
        if self.settings.of_steps:
            is_due = training.trainer.num_steps % count == 0
        else:
            is_due = training.epoch % count == 0 and time.monotonic() - self._last >= SECONDS_BETWEEN
            is_due = training.group.gather(is_due)[0]
        if is_due or training.ended:
            self.write()

    def write(self) -> None:
        """Write a checkpoint, unless the last one was of this step."""
        step = self.training.trainer.num_steps
        if step == self._last_step:
            return
        self.training.trainer.flush()  # nothing rests on a step that isn't proven
        self.add_proven()
        self.training.trainer.check_finite()  # no run can go on from other numbers
        tensors = self.training.tensors()  # every process has a part of them
        self.writer.write_checkpoint(self.training, self.origin, tensors)
        self._last, self._last_step = time.monotonic(), step


def origin_of(config: RunConfig, split: Split) -> dict[str, Any]:
    """What every checkpoint of a run says of the run: a resumed run must have some of this in common, and should have
    the rest.
    """
    return {
        "config": dump_config(config),
        "data": sha256_of(split),
        "sources": sources_of(config),  # read at the start: a user may change a file before the run ends
        "versions": versions(),
        "blas": blas() | blas_of_compiled_steps(config),
    }
