"""The slices of a batch side by side: a layer that runs in one slice may need what it computes in all of them."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import partial
from typing import Any

from nn_manual.arrays import Array
from nn_manual.losses import Loss
from nn_manual.model import Sequential
from nn_manual.step.slices.batch_statistics import BatchStatistics
from nn_manual.step.slices.cut import BatchPart
from nn_manual.step.slices.process_group import ProcessGroup
from nn_manual.step.slices.sync_batch_norm import synchronized_copy, take_settings
from nn_manual.step.train_step import OneSlice, run_slice


class SynchronizedSlices:
    """Runs this process's slices, each by a copy of the model. Batch normalization in them takes the statistics of all
    slices of the batch, on all processes.

    The gradients of a slice are gradients of the batch's loss, so the slice's weight is in them already.
    """

    def __init__(self, model: Sequential, loss: Loss, num_own: int, num_slices: int, group: ProcessGroup) -> None:
        self._model, self._loss, self._statistics = model, loss, BatchStatistics(num_slices, group)
        #: The model and the loss for each own slice.
        self.copies = [
            (synchronized_copy(model, self._statistics, position), copy.copy(loss)) for position in range(num_own)
        ]

    def run(self, parts: Sequence[BatchPart], own: Sequence[BatchPart], input: Array, target: Array) -> list[OneSlice]:
        """Run forward and backward of the own slices. Their gradients are left in the copies."""
        self._statistics.begin(parts, own)
        if not own:
            self._statistics.attend(self._model.dtype)
            return []
        results: list[Any] = [None] * len(own)

        def run_own(position: int) -> None:
            model, loss = self.copies[position]
            model.seed, model.num_steps = self._model.seed, self._model.num_steps
            take_settings(model, self._model)
            vars(loss).update(vars(self._loss))
            model.first_row = own[position].rows.start
            results[position] = run_slice(model, loss, own[position], input, target, is_weighted=True)

        self._statistics.lockstep.run([partial(run_own, position) for position in range(len(own))])
        self._statistics.end()
        return results

    def gradient(self, position: int) -> Array:
        """The gradient of an own slice, times its weight."""
        return self.copies[position][0].grad_arena
