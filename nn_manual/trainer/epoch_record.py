"""What is measured at the end of an epoch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from nn_manual.arrays import Array
from nn_manual.data import Examples
from nn_manual.trainer.loss_and_accuracy import Evaluation


class Measured(Protocol):
    """What a record needs of a Trainer."""

    @property
    def num_steps(self) -> int:
        """How many steps were made."""

    def mean_loss(self, name: str, batches: Sequence[tuple[float, float]]) -> float:
        """The loss over all batches."""

    def compare_evaluation(self) -> None:
        """Compare what evaluation computes."""

    def evaluate(self, examples: Examples) -> Evaluation:
        """The loss over the examples, and the accuracy."""

    def observe(self, validation_loss: float) -> None:
        """Show it to the schedule."""


def _as_it_is(column: str, value: float, target: Array) -> dict[str, float]:  # noqa: ARG001 - as others do
    return {column: value}


def epoch_record(
    trainer: Measured,
    epoch: int,
    losses: Sequence[tuple[float, float]],
    train: Examples,
    validation: Examples | None,
    recorded: Callable[[str, float, Array], dict[str, float]] = _as_it_is,
) -> dict[str, Any]:
    """The figures of an epoch, which is counted from 0, by the names of metrics.jsonl. `losses` are the loss and its
    denominator of each of its steps. `recorded(column, value, target)` says what is recorded of a loss. The schedule
    gets the validation loss. Raises what `evaluate` does.
    """
    record: dict[str, Any] = {"epoch": epoch + 1, "step": trainer.num_steps}
    record |= recorded("train_loss", trainer.mean_loss("the training loss", losses), train.target)
    if validation is None or not len(validation.input):
        trainer.compare_evaluation()  # whoever uses the model then runs what no evaluation has
        return record
    evaluation = trainer.evaluate(validation)
    record |= recorded("validation_loss", evaluation.loss, validation.target)
    trainer.observe(evaluation.loss)
    return record if evaluation.accuracy is None else record | {"validation_accuracy": evaluation.accuracy}
