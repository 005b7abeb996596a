"""Torch's versions of what some steps of one plan do, beside ours: gradients, clipping, the optimizer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nn_manual.arrays import Array, size_of
from nn_manual.check.compare.worst import within, worst_differences
from nn_manual.check.many_steps.one_layer import CannotStack
from nn_manual.check.many_steps.ring import Ring
from nn_manual.check.many_steps.stacked_steps import StackedSteps
from nn_manual.check.twin.model import threads_for
from nn_manual.check.twin.optimizers import OptimizerTwin, State
from nn_manual.check.whole_step.clipping import clipped_by_torch
from nn_manual.messages.text import counted
from nn_manual.optim import Clipping

if TYPE_CHECKING:
    from nn_manual.check.whole_step.checker import GradientChecker


class RowComparison:
    """Compares the steps in up to `num_rows` rows of a ring with torch. Several of them may work side by side: each has
    versions of torch's of its own, and reads other rows. Raises CannotStack where the steps can't be stacked.
    """

    def __init__(self, checker: GradientChecker, ring: Ring, num_rows: int) -> None:
        assert checker.optimizer is not None  # a trainer's checker has one
        self.ring, self.plan, self.clipping, self._ties = ring, ring.plan, checker.clipping, checker.model.ties
        self._stacked = StackedSteps(ring.plan, checker.model, checker.loss)
        shapes = checker.model.parameter_shapes()
        self._sizes = {name: size_of(shape) for name, shape in shapes.items()}
        if ring.with_updates:
            self._twin = OptimizerTwin(checker.optimizer, ring.plan.dtype, num_rows)
        self._update_tolerances = np.array([quantity.tolerance for quantity in ring.plan.update])

    def found(self, rows: slice) -> tuple[Array, Array]:
        """max|ours - torch| and max|torch| of all quantities of the plan, in the steps in these rows of the ring,
        (steps, quantities). Those of clipping and of the update are left out where these are proven step by step.
        """
        with threads_for(0):  # one, in a new thread, too: what is found of a step must not depend on how many wait
            parts = [self._of_gradients(rows)]
            if self.ring.with_updates and self.clipping is not None:
                parts.append(self._of_clipping(rows, self.clipping))
            if self.ring.with_updates:
                parts.append(self._of_update(rows))
        absolute, scale = (np.concatenate(arrays, axis=1) for arrays in zip(*parts, strict=True))
        return absolute, scale

    def _of_gradients(self, rows: slice) -> tuple[Array, Array]:
        reference = self._stacked.differentiate(self.ring, rows)
        ours, theirs = [], []
        for quantity in (*self.plan.forward, *self.plan.backward):
            own, torchs = self.ring.tensors[quantity.name][rows], reference[quantity.name]
            if own.shape != torchs.shape:
                steps = counted(len(own), "step")
                raise CannotStack(f"{quantity.name} of {steps} has shape {tuple(torchs.shape)} in torch")
            ours.append(own)
            theirs.append(torchs.numpy())
        return worst_differences(ours, theirs, num_steps=rows.stop - rows.start)

    def _of_clipping(self, rows: slice, clipping: Clipping) -> tuple[Array, Array]:
        """torch clips the gradient of one step at a time: a norm is that of all tensors together."""
        names = self._ties.names
        grads = [
            np.sum([self._grad(use, rows) for use in reversed(names[name])], axis=0, dtype=self.plan.dtype)
            if name in names
            else self._grad(name, rows)
            for name in self._sizes
        ]
        theirs = np.stack([clipped_by_torch(row, clipping) for row in np.concatenate(grads, axis=1)])
        return worst_differences([self.ring.grad[rows]], [theirs], num_steps=len(theirs))

    def _grad(self, parameter: str, rows: slice) -> Array:
        grad = self.ring.tensors[self.plan.grad_names[parameter]][rows]
        return grad.reshape(len(grad), -1)

    def _of_update(self, rows: slice) -> tuple[Array, Array]:
        ring = self.ring
        assert ring.after is not None  # updates are proven
        before, after = (state.map(lambda all_rows: all_rows[rows]) for state in (ring.before, ring.after))
        scheduled, num_updates, count = ring.scheduled[rows], ring.num_updates[rows], rows.stop - rows.start
        self._twin.step(before.param, before.vectors, ring.grad[rows], scheduled=scheduled, num_steps=num_updates)
        torchs = State(self._twin.param, self._twin.vectors).map(lambda all_rows: all_rows[:count])
        absolute, scale = worst_differences(after.all, torchs.all, [*self._sizes.values()], num_steps=count)
        for i, tensor in zip(*(~within(absolute, scale, self._update_tolerances)).nonzero(), strict=True):
            # As in the checker: what lands near zero carries the rounding errors of where it came from.
            scale[i, tensor] = np.maximum(scale[i, tensor], np.abs(self._tensors(before)[tensor][i]).max())
        return absolute, scale

    def _tensors(self, state: State) -> list[Array]:
        """The tensors of a state, (steps, size) each, in the plan's order."""
        ends = np.cumsum(list(self._sizes.values()))
        return [tensor for rows in state.all for tensor in np.split(rows, ends[:-1], axis=1)]
