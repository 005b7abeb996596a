"""Many epochs in one call, as the command line makes them, without its run directory."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from nn_manual.arrays import Array
from nn_manual.data import Examples, num_batches
from nn_manual.model import Sequential
from nn_manual.optim import Optimizer
from nn_manual.trainer.early_stop import EarlyStop
from nn_manual.trainer.epoch_record import Measured, epoch_record
from nn_manual.trainer.progress import CheckedSteps, RunBar
from nn_manual.trainer.steps import Step

if TYPE_CHECKING:  # torch
    from nn_manual.check.many_steps.prover import Prover


class Fitted(Measured, Protocol):
    """What is needed of a Trainer."""

    model: Sequential
    optimizer: Optimizer

    @property
    def prover(self) -> Prover | None:
        """What proves many steps together."""

    def averaged_weights(self) -> AbstractContextManager[None]:
        """The context in which the model has the weights that are evaluated."""

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
    checked, start, records = CheckedSteps(), time.perf_counter(), list[dict[str, Any]]()
    best, best_epoch, weights = math.inf, 0, dict[str, Array]()

    def steps(epoch: int, losses: list[tuple[float, float]]) -> Iterator[Step]:
        for step in trainer.epoch(train, batch_size, seed=seed, epoch=epoch):
            losses.append((step.loss, step.denominator))
            checked.add(step)
            for _ in checked.proven():
                pass  # the bar shows their tally
            yield step

    with RunBar(epochs, num_batches(len(train.input), batch_size), checked.tally, is_silent=not verbose) as bar:
        for epoch in range(epochs):
            losses: list[tuple[float, float]] = []
            for _ in bar.over(steps(epoch, losses), epoch):
                bar.note_one_by_one(trainer.prover)
            record = epoch_record(trainer, epoch, losses, train, validation)
            record |= {"lr": trainer.optimizer.lr, "seconds": time.perf_counter() - start}
            records.append(record)
            loss = record.get("validation_loss", math.inf)
            bar.say_epoch(record, is_best=loss < best)
            if loss < best:
                best, best_epoch = loss, epoch + 1
                if early_stop.patience is not None:
                    with trainer.averaged_weights():
                        weights = {name: array.copy() for name, array in trainer.model.state_dict().items()}
            early_stop.after(loss)
            if early_stop.has_stopped:
                bar.say(early_stop.words(epoch + 1))
                break
        if weights:
            trainer.model.load_state_dict(weights)
            bar.say(f"the model has the weights of epoch {best_epoch}, the best one")
    return records
