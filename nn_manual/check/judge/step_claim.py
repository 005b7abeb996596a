"""The claim of a step: where a value is beyond the tolerance, is the formula wrong, or is it rounding?

Cancellation can enlarge rounding without bound: 1 - p for a probability p near 1, or a bias's gradient whose terms
cancel over the batch, keeps few correct digits, in torch's arithmetic as in ours. So before a run is stopped, two
questions are asked. Computed again in float64, do the formulas agree? And are the values of a step as near to torch's
float64 values as the arithmetic of their dtype allows?

How near that is, is measured. torch computes the step again in float32, with every parameter, activation and gradient
moved by one eps, and the probabilities inside of a layer, too: rounding does the same to each of them. The distance
from the float64 values is what rounding amounts to in this step. In a float64 step it is less, by the ratio of the two
eps.

torch computes these values at our activations and at our gradients: each layer gets our gradient of its output. So a
layer is judged by what it made of what it got, and not by rounding that others passed on to it.

The values are moved in float32 because of ties. A tie that is moved breaks, and this changes a gradient by as much as a
wrong formula for ties does. For a float64 step the ratio of the two eps makes it negligible, and in a float32 step a
number that jumps excuses no other: see `Rounding.find_jumps`. But float32 doesn't show everything: 1 - 1e-9
is 1 there and has no error, and torch computes some float32 sums in float64. So the values are moved in float64, too,
in a way that breaks no ties. And float32 shows what float64 doesn't have: a softmax of large scores turns over. So for
a float64 step, float32 counts only as far as float64 confirms it: see `Rounding.effect`.

Where a prediction is almost perfect, torch's loss and its gradient are differences with no digit left, or zero: they
show no rounding. So it is measured at a quarter, a sixteenth, ... of the prediction, too: a probability of 1 - 1e-20
becomes one of 1 - 1e-5, of which float32 keeps some digits.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from nn_manual.arrays import Array
from nn_manual.check.compare.comparison import Pair
from nn_manual.check.compare.tolerances import LARGEST_IN_FLOAT32, MARGIN, NOTHING_IN_COMMON
from nn_manual.check.judge.claim import DOUBLE, SINGLE, Claim, Values, randomly
from nn_manual.check.judge.in_float64 import Again
from nn_manual.check.judge.rounding import NUM_PERTURBATIONS, Rounding, distance, eps_of
from nn_manual.check.judge.small_parts import SmallPart
from nn_manual.check.judge.terms import within_terms
from nn_manual.check.step.proof import Proof, beside_torch
from nn_manual.check.step.recording import Recording
from nn_manual.check.step.reference import Move
from nn_manual.check.twin.model import Twin


class StepClaim(Claim):
    """That the tensors of a step are torch's.

    `twins` are torch's versions of its model in float64 and in float32, whose parameters are overwritten; `again` makes
    the step in float64. `parts` of its tensors can be judged under their own names.
    """

    def __init__(self, twins: tuple[Twin, Twin], step: Proof, again: Again, parts: Sequence[SmallPart] = ()) -> None:
        self.dtype, self.pairs = step.recorded.model.dtype, step.pairs
        self._step, self._again, self._parts = step, again, parts
        self._twins, self._param, self._recorded, self._plan = twins, step.param, step.recorded, step.plan
        #: The names of what the loss computes. Nothing else changes with the prediction: layers get our gradients.
        quantities = (*step.plan.forward, *step.plan.backward)
        self._of_loss = {quantity.name for quantity in quantities if quantity.layer == "loss"}
        self._of_loss |= {part.pair.quantity.name for part in parts if part.tensor in self._of_loss}

    def in_float64(self) -> StepClaim:
        """As in every claim."""
        return StepClaim(self._twins, self._again(self._step, self._twins[0]), self._again)

    def measured(self) -> Rounding:
        """As in every claim."""
        rounding = Rounding(self._reference(self._twins[0], self._param, self._recorded))
        allow_for_large(rounding, self._param)
        return rounding

    def within_terms(self, failed: Sequence[Pair]) -> frozenset[str]:
        """As in every claim."""
        return within_terms(self._twins[0], self._step, failed, self._parts)

    def zero_in_theory(self, pairs: Sequence[Pair]) -> dict[str, float]:
        """The gradients among `pairs` of which nothing is left but the rounding of their terms, in float64, too: by
        name, the scale of these terms. Moving each value by one eps has moved the gradient by this scale times eps.
        """
        names = {pair.quantity.name for pair in pairs if _differs(pair)}
        gradients = names & {quantity.name for quantity in self._plan.backward}
        if not gradients:
            return {}
        double, single = self._twins
        free = Rounding(self._reference(double, self._param, self._recorded, our_grads=False))
        for number in range(NUM_PERTURBATIONS):
            random = randomly(number)
            free.measure(self._moved(single, random, random, our_grads=False))
        of_rounding = MARGIN * eps_of(DOUBLE)
        return {
            name: free.effect(name, SINGLE)
            for name in gradients
            if np.abs(free.truth[name]).max() <= of_rounding * free.effect(name, SINGLE)
        }

    def moved(self, dtype: np.dtype[Any], move: Move, move_grad: Move) -> Values:
        """As in every claim."""
        return self._moved(self._twins[dtype == SINGLE], move, move_grad)

    def of_loss(self, pairs: Sequence[Pair]) -> Sequence[Pair]:
        """As in every claim."""
        return [pair for pair in pairs if pair.quantity.name in self._of_loss]

    def of_smaller_prediction(self, dtype: np.dtype[Any], factor: float) -> Values:
        """As in every claim."""
        smaller = _with_smaller_prediction(self._recorded, factor)
        values = self._reference(self._twins[dtype == SINGLE], self._param.astype(dtype), smaller)
        return {name: array for name, array in values.items() if name in self._of_loss}

    def _moved(self, twin: Twin, move: Move, move_grad: Move, *, our_grads: bool = True) -> Values:
        param = move(torch.from_numpy(self._param.astype(twin.param.dtype))).numpy()
        return self._reference(twin, param, self._recorded, move, move_grad, our_grads=our_grads)

    @np.errstate(over="ignore")  # float64 values may be more than float32 can hold
    def _reference(
        self,
        twin: Twin,
        param: Array,
        recorded: Recording,
        move: Move | None = None,
        move_grad: Move | None = None,
        *,
        our_grads: bool = True,
    ) -> Values:
        np.copyto(twin.param, param)
        both, _ = beside_torch(twin, recorded, self._plan, move, move_grad, our_grads=our_grads)
        values = {pair.quantity.name: pair.reference.numpy() for pair in both}
        return values | {part.pair.quantity.name: values[part.tensor][part.key] for part in self._parts}


def allow_for_large(rounding: Rounding, *given: Array) -> None:
    """Where a `given` value, or a true one, is too large for float32 to show its rounding, let what float64 shows count
    in full.
    """
    values = (*given, *rounding.truth.values())
    if not all(np.abs(array).max() < LARGEST_IN_FLOAT32 for array in values if array.size):
        rounding.jump = math.inf


def _differs(pair: Pair) -> bool:
    """Whether ours and torch's have few digits in common, as gradients have that are nothing but rounding."""
    reference = pair.reference.numpy()
    return distance(pair.ours, reference) > NOTHING_IN_COMMON * float(np.abs(reference).max())


def _with_smaller_prediction(recorded: Recording, factor: float) -> Recording:
    """The recorded step as if the last layer had returned `factor` of its output."""
    last, smaller = copy.copy(recorded.layers[-1]), copy.copy(recorded)
    assert last.output is not None
    last.output = (factor * last.output).astype(last.output.dtype)
    smaller.layers = [*recorded.layers[:-1], last]
    return smaller
