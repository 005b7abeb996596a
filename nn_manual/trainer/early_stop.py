"""Early stopping: a validation loss that no longer falls ends a run."""

from __future__ import annotations

import math
from collections.abc import Mapping

from nn_manual.messages.text import counted


class EarlyStop:
    """Says when the validation loss has not fallen by more than `min_delta` for `patience` epochs; never without a
    patience.
    """

    def __init__(self, patience: int | None, min_delta: float = 0.0) -> None:
        self.patience, self.min_delta = patience, min_delta
        self.best, self.num_epochs_since = math.inf, 0

    def state(self) -> dict[str, float]:
        """What it remembers of the losses so far."""
        return {"best": self.best, "num_epochs_since": self.num_epochs_since}

    def load_state(self, state: Mapping[str, float]) -> None:
        """Go on from what `state` returned."""
        self.best, self.num_epochs_since = state["best"], int(state["num_epochs_since"])

    def after(self, validation_loss: float) -> None:
        """Take note of an epoch with this loss."""
        if self.patience is not None and validation_loss < self.best - self.min_delta:
            self.best, self.num_epochs_since = validation_loss, 0
        else:
            self.num_epochs_since += 1

    def words(self, epoch: int) -> str:
        """Why a training has stopped after this epoch, counted from 1."""
        since = self.num_epochs_since
        return f"stopped early: no better than epoch {epoch - since} for {counted(since, 'epoch')}"

    @property
    def has_stopped(self) -> bool:
        """Whether the run is to end."""
        return self.patience is not None and self.num_epochs_since >= self.patience
