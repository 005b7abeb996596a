"""A schedule that follows the validation loss."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from nn_manual.optim.scheduler_base import Scheduler, check_count


@dataclass
class ReduceLROnPlateau(Scheduler):
    """A smaller lr when the validation loss stops falling, as torch.optim.lr_scheduler.ReduceLROnPlateau.

    After each epoch:

        is_better        = loss < best * (1 - threshold)  or, with threshold_mode abs,  loss < best - threshold
        best             = loss if is_better, else best
        num_bad_epochs   = 0 if is_better or cooldown_counter > 0, else num_bad_epochs + 1
        cooldown_counter = max(0, cooldown_counter - 1)

    If num_bad_epochs > patience, then num_bad_epochs = 0, cooldown_counter = cooldown, and the lr is reduced once more,
    which num_reductions counts:

        reduced = max(factor * lr, min_lr)
        lr      = reduced if lr - reduced > eps, else lr

    `mode` is torch's; it can only be min, because a loss should fall. best starts at infinity, the counts start at 0.
    Raises ValueError for values out of range.
    """

    mode: Literal["min"] = "min"
    factor: float = 0.1
    patience: int = 10
    threshold: float = 1e-4
    threshold_mode: Literal["rel", "abs"] = "rel"
    cooldown: int = 0
    min_lr: float = 0.0
    eps: float = 1e-8

    def __post_init__(self) -> None:
        if self.mode != "min":
            raise ValueError(f"mode must be min, not {self.mode}")
        if not 0 <= self.factor < 1:
            raise ValueError(f"factor must be at least 0 and below 1, not {self.factor}")
        for name in ("patience", "cooldown"):
            check_count(name, getattr(self, name), least=0)
        for name in ("threshold", "min_lr", "eps"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must be at least 0, not {getattr(self, name)}")
        if self.threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold_mode must be rel or abs, not {self.threshold_mode}")
        self.best, self.num_bad_epochs, self.cooldown_counter, self.num_reductions = math.inf, 0, 0, 0

    @classmethod
    def examples(cls) -> list[Scheduler]:
        """Little patience, so that the lr is reduced often, and values on each threshold or close to it."""
        return [
            cls(factor=0.5, patience=3),
            cls(factor=0.9, patience=0, threshold=0.5, cooldown=2),
            cls(factor=0.9, patience=1, threshold=1 / 4, threshold_mode="abs", min_lr=1e-3),
            cls(factor=0.3, patience=0, threshold=1 / 16, threshold_mode="abs", min_lr=1e-3),
            cls(factor=0.5, patience=0, eps=0.05),
            cls(factor=0.5, patience=0, eps=0.0499999),
            cls(factor=0.9, patience=0, eps=0.02),
        ]

    def observe(self, validation_loss: float) -> None:
        """The formulas of one epoch."""
        if self.threshold_mode == "rel":
            is_better = validation_loss < self.best * (1 - self.threshold)
        else:
            is_better = validation_loss < self.best - self.threshold
        if is_better:
            self.best = validation_loss
        self.num_bad_epochs = 0 if is_better or self.cooldown_counter > 0 else self.num_bad_epochs + 1
        self.cooldown_counter = max(0, self.cooldown_counter - 1)
        if self.num_bad_epochs > self.patience:
            self.num_reductions += 1
            self.num_bad_epochs, self.cooldown_counter = 0, self.cooldown

    def lr(self, initial_lr: float, count: int) -> float:  # noqa: ARG002 - the contract's signature
        """The initial lr, reduced `num_reductions` times."""
        lr = initial_lr
        for _ in range(self.num_reductions):
            reduced = max(lr * self.factor, self.min_lr)
            lr = reduced if lr - reduced > self.eps else lr
        return lr

    def state(self) -> dict[str, float]:
        """best and the three counts."""
        return {
            "best": self.best,
            "num_bad_epochs": self.num_bad_epochs,
            "cooldown_counter": self.cooldown_counter,
            "num_reductions": self.num_reductions,
        }

    def load_state(self, state: Mapping[str, float]) -> None:
        """Go on from what `state` returned. Raises ValueError for names that are not the schedule's, and for a count
        that isn't an integer of at least 0.
        """
        super().load_state(state)
        for name in ("num_bad_epochs", "cooldown_counter", "num_reductions"):
            value = state[name]
            if not (0 <= value < math.inf and value == int(value)):
                raise ValueError(f"{name} must be an integer of at least 0, not {value}")
            setattr(self, name, int(value))
        self.best = state["best"]
