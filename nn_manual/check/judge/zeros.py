"""Gradients that are zero in theory: the terms of a sum cancel, as those of a bias before batch normalization do.

The computed values of such a gradient are rounding alone, ours and torch's. So it is compared on the scale of its
terms. There, a formula whose terms don't cancel shows. A wrong factor of the gradient can't show: the report says so.
The judge finds these gradients, once for each tensor and shape of the batch; its reruns cost much more than a step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from nn_manual.arrays import Array
from nn_manual.check.compare.tolerances import ZEROS_MEASURED_EVERY
from nn_manual.check.step.proof import Proof


class ZerosInTheory:
    """The scales of the terms in the steps of one input shape, each as a multiple of max|grad_output| of the layer."""

    def __init__(self) -> None:
        self._multiples: dict[int, float] = {}
        self._num_steps = 0

    def add(self, step: Proof, terms: Mapping[str, float]) -> None:
        """Remember the scales of the terms, by the names of the gradients, as they are in this step."""
        self._num_steps = 0
        for i, pair in enumerate(step.pairs):
            if pair.quantity.name in terms and (largest := largest_grad_output(step, i)) > 0:
                self._multiples[i] = terms[pair.quantity.name] / largest

    def widened(self, scale: Array, largest_grad_output: Callable[[int], float]) -> Array:
        """The scales to compare the tensors of a step on: `scale`, but for gradients that are zero in theory.
        `largest_grad_output` returns max|grad_output| of the layer whose tensor is the i-th.
        """
        scale = scale.copy()
        for i, multiple in self._multiples.items():
            scale[i] = max(scale[i], multiple * largest_grad_output(i))
        return scale

    def count_step(self) -> None:
        """A step has passed."""
        self._num_steps += 1
        if self._num_steps >= ZEROS_MEASURED_EVERY:
            self._multiples.clear()

    def state(self) -> dict[str, Any]:
        """What is remembered, as JSON has it."""
        return {"steps": self._num_steps, "multiples": [[i, multiple] for i, multiple in self._multiples.items()]}

    @classmethod
    def of_state(cls, state: Mapping[str, Any]) -> ZerosInTheory:
        """One that goes on from what `state` returned."""
        zeros = cls()
        zeros._num_steps, zeros._multiples = state["steps"], dict(state["multiples"])
        return zeros


def largest_grad_output(step: Proof, i: int) -> float:
    """max|grad_output| of the layer whose tensor this is; 0 where it has none."""
    calls = next((calls for calls in step.recorded.layers if calls.label == step.pairs[i].quantity.layer), None)
    return 0.0 if calls is None or calls.grad_output is None else float(np.abs(calls.grad_output).max())


def sentences(names: Iterable[str]) -> tuple[str, ...]:
    """What a report says of the gradients of these names."""
    return tuple(f"{name} is zero in theory, its terms cancel: a wrong factor would not show" for name in sorted(names))
