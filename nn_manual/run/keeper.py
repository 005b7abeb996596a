"""When a run writes its checkpoints, and what stands in them."""

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

#: Between checkpoints that epochs ask for: a quick run spends its time on training.
SECONDS_BETWEEN = 10.0


class CheckpointKeeper:
    """Has the writer write the checkpoints of a run. `origin` is what all of them say of the run: its config, data and
    versions. `epochs` and `gradients` are the files of the writer that grow with the run.
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

    def add_proven(self) -> None:
        """Add the steps that have been proven to the ledger."""
        for step, check in self.training.proven_steps():
            self.gradients.append_step(step, check)

    def after_step(self) -> None:
        """Write a checkpoint if one is due within an epoch."""
        if self.settings.of_steps and self.training.trainer.num_steps % self.settings.count == 0:
            self.write()

    def after_epoch(self) -> None:
        """Write a checkpoint if one is due at the end of an epoch, or at that of the run."""
        training, count = self.training, self.settings.count
        if self.settings.of_steps:
            is_due = training.trainer.num_steps % count == 0
        else:
            is_due = training.epoch % count == 0 and time.monotonic() - self._last >= SECONDS_BETWEEN
            is_due = training.group.gather(is_due)[0]
        if is_due or training.ended:
            self.write()

    def write(self) -> None:
        """Write a checkpoint, once what it refers to is on the disk, unless the last one was of this step."""
        step = self.training.trainer.num_steps
        if step == self._last_step:
            return
        self.training.trainer.flush()  # nothing rests on a step that isn't proven
        self.add_proven()
        self.training.trainer.check_finite()  # nothing to go on from
        tensors = self.training.tensors()  # of which every process has a part
        self.writer.write_checkpoint(self.training, self.origin, tensors)
        self._last, self._last_step = time.monotonic(), step


def origin_of(config: RunConfig, split: Split) -> dict[str, Any]:
    """What every checkpoint of a run says of it: what a resumed run must have in common with it, and what it should."""
    return {
        "config": dump_config(config),
        "data": sha256_of(split),
        "sources": sources_of(config),  # now: a user who sees the run go wrong may change a file before it ends
        "versions": versions(),
        "blas": blas() | blas_of_compiled_steps(config),
    }
