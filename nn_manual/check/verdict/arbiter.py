"""The arbiter: where a value is beyond the tolerance, is the formula wrong, or is it rounding?

Cancellation can enlarge rounding without bound: 1 - p for a probability p near 1, or a bias's gradient whose terms
cancel over the batch, keeps few correct digits, in torch's arithmetic as in ours. So before a run is stopped, two
questions are asked. Computed again in float64, do the formulas agree? And are the values of a step as near to
torch's float64 ones as the arithmetic of their dtype brings them? How near that is, is measured: torch computes the
step anew in float32, with every parameter, activation and gradient on its way moved by one eps, which is what rounding
does to each, and its distance from the float64 values is what rounding amounts to in this step; that of a float64 step
is less, by the ratio of the two eps.

The values are moved in float32 because of ties. A tie that is moved breaks, which changes a gradient by as much as a
wrong formula for ties does. The ratio makes this negligible. Only values that float32 can't hold are moved in float64;
where it leaves nothing of a gradient, the gradients alone, which breaks no tie.

Where a prediction is almost perfect, torch's loss and its gradient are differences that have no digit left, or zero.
Rounding doesn't show there. So it is measured at a quarter, a sixteenth, ... of the prediction, too: a probability of
1 - 1e-20 becomes one of 1 - 1e-5, of which float32 keeps some digits.
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from nn_manual.arrays import Array, flat
from nn_manual.check.comparison import Pair
from nn_manual.check.step.evaluation import Evaluated
from nn_manual.check.step.proof import Proof, beside_torch
from nn_manual.check.step.recording import Recording
from nn_manual.check.step.reference import Move
from nn_manual.check.tolerances import MARGIN
from nn_manual.check.twin.model import Twin
from nn_manual.check.verdict.parts import Part
from nn_manual.model import Sequential

#: How many times everything is moved, each time at random. The worst effect counts.
NUM_PERTURBATIONS = 4

#: The prediction is made smaller by this factor, as often as it is measured. The last is small enough for the smallest
#: positive loss that float64 has, 1e-323 or a logit's lead of 744: a 256th of that lead is 3.
SMALLER = 0.25



def in_float64(model: Sequential, param: Array, buffers: Mapping[str, Array]) -> Sequential:
    """A copy of the model in float64, with the parameters `param` and these buffers."""
    double = copy.deepcopy(model)
    double.bind(param.astype(np.float64), np.zeros(param.size))
    values = {name: buffers[name] for name in double.buffer_shapes()}
    counts = {name: buffers[name] for name in double.counter_names()}
    double.bind_buffers(flat(values).astype(np.float64), flat(counts).astype(np.int64))
    return double


class Arbiter:
    """Judges the tensors of one step.

    `twins` are torch's versions of its model in float64 and in float32; their parameters are overwritten. `parts` of
    its tensors can be judged under their own names.
    """

    def __init__(self, twins: tuple[Twin, Twin], step: Proof, parts: Sequence[Part] = ()) -> None:
        self._parts = parts
        self._twins, self._param, self._recorded, self._plan = twins, step.param, step.recorded, step.plan
        self._truth = self._reference(twins[0], step.param, step.recorded)
        #: By name, how far rounding takes torch's own values away from the float64 ones, in units of eps.
        self._effect = dict.fromkeys(self._truth, 0.0)

    @np.errstate(over="ignore", invalid="ignore")  # float64 values may be more than float32 can hold
    def rounding(self, failed: list[Pair], num_perturbations: int = NUM_PERTURBATIONS) -> frozenset[str]:
        """The names of those of `failed` that are as near to torch's float64 values as the dtype of the step brings
        them. Rounding is measured until it explains all: measuring more can only allow more.
        """
        explained: frozenset[str] = frozenset()
        for effects in self._measurements(num_perturbations):
            for name, effect in effects.items():
                self._effect[name] = larger_effect(self._effect[name], effect)
            explained = frozenset(pair.quantity.name for pair in failed if self._is_explained(pair))
            if len(explained) == len(failed):
                break
        return explained

    def zero_in_theory(self, pairs: list[Pair]) -> dict[str, float]:
        """The names of the gradients among `pairs` of which nothing is left but the rounding of their terms, in float64
        too, and the scale of these terms: moving each by one eps has moved the gradient by that times eps.
        """
        gradients = {quantity.name for quantity in self._plan.backward} & {pair.quantity.name for pair in pairs}
        of_rounding = MARGIN * eps_of(np.dtype(np.float64))
        return {
            name: self._effect[name]
            for name in gradients
            if float(np.abs(self._truth[name]).max()) <= of_rounding * self._effect[name]
        }

    def _is_explained(self, pair: Pair) -> bool:
        name = pair.quantity.name
        allowed = MARGIN * self._effect[name] * eps_of(self._plan.dtype)  # rounding errors are proportional to eps
        return distance(pair.ours, self._truth[name]) <= allowed

    def _measurements(self, num_perturbations: int) -> Iterator[Mapping[str, float]]:
        """By name, effects of rounding."""
        double, single = self._twins
        move = functools.partial(move_by_eps, generator=torch.Generator().manual_seed(0))
        for number in range(1, num_perturbations + 1):
            effects = self._effects_of_moving(single, move)
            if self._plan.dtype == np.float64 and not all(effect < math.inf for effect in effects.values()):
                in_double = self._effects_of_moving(double, move)
                effects = {name: value if value < math.inf else in_double[name] for name, value in effects.items()}
            if self._plan.dtype == np.float64 and any(self._vanishes(*effect) for effect in effects.items()):
                # Gradients alone are moved: a tie stays one.
                moved = _effects(self._truth, self._reference(double, self._param, self._recorded, None, move), double)
                effects = {name: larger_effect(value, moved[name]) for name, value in effects.items()}
            yield effects
            smaller = _with_smaller_prediction(self._recorded, SMALLER**number)
            truth = self._reference(double, self._param, smaller)
            yield _effects(truth, self._reference(single, self._param.astype(np.float32), smaller), single)

    def _vanishes(self, name: str, effect: float) -> bool:
        """Whether float32 leaves nothing of a tensor: something on the way was more than it can hold, or less."""
        largest = float(np.abs(self._truth[name]).max())
        return largest > 0 and effect * eps_of(np.dtype(np.float32)) == largest

    def _effects_of_moving(self, twin: Twin, move: Move) -> Mapping[str, float]:
        moved = move(torch.from_numpy(self._param.astype(twin.param.dtype))).numpy()
        return _effects(self._truth, self._reference(twin, moved, self._recorded, move, move), twin)

    def _reference(
        self,
        twin: Twin,
        param: Array,
        recorded: Recording,
        move: Move | None = None,
        move_grad: Move | None = None,
    ) -> Mapping[str, Array]:
        np.copyto(twin.param, param)
        both, _ = beside_torch(twin, recorded, self._plan, move, move_grad)
        values = {pair.quantity.name: pair.reference.numpy() for pair in both}
        return values | {part.pair.quantity.name: values[part.tensor][part.key] for part in self._parts}


def _effects(truth: Mapping[str, Array], rounded: Mapping[str, Array], twin: Twin) -> Mapping[str, float]:
    """By name, how far the values of a twin are from the truth, in units of the eps of its dtype."""
    return {name: distance(rounded[name], values) / eps_of(twin.param.dtype) for name, values in truth.items()}


def larger_effect(effect: float, other: float) -> float:
    """The larger of two effects of rounding; what overflowed on the way says nothing."""
    return max(effect, other) if other < math.inf else effect


def eps_of(dtype: np.dtype[Any]) -> float:
    """The distance from 1 to the next number, 1.2e-7 or 2.2e-16."""
    return float(np.finfo(dtype).eps)


def distance(values: Array, truth: Array) -> float:
    """max|values - truth|; NaN where either has one."""
    return float(np.abs(values - truth).max())


def is_rounding(evaluated: Evaluated) -> bool:
    """Whether what `infer` returned is as near to torch's values as they stay when the input is moved by one eps."""
    generator, effect = torch.Generator().manual_seed(0), 0.0
    reference = evaluated.pair.reference.numpy()
    with torch.no_grad():
        for _ in range(NUM_PERTURBATIONS):
            moved = evaluated.function(move_by_eps(evaluated.input, generator))
            effect = larger_effect(effect, distance(moved.numpy(), reference))
    return distance(evaluated.pair.ours, reference) <= MARGIN * effect


def _with_smaller_prediction(recorded: Recording, factor: float) -> Recording:
    """The recorded step as if the last layer had returned `factor` of its output."""
    last, smaller = copy.copy(recorded.layers[-1]), copy.copy(recorded)
    assert last.output is not None
    last.output = (factor * last.output).astype(last.output.dtype)
    smaller.layers = [*recorded.layers[:-1], last]
    return smaller


def move_by_eps(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Floating values one eps up or down, at random: zeros and signs stay. Every value is moved: all the rounding of a
    step may come from a single one.
    """
    if not tensor.is_floating_point():
        return tensor
    up = (torch.rand(tensor.shape, generator=generator) < 0.5).to(tensor)
    return tensor * (1 + torch.finfo(tensor.dtype).eps * (2 * up - 1))
