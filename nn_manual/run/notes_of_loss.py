"""Predictions and targets that a loss takes, and that nobody can mean: said before the first step."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nn_manual.config import RunConfig
from nn_manual.data import Split
from nn_manual.losses import CrossEntropyLoss, CTCLoss, KLDivLoss, NLLLoss
from nn_manual.model import Sequential

#: The losses whose formulas take every number, and mean something for logarithms of probabilities alone.
OF_LOG_PROBABILITIES = (CTCLoss, KLDivLoss, NLLLoss)

#: So many examples show what the predictions are, or those of a smaller batch.
NUM_EXAMPLES = 8

#: Rounding, and the eps of log(p + eps), add less to a probability of 1.
ABOUT_1 = 1.01


def notes_of_loss(config: RunConfig, split: Split, model: Sequential) -> Iterator[str]:
    """That the model's predictions aren't the log-probabilities that the loss takes, that CTCLoss leaves out targets
    that need more times than there are, and that the target's numbers aren't the probabilities that CrossEntropyLoss
    takes them for.
    """
    loss, name, target = config.loss, type(config.loss).__name__, split.train.target
    begin = f"{config.places.get('loss', 'loss')}: note:"
    if isinstance(loss, CrossEntropyLoss) and target.dtype.kind == "f" and target.ndim > 1:
        totals = target.sum(axis=1)
        if len(wrong := np.argwhere(np.abs(totals - 1) > ABOUT_1 - 1)):
            words = f"those of training example {wrong[0][0]} add up to {totals[tuple(wrong[0])]:.3g}"
            yield f"{begin} {name} takes probabilities of classes, and {words}: BCEWithLogitsLoss takes several labels"
    if not isinstance(loss, OF_LOG_PROBABILITIES):
        return
    prediction = model(split.train.input[: min(NUM_EXAMPLES, config.batch_size)])
    of_classes = np.exp(prediction).sum(axis=() if isinstance(loss, KLDivLoss) else 1)
    if (largest := of_classes.max(initial=0)) > ABOUT_1:
        words = f"log-probabilities, and the model's first predictions stand for a probability of {largest:.3g}"
        yield f"{begin} {name} takes {words}: LogSoftmax makes log-probabilities"
    if isinstance(loss, CTCLoss) and loss.zero_infinity:
        num_times = prediction.shape[2] if prediction.ndim == 3 else 1
        num_left_out = np.count_nonzero(loss.labels_and_times(target)[1] > num_times)
        if num_left_out:
            words = f"targets of the training part need more times than the prediction's {num_times:,}"
            yield f"{begin} {num_left_out:,} of {len(target):,} {words}: with zero_infinity they don't count"
