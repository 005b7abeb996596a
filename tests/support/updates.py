"""Steps of an optimizer that can be checked, one at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from nets import batch, net

from nn_manual import SGD, GradientChecker, MSELoss
from nn_manual.check.judge.step_check import StepCheck
from nn_manual.optim import Clipping

#: Clips a gradient to a bound, rightly or not.
Clip: TypeAlias = Callable[[Any, float], Any]


class Run:
    """A net, its optimizer and its checker, one step at a time."""

    def __init__(
        self, dtype: str = "float32", clipping: Clipping | None = None, optimizer_class: Any = SGD, **settings: Any
    ) -> None:
        self.dtype, self.clipping = dtype, clipping
        self.model = net(dtype)
        self.optimizer = optimizer_class(self.model, **{"lr": 0.1, **settings})
        self.checker = GradientChecker(self.model, MSELoss(), self.optimizer, clipping=clipping)
        self.num_steps = 0

    def step(self, clip: Clip | None = None, *, checked: bool = True) -> StepCheck | None:
        self.num_steps += 1
        if not checked:
            self._step(clip)
            return None
        with self.checker.recording():
            self._step(clip)
        return self.checker.compare()

    def _step(self, clip: Clip | None) -> None:
        self.checker.run(*batch(self.dtype, seed=self.num_steps))
        if self.clipping is not None and clip is None:
            self.clipping.clip(self.model.grad_arena)
        elif self.clipping is not None and clip is not None:
            clip(self.model.grad_arena, self.clipping.bound)
        self.optimizer.step()
