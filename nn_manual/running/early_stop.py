"""When a validation loss that no longer falls ends a run."""

from __future__ import annotations

import math

from nn_manual.config import EarlyStopping


class EarlyStop:
    """Says when the validation loss has not fallen by more than `min_delta` for `patience` epochs."""

    def __init__(self, settings: EarlyStopping | None) -> None:
        self.settings = settings
        self.best, self.num_epochs_since = math.inf, 0

    def after(self, validation_loss: float) -> bool:
        """Whether to stop after an epoch with this loss."""
        if self.settings is None:
            return False
        if validation_loss < self.best - self.settings.min_delta:
            self.best, self.num_epochs_since = validation_loss, 0
        else:
            self.num_epochs_since += 1
        return self.num_epochs_since >= self.settings.patience
