"""A recorded step made again in float64: our formulas and torch's, side by side."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.check.compare.comparison import CannotCompare
from nn_manual.check.step.calls import CallFailed
from nn_manual.check.step.plan import Plan
from nn_manual.check.step.proof import Proof, prove
from nn_manual.check.step.recording import Recording, run_step
from nn_manual.check.twin.model import Twin
from nn_manual.defaults import is_of_package
from nn_manual.errors import raise_if_nobodys_fault, words_of
from nn_manual.layers.composite import descendants
from nn_manual.losses import Loss
from nn_manual.model import Sequential
from nn_manual.model.memory import new_buffers

#: What a model counts while it trains.
COUNTERS = ("num_steps", "first_row")


class Again:
    """Makes steps of one model again, in float64. The plan for a shape of input is made once. A float64 copy of the
    model serves as long as nothing but numbers changes: copying takes longer than the step.
    """

    def __init__(self, model: Sequential, loss: Loss, *, input_grad: bool) -> None:
        self.model, self.loss, self.input_grad = model, loss, input_grad
        self._plans: dict[Shape, Plan] = {}
        self._layers = [layer for _, layer in descendants(model)]
        #: Whether all layers are the package's: only these are known to keep nothing of a step in their attributes.
        self._are_own = all(is_of_package(type(layer)) for layer in self._layers)
        #: A recording of the copy; and the attributes of the model and its layers when the copy was last used.
        self._recorded: Recording | None = None
        self._attributes: list[dict[str, Any]] = []

    def __call__(self, step: Proof, twin: Twin) -> Proof:
        """The step in float64, beside torch's by a float64 twin, whose parameters are overwritten. Raises CannotCompare
        where it doesn't run.
        """
        try:
            return self._proof(step, twin)
        except BaseException as error:  # a layer, a loss or a reference may raise anything
            raise_if_nobodys_fault(error)
            first = error.error if isinstance(error, CallFailed) else error
            raise CannotCompare(f"in float64 the step raised {words_of(first)}") from error

    def _proof(self, step: Proof, twin: Twin) -> Proof:
        input, target = (double_of(array) for array in (step.recorded.first.input, step.recorded.loss.target))
        recording = self._recording(step)
        model = recording.model
        if not self._are_own:
            self._run_on_others(step, model, input, target)
        np.copyto(twin.param, model.param_arena)
        for grad in (model.grad_arena, *model.ties.use_grads.values()):
            grad.fill(np.nan)  # what backward forgets to write, or adds to, shows here, too
        with recording as recorded:
            run_step(model, self.loss, step.recorded.with_lengths(input), target, input_grad=self.input_grad)
        if input.shape not in self._plans:
            self._plans[input.shape] = Plan(model, recorded, input_grad=self.input_grad)
        return prove(twin, recorded, self._plans[input.shape])

    def _run_on_others(self, step: Proof, model: Sequential, input: Array, target: Array) -> None:
        """Run the copy on other values first. A layer that keeps something of a step and uses it in the next would find
        there what is right for this step.
        """
        try:
            others = step.recorded.with_lengths(np.roll(input, 1))
            with np.errstate(all="ignore"):  # what they lead to is nobody's concern
                run_step(model, self.loss, others, target, input_grad=self.input_grad)
        except BaseException as error:  # a layer may raise anything on values that aren't the data's
            raise_if_nobodys_fault(error)
        fill(model, step.param, step.recorded.buffers_before)

    def _recording(self, step: Proof) -> Recording:
        """The recording of a float64 copy of the model, which is set to where the step began."""
        param, buffers, last = step.param, step.recorded.buffers_before, self._attributes
        self._attributes = [dict(vars(layer)) for layer in (self.model, *self._layers)]
        for name in COUNTERS:
            del self._attributes[0][name]
        if self._recorded is None or not (self._are_own and all(map(_are_same, self._attributes, last))):
            self._recorded = Recording(in_float64(self.model, param, buffers), self.loss)
            return self._recorded
        double = self._recorded.model
        for name in COUNTERS:
            setattr(double, name, getattr(self.model, name))
        fill(double, param, buffers)
        return self._recorded


def _are_same(attributes: dict[str, Any], others: dict[str, Any]) -> bool:
    """Whether these are the same objects under the same names."""
    return attributes.keys() == others.keys() and all(value is others[name] for name, value in attributes.items())


def in_float64(model: Sequential, param: Array, buffers: Mapping[str, Array]) -> Sequential:
    """A copy of the model in float64, with the parameters `param` and these buffers."""
    double = copy.deepcopy(model)
    double.bind(np.zeros(param.size), np.zeros(param.size))
    new_buffers(double, np.dtype(np.float64))
    fill(double, param, buffers)
    return double


def fill(double: Sequential, param: Array, buffers: Mapping[str, Array]) -> None:
    """Copy parameters and buffers into a model in float64."""
    double.param_arena[...] = param
    for name, buffer in vars(double.buffer).items():
        buffer[...] = buffers[name]


def double_of(array: Array | None) -> Array:
    """A recorded array, floating ones in float64."""
    assert array is not None  # the step was recorded whole
    return array.astype(np.float64) if array.dtype.kind == "f" else array
