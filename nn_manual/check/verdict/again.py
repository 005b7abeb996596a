"""A recorded step made again in float64: our formulas and torch's, side by side."""

from __future__ import annotations

import copy
from collections.abc import Mapping

import numpy as np

from nn_manual.arrays import Array, Shape, flat
from nn_manual.check.comparison import CannotCompare
from nn_manual.check.step.plan import Plan
from nn_manual.check.step.proof import Proof, prove
from nn_manual.check.step.recording import Recording, run_step
from nn_manual.check.twin.model import Twin
from nn_manual.losses import Loss
from nn_manual.model import Sequential


class Again:
    """Makes steps of one model again. What it needs for a shape of input is made once."""

    def __init__(self, model: Sequential, loss: Loss, *, input_grad: bool) -> None:
        self.model, self.loss, self.input_grad = model, loss, input_grad
        self._plans: dict[Shape, Plan] = {}

    def __call__(self, step: Proof, twin: Twin) -> Proof:
        """The step in float64, beside that of a float64 twin, whose parameters are overwritten. Raises CannotCompare
        where it doesn't run.
        """
        try:
            return self._proof(step, twin)
        except Exception as error:  # a layer, a loss or a reference may raise anything
            raise CannotCompare(f"in float64 the step raised {type(error).__name__}: {error}") from error

    def _proof(self, step: Proof, twin: Twin) -> Proof:
        input, target = (_double(array) for array in (step.recorded.first.input, step.recorded.loss.target))
        model = in_float64(self.model, step.param, step.recorded.buffers_before)
        np.copyto(twin.param, model.param_arena)
        for grad in (model.grad_arena, *model.ties.use_grads.values()):
            grad.fill(np.nan)  # what backward forgets to write, or adds to, shows here, too
        with Recording(model, self.loss) as recorded:
            run_step(model, self.loss, input, target, input_grad=self.input_grad)
        if input.shape not in self._plans:
            self._plans[input.shape] = Plan(model, recorded, input_grad=self.input_grad)
        return prove(twin, recorded, self._plans[input.shape])


def in_float64(model: Sequential, param: Array, buffers: Mapping[str, Array]) -> Sequential:
    """A copy of the model in float64, with the parameters `param` and these buffers."""
    double = copy.deepcopy(model)
    double.bind(param.astype(np.float64), np.zeros(param.size))
    values = {name: buffers[name] for name in double.buffer_shapes()}
    counts = {name: buffers[name] for name in double.counter_names()}
    double.bind_buffers(flat(values).astype(np.float64), flat(counts).astype(np.int64))
    return double


def _double(array: Array | None) -> Array:
    assert array is not None  # the step was recorded whole
    return array.astype(np.float64) if array.dtype.kind == "f" else array
