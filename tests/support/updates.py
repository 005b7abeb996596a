"""Steps of an optimizer that can be checked, one at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nets import batch, net

from nn_manual import SGD, GradientChecker, MSELoss, clip_grad_norm
from nn_manual.check.judge.step_check import StepCheck


class Run:
    """A net, its optimizer and its checker, one step at a time."""

    def __init__(
        self, dtype: str = "float32", max_norm: float | None = None, optimizer_class: Any = SGD, **settings: Any
    ) -> None:
        self.dtype, self.max_norm = dtype, max_norm
        self.model = net(dtype)
        self.optimizer = optimizer_class(self.model, **{"lr": 0.1, **settings})
        self.checker = GradientChecker(self.model, MSELoss(), self.optimizer, max_norm=max_norm)
        self.num_steps = 0

    def step(self, clip: Callable[[Any, float], Any] = clip_grad_norm, *, checked: bool = True) -> StepCheck | None:
        self.num_steps += 1
        if not checked:
            self._step(clip)
            return None
        with self.checker.recording():
            self._step(clip)
        return self.checker.compare()

    def _step(self, clip: Callable[[Any, float], Any]) -> None:
        self.checker.run(*batch(self.dtype, seed=self.num_steps))
        if self.max_norm is not None:
            clip(self.model.grad_arena, self.max_norm)
        self.optimizer.step()
