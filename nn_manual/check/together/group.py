"""Steps of one plan, proven together: torch's run of all of them, clipping, the optimizer, and every difference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nn_manual.arrays import BLOCK_SIZE, Array, size_of
from nn_manual.check.comparison import Differences, within
from nn_manual.check.step.plan import Plan, grad_name
from nn_manual.check.step.threads import threads_for
from nn_manual.check.step.tree import Item
from nn_manual.check.together.comparison import StackedComparison
from nn_manual.check.together.ring import Ring
from nn_manual.check.together.stacked import CannotStack, Stacked
from nn_manual.check.twin.optimizers import OptimizerTwin
from nn_manual.check.update import clipped_by_torch

if TYPE_CHECKING:
    from nn_manual.check.checker import GradientChecker


class Group:
    """The `ring` of the steps of a plan, and torch's versions of what they do.

    Raises CannotStack where the steps can't be proven together, or too few of them fit into `memory`.
    """

    def __init__(self, checker: GradientChecker, plan: Plan, memory: Array) -> None:
        assert checker.optimizer is not None  # a trainer's checker has one
        self.model, self.optimizer, self.max_norm, self.plan = checker.model, checker.optimizer, checker.max_norm, plan
        self.ring = Ring(plan, checker.recorded, checker.model, checker.optimizer, memory)
        if not self.ring.num_steps:
            wanted, there = self.ring.num_bytes / 1e6, memory.nbytes / 1e6
            raise CannotStack(f"a step takes {wanted:,.0f} MB of the {there:,.0f} MB of gradient_check.memory")
        self._stacked = Stacked(plan, checker.model, checker.loss)
        shapes = checker.model.parameter_shapes()
        self._sizes = {name: size_of(shape) for name, shape in shapes.items()}
        together = max(1, min(self.ring.num_steps, BLOCK_SIZE // max(1, checker.model.num_parameters)))
        self._twin = OptimizerTwin(checker.optimizer, plan.dtype, together)
        self._together = together
        quantities = [self.ring.tensors[quantity.name] for quantity in (*plan.forward, *plan.backward)]
        self._of_tensors = StackedComparison([size_of(tensor.shape[1:]) for tensor in quantities], plan.dtype)
        self._update_tolerances = np.array([quantity.tolerance for quantity in plan.update])
        num_vectors = len(checker.optimizer.vectors) + 1
        self._of_vectors = StackedComparison([*self._sizes.values()] * num_vectors, plan.dtype)
        self._of_clipped = StackedComparison([checker.model.num_parameters], plan.dtype)
        self._grad_outputs = dict(_grad_outputs(plan, plan.chain, "loss.grad_prediction"))

    def found(self, num_steps: int) -> list[Differences]:
        """Of each of the first steps in the ring, the differences of all quantities of the plan."""
        with threads_for(self.plan.num_products * num_steps):
            parts = [self._of_gradients(num_steps)]
            if self.max_norm is not None:
                parts.append(self._of_clipping(num_steps, self.max_norm))
            parts.append(self._of_update(num_steps))
        absolute, scale = (np.concatenate(arrays, axis=1) for arrays in zip(*parts, strict=True))
        return [Differences(*rows) for rows in zip(absolute, scale, strict=True)]

    def _of_gradients(self, num_steps: int) -> tuple[Array, Array]:
        reference = self._stacked.differentiate(self.ring, num_steps)
        ours, theirs = [], []
        for quantity in (*self.plan.forward, *self.plan.backward):
            own, torchs = self.ring.tensors[quantity.name][:num_steps], reference[quantity.name]
            if own.shape != torchs.shape:
                raise CannotStack(f"{quantity.name} of {num_steps} steps has shape {tuple(torchs.shape)} in torch")
            ours.append(own)
            theirs.append(torchs.contiguous().numpy())
        return self._of_tensors.differences(ours, theirs)

    def _of_clipping(self, num_steps: int, max_norm: float) -> tuple[Array, Array]:
        """torch clips the gradient of one step at a time: its norm is that of all tensors together."""
        names = self.model.ties.names
        grads = [
            np.sum([self._grad(use, num_steps) for use in reversed(names[name])], axis=0, dtype=self.plan.dtype)
            if name in names
            else self._grad(name, num_steps)
            for name in self._sizes
        ]
        theirs = np.stack([clipped_by_torch(row, max_norm) for row in np.concatenate(grads, axis=1)])
        return self._of_clipped.differences([self.ring.grad[:num_steps]], [theirs])

    def _grad(self, parameter: str, num_steps: int) -> Array:
        return self.ring.tensors[grad_name(parameter)][:num_steps].reshape(num_steps, -1)

    def _of_update(self, num_steps: int) -> tuple[Array, Array]:
        """As many steps at once as the processor's cache holds: the optimizer reads and writes each value once."""
        starts = range(0, num_steps, self._together)
        found = [self._of_updates(slice(start, min(start + self._together, num_steps))) for start in starts]
        absolute, scale = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
        return absolute, scale

    def _of_updates(self, steps: slice) -> tuple[Array, Array]:
        ring, count = self.ring, steps.stop - steps.start
        before = {name: vectors[steps] for name, vectors in ring.vectors_before.items()}
        lrs, num_updates = ring.lrs[steps], ring.num_updates[steps]
        self._twin.step(ring.param_before[steps], before, ring.grad[steps], lrs=lrs, num_steps=num_updates)
        ours = [*(ring.vectors_after[name][steps] for name in before), ring.param_after[steps]]
        theirs = [*(self._twin.vectors[name][:count] for name in before), self._twin.param[:count]]
        tensors = ([part for flat in vectors for part in self._tensors(flat)] for vectors in (ours, theirs))
        absolute, scale = self._of_vectors.differences(*tensors)
        wide = ~within(absolute, scale, self._update_tolerances)
        for i, tensor in zip(*wide.nonzero(), strict=True):  # as the checker does: near zero, where it came from counts
            vector = [*before.values(), ring.param_before[steps]][tensor // len(self._sizes)]
            origin = self._tensors(vector)[tensor % len(self._sizes)][i]
            scale[i, tensor] = max(scale[i, tensor], np.abs(origin).max())
        return absolute, scale

    def _tensors(self, flat: Array) -> list[Array]:
        """The tensors that lie end to end along the last axis."""
        ends = np.cumsum(list(self._sizes.values()))
        return np.split(flat, ends[:-1], axis=1)

    def largest_grad_output(self, step: int, index: int) -> float:
        """max|grad_output| of the layer whose tensor is the plan's `index`-th; 0 where it has none."""
        layer = [*self.plan.forward, *self.plan.backward][index].layer
        tensor = self.ring.tensors.get(self._grad_outputs.get(layer, ""))
        return 0.0 if tensor is None else float(np.abs(tensor[step]).max())


def _grad_outputs(plan: Plan, chain: list[Item], last: str) -> list[tuple[str, str]]:
    """The label of each layer, and the name of the tensor that is its grad_output: the grad_input of the next layer, or
    `last`.
    """
    found = []
    for item, following in zip(chain, [*chain[1:], None], strict=True):
        found.append((item.label, f"{following.name}.grad_input" if following else last))
        for name, children in item.children.items():
            found += _grad_outputs(plan, children, f"{name}.grad_output")
    return found
