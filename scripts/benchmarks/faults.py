"""Faults that begin in a step of a run: a tensor that is computed rightly, and then changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.mutation.replacing import change_gradient, replace_method
from nn_manual import optim
from nn_manual.arrays import Array, carve
from nn_manual.config import RunConfig
from nn_manual.data import Split
from nn_manual.layers import Layer
from nn_manual.layers.composite import descendants
from nn_manual.losses import Loss
from nn_manual.model import Sequential
from nn_manual.optim import Optimizer
from nn_manual.run import new_run
from nn_manual.run.loading import load

Change = Callable[[Array], Array]


def _one_element(right: Array) -> Array:
    wrong = right.copy()
    wrong[np.unravel_index(np.argmax(np.abs(right)), right.shape)] *= 1.01
    return wrong


#: How a tensor is changed.
KINDS: dict[str, Change] = {
    "sign": lambda right: -right,
    "factor": lambda right: right * right.dtype.type(1.001),
    "shift": lambda right: right + right.dtype.type(0.01) * np.abs(right).max(),
    "zero": lambda right: 0 * right,
    "one element": _one_element,
}
#: From that step on; in that step, however often it is made; or once, so that the fault is gone when the step is made
#: again.
DURATIONS = ("for good", "in that step", "once")


@dataclass
class Fault:
    """What is wrong, and from which step on. `made` says whether the fault has changed something."""

    step: int
    tensor: str
    kind: str
    duration: str
    made: bool = False

    def change(self, right: Array, step: int) -> Array:
        """What becomes of the tensor in a step, by its number."""
        begun = step >= self.step if self.duration == "for good" else step == self.step
        if not begun or (self.duration == "once" and self.made):
            return right
        wrong = KINDS[self.kind](right)
        self.made = self.made or not np.array_equal(wrong, right)
        return wrong


@contextmanager
def with_fault(fault: Fault) -> Iterator[None]:
    """A context in which a run from a config has a fault."""
    with ExitStack() as stack:

        def faulty(config: RunConfig) -> tuple[Split, Sequential]:
            split, model = load(config)
            make(fault, model, config.loss, stack)
            return split, model

        stack.enter_context(patch.object(new_run, "load", faulty))
        yield


def make(fault: Fault, model: Sequential, loss: Loss, stack: ExitStack) -> None:
    """Make the fault in the layer, the loss, the clipping or the optimizer that computes its tensor; the last two are
    right again when the stack is closed.
    """

    def change(right: Array) -> Array:
        return fault.change(right, model.num_steps)

    name, _, tensor = fault.tensor.rpartition(".")
    layers = dict(descendants(model))
    if fault.tensor == "clipped gradient":
        stack.enter_context(_clipping(change))
    elif fault.tensor == "loss":
        loss.__class__ = replace_method(type(loss), "forward", _changed_value(type(loss).forward, change))
    elif name == "loss":
        loss.__class__ = change_gradient(type(loss), tensor, change)
    elif fault.tensor.startswith("updated ") or name in model.parameter_shapes():
        stack.enter_context(_update(fault.tensor, change))
    elif tensor == "output":
        _replace(layers[name], "forward", _changed_value(type(layers[name]).forward, change))
    elif tensor == "grad_input":
        _replace(layers[name], "backward", _changed_grad_input(type(layers[name]).backward, change))
    elif tensor.startswith("grad_"):
        layers[name].__class__ = change_gradient(type(layers[name]), tensor, change)
    else:
        _replace(layers[name], "update_buffers", _changed_buffer(layers[name], tensor, change))


def _replace(layer: Layer, method: str, replacement: Callable[..., Any]) -> None:
    layer.__class__ = replace_method(type(layer), method, replacement)


def _changed_value(right: Callable[..., Any], change: Change) -> Callable[..., Any]:
    """What forward returns, with the first of the two changed."""

    def forward(self: Any, *arguments: Array) -> tuple[Any, Any]:
        value, saved = right(self, *arguments)
        return change(np.asarray(value))[()], saved

    return forward


def _changed_grad_input(right: Callable[..., Array], change: Change) -> Callable[..., Array]:
    def backward(self: Any, *arguments: Any) -> Array:
        return change(right(self, *arguments))

    return backward


def _changed_buffer(layer: Layer, name: str, change: Change) -> Callable[..., None]:
    right = type(layer).update_buffers

    def update_buffers(self: Any, saved: Any) -> None:
        right(self, saved)
        buffer = getattr(self.buffer, name)
        buffer[...] = change(buffer.copy())

    return update_buffers


def _clipping(change: Change) -> Any:
    right = optim.clip_grad_norm

    def clip_grad_norm(grad: Array, max_norm: float) -> np.float64:
        norm = right(grad, max_norm)
        grad[...] = change(grad.copy())
        return norm

    return patch.object(optim.clipping, "clip_grad_norm", clip_grad_norm)


def _update(tensor: str, change: Change) -> Any:
    """Of "updated 0.weight", or of what the optimizer remembers, "0.weight.momentum_buffer"."""
    right = Optimizer.step

    def step(self: Optimizer) -> None:
        right(self)
        parameter, vector = tensor.removeprefix("updated "), self.model.param_arena
        if parameter == tensor:
            parameter, _, kind = tensor.rpartition(".")
            vector = self.vectors[kind]
        view = vars(carve(vector, self.model.parameter_shapes()))[parameter]
        view[...] = change(view.copy())

    return patch.object(Optimizer, "step", step)
