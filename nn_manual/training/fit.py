"""Many epochs in one call, as the command line makes them, without its run directory."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

from nn_manual.data import Examples, num_batches
from nn_manual.optim import Optimizer
from nn_manual.training.early_stop import EarlyStop
from nn_manual.training.epoch_record import Measured, epoch_record
from nn_manual.training.progress import GradientTally, RunBar, epoch_lines
from nn_manual.training.steps import Step

if TYPE_CHECKING:  # torch is only loaded for a training that is checked
    from nn_manual.check.judge.report import StepCheck


class Fitted(Measured, Protocol):
    """What is needed of a Trainer."""

    optimizer: Optimizer

    def epoch(self, examples: Examples, batch_size: int, *, seed: int, epoch: int) -> Iterator[Step]:
        """The steps of an epoch."""


def fit(
    trainer: Fitted,
    train: Examples,
    validation: Examples | None,
    epochs: int,
    batch_size: int,
    *,
    seed: int,
    early_stop: EarlyStop,
    verbose: bool,
) -> list[dict[str, Any]]:
    """What Trainer.fit returns."""
    tally, start, records = GradientTally(), time.perf_counter(), list[dict[str, Any]]()
    best = math.inf
    waiting = deque[tuple[int, "StepCheck"]]()

    def steps(epoch: int, losses: list[tuple[float, float]]) -> Iterator[Step]:
        for step in trainer.epoch(train, batch_size, seed=seed, epoch=epoch):
            losses.append((step.loss, step.denominator))
            if step.check is not None:
                waiting.append((step.number, step.check))
            while waiting and waiting[0][1].proven:
                tally.add(*waiting.popleft())
            yield step

    with RunBar(epochs, num_batches(len(train.input), batch_size), tally, is_silent=not verbose) as bar:
        for epoch in range(epochs):
            losses: list[tuple[float, float]] = []
            for _ in bar.over(steps(epoch, losses), epoch):
                pass
            record = epoch_record(trainer, epoch, losses, train, validation)
            record |= {"lr": trainer.optimizer.lr, "seconds": time.perf_counter() - start}
            is_best = record.get("validation_loss", math.inf) < best
            best = min(best, record.get("validation_loss", math.inf))
            records.append(record)
            bar.say(epoch_lines(record, epochs, is_best=is_best, is_first=not epoch))
            early_stop.after(record.get("validation_loss", math.inf))
            if early_stop.has_stopped:
                bar.say(early_stop.words(epoch + 1))
                break
    return records
