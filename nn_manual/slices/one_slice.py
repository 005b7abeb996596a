"""Forward, loss and backward of one slice of a batch, and what runs them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple, Protocol

import numpy as np

from nn_manual.arrays import Array
from nn_manual.losses import Loss, as_number
from nn_manual.model import Sequential
from nn_manual.optim import Optimizer, clip_grad_norm
from nn_manual.slices.cut import Part
from nn_manual.slices.gradient_sum import Filled

#: Looks at the input of a slice and the prediction for it.
Look = Callable[[Array, Array], None]


class OneSlice(NamedTuple):
    """What has run: the slice's loss, the model that ran, and what that model's buffers will be moved by."""

    value: float
    model: Sequential
    kept: list[Any]

    def move_buffers(self) -> None:
        """By this slice."""
        self.model.update_buffers(self.kept)


def run_slice(
    model: Sequential,
    loss: Loss,
    part: Part,
    input: Array,
    target: Array,
    look: Look | None,
    filled: Filled | None = None,
    *,
    is_weighted: bool = False,
) -> OneSlice:
    """The slice `part` of the batch of this input and target; its gradients are left in the model: those of its loss,
    or where `is_weighted` of its part in the batch's. `look` sees input and prediction, `filled` what backward does.
    """
    model.first_row = part.rows.start
    prediction, saved = model.forward(input[part.rows])
    if look is not None:
        look(input[part.rows], prediction)
    has_value = loss.has_value(part.denominator)  # else it is a mean over nothing, and its gradient is 0
    with nullcontext() if has_value else np.errstate(invalid="ignore"):
        value, loss_saved = loss.forward(prediction, target[part.rows])
    number = as_number(loss, value)
    grad_prediction = loss.backward(loss_saved)
    if is_weighted:
        grad_prediction = grad_prediction * model.dtype.type(part.weight)
    model.backward_parameters(saved, grad_prediction, filled)
    return OneSlice(number, model, model.kept_for_buffers(saved))


class Runner(Protocol):
    """What runs the slices of a batch, and the update after them."""

    def begin(self, parts: Sequence[Part], input: Array, target: Array) -> None:
        """The batch is cut into these. Every process calls it, before anything else of the step."""

    def slice(
        self, part: Part, input: Array, target: Array, look: Look | None = None, filled: Filled | None = None
    ) -> OneSlice:
        """As `run_slice`."""

    def kept(self, part: Part, input: Array, target: Array) -> OneSlice:
        """What the buffers will be moved by alone."""

    def update(self, max_norm: float | None) -> None:
        """Clip the gradient to this norm, if there is one, and let the optimizer make its step."""


class Formulas:
    """Runs them as they are written."""

    def __init__(self, model: Sequential, loss: Loss, optimizer: Optimizer) -> None:
        self.model, self.loss, self.optimizer = model, loss, optimizer

    def begin(self, parts: Sequence[Part], input: Array, target: Array) -> None:
        """As of every Runner."""

    def slice(
        self, part: Part, input: Array, target: Array, look: Look | None = None, filled: Filled | None = None
    ) -> OneSlice:
        """As of every Runner."""
        return run_slice(self.model, self.loss, part, input, target, look, filled)

    def kept(self, part: Part, input: Array, target: Array) -> OneSlice:  # noqa: ARG002 - as of every Runner
        """As of every Runner."""
        self.model.first_row = part.rows.start
        return OneSlice(math.nan, self.model, self.model.kept_for_buffers(self.model.forward(input[part.rows])[1]))

    def update(self, max_norm: float | None) -> None:
        """As of every Runner."""
        if max_norm is not None:
            clip_grad_norm(self.model.grad_arena, max_norm)
        self.optimizer.step()
