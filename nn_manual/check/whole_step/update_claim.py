"""The claim of an optimizer's step: that ours ends where torch's does, from the same inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from nn_manual.arrays import Array
from nn_manual.check.compare.comparison import CannotCompare, Pair, Quantity
from nn_manual.check.compare.tolerances import UPDATE
from nn_manual.check.judge.claim import DOUBLE, Claim, Values
from nn_manual.check.judge.rounding import Rounding
from nn_manual.check.step.reference import Move
from nn_manual.check.twin.optimizers import OptimizerTwin, UpdateInputs, state_of, stepped, tensors_of
from nn_manual.check.whole_step.update_pieces import on
from nn_manual.errors import raise_if_nobodys_fault, words_of
from nn_manual.optim import Optimizer


class UpdateClaim(Claim):
    """That `ours`, the tensors after a step of the optimizer from these `inputs`, are torch's."""

    def __init__(
        self, optimizer: Optimizer, inputs: UpdateInputs, quantities: Sequence[Quantity], ours: Sequence[Array]
    ) -> None:
        self.optimizer, self.inputs, self.quantities = optimizer, inputs, quantities
        self.dtype = ours[0].dtype
        torchs = self._torchs_in(self.dtype)
        both = zip(quantities, ours, torchs, strict=True)
        self.pairs = [
            # What lands near zero carries the rounding errors of where it came from.
            Pair(quantity, array, theirs, scale=max(float(theirs.abs().max()), float(np.abs(before).max())))
            for (quantity, array, theirs), before in zip(both, tensors_of(inputs.start, optimizer), strict=True)
        ]

    def in_float64(self) -> UpdateClaim:
        """As in every claim."""
        return self.made_in_float64(self.optimizer, self.inputs, self.quantities)

    @classmethod
    def made_in_float64(cls, optimizer: Optimizer, inputs: UpdateInputs, quantities: Sequence[Quantity]) -> UpdateClaim:
        """That the formulas agree: our step made again in float64. Raises CannotCompare with what it raises there."""
        try:
            ours = _made_in_float64(optimizer, inputs)
        except BaseException as error:  # a user's own optimizer may raise anything
            raise_if_nobodys_fault(error)
            raise CannotCompare(words_of(error)) from error
        claim = cls(optimizer, inputs, [replace(each, tolerance=UPDATE[DOUBLE.name]) for each in quantities], ours)
        claim.pairs = [pair._replace(scale=None) for pair in claim.pairs]  # in float64 these don't matter
        return claim

    def measured(self) -> Rounding:
        """As in every claim."""
        return Rounding(self._by_name(self._torchs_in(DOUBLE)))

    def moved(self, dtype: np.dtype[Any], move: Move, move_grad: Move) -> Values:
        """As in every claim."""
        return self._by_name(self._torchs_in(dtype, move, move_grad))

    def _torchs_in(
        self, dtype: np.dtype[Any], move: Move | None = None, move_grad: Move | None = None
    ) -> list[torch.Tensor]:
        """Each tensor after torch's step, made in `dtype` from values that go through `move`."""

        def converted(vector: Array, move: Move | None = move) -> Array:
            tensor = torch.from_numpy(vector.astype(dtype))
            return (tensor if move is None else move(tensor)).numpy()

        inputs = self.inputs
        start, grad = inputs.start.map(converted), converted(inputs.grad, move_grad)
        end = stepped(OptimizerTwin(self.optimizer, dtype), inputs._replace(start=start, grad=grad))
        return [torch.from_numpy(tensor) for tensor in tensors_of(end, self.optimizer)]

    def _by_name(self, tensors: Sequence[torch.Tensor]) -> Values:
        return {quantity.name: tensor.numpy() for quantity, tensor in zip(self.quantities, tensors, strict=True)}


def _made_in_float64(optimizer: Optimizer, inputs: UpdateInputs) -> list[Array]:
    """Each tensor after our step."""
    double = on(optimizer, optimizer.model.parameter_shapes(), DOUBLE, range(1, len(optimizer.groups) + 1))
    double.model.param_arena[...], double.model.grad_arena[...] = inputs.start.param, inputs.grad
    for member, values in zip(double.members, inputs.scheduled, strict=True):
        member.scheduled = values
    double.num_steps = inputs.num_steps
    for name, vector in inputs.start.vectors.items():
        double.vectors[name][...] = vector
    double.step()
    double.parts.clear()  # they have the optimizer itself: its vectors would stay until the next garbage collection
    return tensors_of(state_of(double), double)
