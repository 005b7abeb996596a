"""Steps of one plan, proven together: torch's run of all of them, clipping, the optimizer, and every difference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nn_manual.arrays import Array, size_of
from nn_manual.check.compare.worst import within, worst_differences
from nn_manual.check.many_steps.one_layer import CannotStack, NoRoom
from nn_manual.check.many_steps.restored_step import Past, received
from nn_manual.check.many_steps.ring import Ring
from nn_manual.check.many_steps.stacked_steps import StackedSteps
from nn_manual.check.step.fast_structure import Glance
from nn_manual.check.step.plan import Plan
from nn_manual.check.twin.model import threads_for
from nn_manual.check.twin.optimizers import OptimizerTwin, State, UpdateInputs
from nn_manual.check.whole_step.clipping import clipped_by_torch
from nn_manual.messages.text import counted

if TYPE_CHECKING:
    from nn_manual.check.whole_step.checker import GradientChecker

#: From so many parameters on, updates are proven step by step: the ring would have to keep what they made, and fewer
#: steps would fit. In the 784-128-10 net, with 101,770 parameters, updates that are proven together take 0.8 times as
#: long.
LARGE_UPDATE = 1 << 17


class StepGroup:
    """Steps of one plan: the `ring` that keeps them, and torch's versions of what they do.

    Raises CannotStack where the steps can't be proven together, NoRoom where `memory` has no room for them.
    """

    def __init__(self, checker: GradientChecker, plan: Plan, memory: Array) -> None:
        assert checker.optimizer is not None  # a trainer's checker has one
        self.model, self.optimizer, self.max_norm, self.plan = checker.model, checker.optimizer, checker.max_norm, plan
        self.proves_updates = checker.model.num_parameters < LARGE_UPDATE
        self.ring = Ring(
            plan, checker.recorded, checker.model, checker.optimizer, memory, with_updates=self.proves_updates
        )
        if not self.ring.num_steps:
            raise NoRoom(self.ring.reason)
        self.glance = Glance(plan, checker.recorded)
        self._stacked = StackedSteps(plan, checker.model, checker.loss)
        shapes = checker.model.parameter_shapes()
        self._sizes = {name: size_of(shape) for name, shape in shapes.items()}
        if self.proves_updates:
            self._twin = OptimizerTwin(checker.optimizer, plan.dtype, self.ring.num_rows)
        self._update_tolerances = np.array([quantity.tolerance for quantity in plan.update])
        gets = received(plan.chain, "input", "loss.grad_prediction")
        self._grad_outputs = {item.label: names.grad_output for item, names in gets}
        self.past = Past(checker, self.ring)

    def keep_first(self, checker: GradientChecker, row: int = 0) -> bool:
        """Keep the step that the checker has just recorded by itself, if it has the form of those that wait."""
        update = checker.update
        assert update is not None  # a trainer's checker has one
        self.ring.start(row, update.start, update.num_steps)
        return self.ring.end(row, checker.recorded)

    def found(self, start: int, stop: int) -> tuple[Array, Array]:
        """max|ours - torch| and max|torch| of all quantities of the plan, in the steps in these rows of the ring,
        (steps, quantities). Those of clipping and of the update are left out where these are proven step by step.
        """
        rows = self.ring.padded(start, stop)
        with threads_for(0):  # one: what is found of a step must not depend on how many wait
            parts = [self._of_gradients(rows)]
            if self.proves_updates and self.max_norm is not None:
                parts.append(self._of_clipping(rows, self.max_norm))
            if self.proves_updates:
                parts.append(self._of_update(rows))
        wanted = slice(start - rows.start, stop - rows.start)
        absolute, scale = (np.concatenate(arrays, axis=1)[wanted] for arrays in zip(*parts, strict=True))
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

    def _of_clipping(self, rows: slice, max_norm: float) -> tuple[Array, Array]:
        """torch clips the gradient of one step at a time: its norm is that of all tensors together."""
        names = self.model.ties.names
        grads = [
            np.sum([self._grad(use, rows) for use in reversed(names[name])], axis=0, dtype=self.plan.dtype)
            if name in names
            else self._grad(name, rows)
            for name in self._sizes
        ]
        theirs = np.stack([clipped_by_torch(row, max_norm) for row in np.concatenate(grads, axis=1)])
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

    def update_inputs(self, i: int) -> UpdateInputs:
        """The inputs of the `i`-th update, which is proven here."""
        ring = self.ring
        before = ring.before.map(lambda rows: rows[i])
        return UpdateInputs(before, ring.grad[i], ring.scheduled[i], ring.num_updates[i])

    def _tensors(self, state: State) -> list[Array]:
        """The tensors of a state, (steps, size) each, in the plan's order."""
        ends = np.cumsum(list(self._sizes.values()))
        return [tensor for rows in state.all for tensor in np.split(rows, ends[:-1], axis=1)]

    def largest_grad_output(self, step: int, index: int) -> float:
        """max|grad_output| of the layer whose tensor is the plan's `index`-th; 0 where it has none."""
        layer = [*self.plan.forward, *self.plan.backward][index].layer
        tensor = self.ring.tensors.get(self._grad_outputs.get(layer, ""))
        return 0.0 if tensor is None else float(np.abs(tensor[step]).max())
