"""Whether a recorded step has the structure of the step that its plan was made for, as far as a glance shows.

`check_structure` asks every question and says what is wrong. In training nearly always nothing is, and each array is
the very object that is expected. To see this takes a fraction of the time.
"""

from __future__ import annotations

import numpy as np

from nn_manual.check.step.plan import Plan
from nn_manual.check.step.recording import Recording


class Glance:
    """Looks at the steps of one plan and recording, after the step that the plan was made for has passed."""

    def __init__(self, plan: Plan, recorded: Recording) -> None:
        self._plan, self._recorded = plan, recorded
        self._calls = {calls.item.name: calls for calls in recorded.layers}
        #: Whether each layer of the chain is made of no others, takes no indices and has no buffers.
        self.are_simple = not (any(item.children for item in plan.items) or plan.integer_inputs or recorded.buffers)
        self._chain = [self._calls[item.name] for item in plan.chain]
        self._shapes = [plan.shapes[item.name] for item in plan.chain]
        self._first, self._first_grad_input = plan.first, plan.first_grad_input

    def shows_nothing(self) -> bool:
        """Whether nothing is wrong. Where it is False, something may be."""
        loss, dtype = self._recorded.loss, self._plan.dtype
        if not self.are_simple or loss.failure or loss.refused:
            return False
        array = self._recorded.first.input
        for calls, (_, output_shape) in zip(self._chain, self._shapes, strict=True):
            output = calls.output
            if not (
                calls.input is array
                and type(output) is np.ndarray
                and output.shape == output_shape
                and output.dtype == dtype
                and calls.num_forwards == 1
                and calls.failure is None
                and calls.num_updates == 0
            ):
                return False
            array = output
        if loss.prediction is not array:
            return False
        grad = loss.grad_prediction
        last = len(self._chain) - 1
        for i in range(last, self._first - 1, -1):
            calls, (input_shape, output_shape) = self._chain[i], self._shapes[i]
            if not (
                calls.grad_output is grad
                and type(grad) is np.ndarray
                and grad.shape == output_shape
                and grad.dtype == dtype
                and calls.saved_again is calls.saved
                and calls.num_backwards == 1
            ):
                return False
            grad = calls.grad_input
            if i >= self._first_grad_input and not (
                type(grad) is np.ndarray and grad.shape == input_shape and grad.dtype == dtype
            ):
                return False
        return True
