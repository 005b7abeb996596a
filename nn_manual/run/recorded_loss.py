"""A loss as metrics.jsonl has it: with the number of examples if it is a sum over them, and in bits per character."""

from __future__ import annotations

import math

from nn_manual.arrays import Array
from nn_manual.config import RunConfig
from nn_manual.losses import CrossEntropyLoss, Loss
from nn_manual.losses.class_targets import OfClasses
from nn_manual.run_directory.metrics import BITS, COUNTS


def recorded_loss(column: str, value: float, target: Array, config: RunConfig) -> dict[str, float]:
    """The loss `value` of all the targets, in its `column`, and what else a run reports about it.

        bits = value / ln 2                 where reduction = mean
        bits = value / characters / ln 2    where reduction = sum

    Derivation: the loss of a character with the probability p is -ln p = -log2(p) ln 2.
    """
    loss, record = config.loss, {column: value}
    is_sum = loss.reduction == "sum"
    if is_sum:
        record[COUNTS[column]] = len(target)
    if config.data.predicts_characters and _is_surprise(loss):
        record[BITS[column]] = value / (loss.denominator(target) if is_sum else 1) / math.log(2)
    return record


def _is_surprise(loss: Loss) -> bool:
    """Whether the loss of a target is the logarithm of its probability, and nothing else."""
    smoothed = isinstance(loss, CrossEntropyLoss) and loss.label_smoothing
    return isinstance(loss, OfClasses) and loss.weight is None and not smoothed
