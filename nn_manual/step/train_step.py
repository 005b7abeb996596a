"""One training step: the only place where its stages stand.

    for each slice of the batch    forward, loss, backward
    for all slices together        the sum of their gradients, buffers, clipping, the optimizer's update

A whole batch on one process is one slice of weight 1. What varies is handed in. A Runner computes: the formulas or a
plan. Slices say in how many slices, and on how many processes. A Watch watches. A step that is checked or traced runs
the same stages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple, Protocol

import numpy as np

from nn_manual.arrays import Array, Padded
from nn_manual.losses import Loss, as_number
from nn_manual.model import Sequential
from nn_manual.optim import Clipping, Optimizer
from nn_manual.step.slices.cut import BatchPart
from nn_manual.step.slices.gradient_sum import Filled
from nn_manual.step.watch import Watch

#: A function that is called with the loss of a slice, before backward runs.
Evaluated = Callable[[float], object]

#: The context of a slice that has a loss.
_AS_IT_IS = nullcontext()


def differentiate(
    model: Sequential,
    loss: Loss,
    input: Array | Padded,
    target: Array,
    *,
    backward: Callable[[list[Any], Array], object] | None = None,
    predicted: Callable[[Array], object] | None = None,
    evaluated: Callable[[Any], object] | None = None,
) -> tuple[Any, list[Any]]:
    """Run forward, loss and backward. Returns the loss, and what the layers saved. The gradients are left in the model.

    `backward` is the model's `backward_parameters` unless another one is given. `predicted` is called with the
    prediction, and `evaluated` with the loss, before they are used.
    """
    prediction, saved = model.forward(input)
    if predicted is not None:
        predicted(prediction)
    value, loss_saved = loss.forward(prediction, target)
    if evaluated is not None:
        evaluated(value)
    (backward or model.backward_parameters)(saved, loss.backward(loss_saved))
    return value, saved


def update(model: Sequential, optimizer: Optimizer, clipping: Clipping | None) -> None:
    """Clip the gradient, if that is asked for, and let the optimizer make its step."""
    if clipping is not None:
        clipping.clip(model.grad_arena)
    optimizer.step()


class OneSlice(NamedTuple):
    """A slice that has run: its loss, the model that ran, and what will move that model's buffers."""

    value: float
    model: Sequential
    kept: list[Any]

    def move_buffers(self) -> None:
        """Move the buffers by this slice."""
        self.model.update_buffers(self.kept)


class Runner(Protocol):
    """Who computes a step: forward, loss and backward of its slices, and the update after them."""

    def begin(self, parts: Sequence[BatchPart], input: Array, target: Array, watch: Watch | None) -> None:
        """The batch is cut into these parts. Every process calls this before anything else of the step."""

    def slice(
        self,
        part: BatchPart,
        input: Array,
        target: Array,
        filled: Filled | None = None,
        evaluated: Evaluated | None = None,
    ) -> OneSlice:
        """Run the slice `part` of the batch `input`, `target`. Its gradients are left in the model; `filled` is called
        while backward fills them.
        """

    def kept(self, part: BatchPart, input: Array, target: Array) -> OneSlice:
        """Run only what is needed to move the buffers later."""

    def update(self, clipping: Clipping | None) -> None:
        """Clip the gradient and let the optimizer make its step, as the function `update` does."""


class Formulas:
    """The Runner that runs the formulas as they are written."""

    def __init__(self, model: Sequential, loss: Loss, optimizer: Optimizer) -> None:
        self.model, self.loss, self.optimizer = model, loss, optimizer

    def begin(self, parts: Sequence[BatchPart], input: Array, target: Array, watch: Watch | None) -> None:
        """See Runner."""

    def slice(
        self,
        part: BatchPart,
        input: Array,
        target: Array,
        filled: Filled | None = None,
        evaluated: Evaluated | None = None,
    ) -> OneSlice:
        """See Runner."""
        return run_slice(self.model, self.loss, part, input, target, filled, evaluated)

    def kept(self, part: BatchPart, input: Array, target: Array) -> OneSlice:  # noqa: ARG002 - Runner's signature
        """See Runner."""
        saved = self.model.forward(input[part.rows])[1]
        return OneSlice(math.nan, self.model, self.model.kept_for_buffers(saved))

    def update(self, clipping: Clipping | None) -> None:
        """See Runner."""
        update(self.model, self.optimizer, clipping)


def run_slice(
    model: Sequential,
    loss: Loss,
    part: BatchPart,
    input: Array,
    target: Array,
    filled: Filled | None = None,
    evaluated: Evaluated | None = None,
    *,
    is_weighted: bool = False,
) -> OneSlice:
    """What `Runner.slice` does, by the formulas. The gradients are those of the slice's loss; with `is_weighted`, those
    of its part in the batch's loss.
    """

    def backward(saved: list[Any], grad_prediction: Array) -> None:
        if is_weighted:
            grad_prediction = grad_prediction * model.dtype.type(part.weight)
        model.backward_parameters(saved, grad_prediction, filled)

    number = math.nan

    def as_float(value: Any) -> None:
        nonlocal number
        number = as_number(loss, value)
        if evaluated is not None:
            evaluated(number)

    # A mean over nothing is NaN, and its gradient is 0.
    with _AS_IT_IS if loss.has_value(part.denominator) else np.errstate(invalid="ignore"):
        _, saved = differentiate(
            model, loss, input[part.rows], target[part.rows], backward=backward, evaluated=as_float
        )
    return OneSlice(number, model, model.kept_for_buffers(saved))


class Slices(Protocol):
    """The slices that a batch is cut into, on this process and others."""

    def gradients(self, runner: Runner, input: Array, target: Array, watch: Watch | None, *, whole: bool) -> MadeBatch:
        """Leave the sum of the gradients of all slices in the model. Each process may have only a part of it, unless
        the `whole` is asked for.
        """

    def move_buffers(self, made: Sequence[OneSlice]) -> None:
        """Move the buffers by the slices of all processes, one after the other."""

    def spread(self) -> None:
        """The parameters have moved. Where each process moves a part of them, the processes exchange these parts."""


class MadeBatch(NamedTuple):
    """The loss of a batch, and the slices of it that this process has made."""

    value: float
    slices: list[OneSlice]


class TrainStep:
    """Makes the steps of one model.

        step = TrainStep(model, loss, optimizer)
        value = step(input, target)              # the loss before the step
    """

    def __init__(self, model: Sequential, loss: Loss, optimizer: Optimizer, slices: Slices | None = None) -> None:
        self.model, self.loss, self.optimizer = model, loss, optimizer
        #: None where one process takes the whole batch at once.
        self.slices = slices
        #: Compiled steps replace this one by their own.
        self.runner: Runner = Formulas(model, loss, optimizer)
        #: How the next step clips the gradient, if it does.
        self.clipping: Clipping | None = None
        #: Called with a loss that isn't finite, the input and the target, before anything changes, if nobody watches.
        self.not_finite: Callable[[float, Array, Array], object] = _go_on

    def take_loss(self, loss: Loss) -> None:
        """Let the next step of a whole batch use another loss."""
        self.loss, self.runner = loss, Formulas(self.model, loss, self.optimizer)

    def __call__(self, input: Array, target: Array, watch: Watch | None = None) -> float:
        """Make the step on a batch; returns the loss before it."""
        value, made = self._gradients(input, target, watch)
        if self.slices is None:
            self.model.update_buffers(made[0].kept)
        elif watch is None:  # else each slice has moved them already, so that this is checked
            self.slices.move_buffers(made)
        self.runner.update(self.clipping)
        if self.slices is not None:
            self.slices.spread()
        return value

    def _gradients(self, input: Array, target: Array, watch: Watch | None) -> MadeBatch:
        """Run forward, loss and backward of each slice, and add up their gradients."""
        if self.slices is None:
            whole = BatchPart(0, slice(0, len(target)), self.loss.denominator(target), 1.0)

            def evaluated(value: float) -> None:
                if watch is None and not math.isfinite(value):
                    self.not_finite(value, input, target)

            made = self.runner.slice(whole, input, target, None, evaluated)
            return MadeBatch(made.value, [made])
        # Clipping needs the whole gradient on each process: so its norm has the same bits as on one process.
        sum_of_all = self.slices.gradients(self.runner, input, target, watch, whole=self.clipping is not None)
        if watch is None and not math.isfinite(sum_of_all.value):
            self.model.grad_arena.fill(0)  # not this step's: the error is about what the step before has left behind
            self.not_finite(sum_of_all.value, input, target)
        return sum_of_all


def _go_on(value: float, input: Array, target: Array) -> None:
    """Do nothing: nobody has asked for such a loss."""
