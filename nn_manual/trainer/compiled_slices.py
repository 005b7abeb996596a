"""Compiled steps of batches in slices: a plan for each shape of a slice, and one for the update."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from nn_manual.arrays import Array
from nn_manual.compile.blas import Choice
from nn_manual.compile.boundaries import Boundaries
from nn_manual.compile.compile_step import compile_slice, compile_update
from nn_manual.compile.kept_for_buffers import KeptForBuffers
from nn_manual.compile.plan import Plan
from nn_manual.compile.plans import Plans, noise_of, settings_of, takes_noise
from nn_manual.losses import Loss
from nn_manual.model import Sequential
from nn_manual.optim import Clipping
from nn_manual.step.slices.cut import BatchPart, parts_of
from nn_manual.step.slices.gradient_sum import Filled
from nn_manual.step.train_step import Evaluated, OneSlice, Runner
from nn_manual.step.watch import Watch
from nn_manual.trainer.trainer_settings import TrainerSettings

if TYPE_CHECKING:
    from nn_manual.check.step.recording import Recording
    from nn_manual.data import Examples

#: The key of the plan of clipping and update; those of slices are shapes.
UPDATE = "update"


class CompiledSlices:
    """A Runner of machine code, for batches of `num_rows` rows. A plan runs a slice, and ends before the gradients are
    added up; another plan runs the update. `formulas` run batches of another size, steps that can't be traced, and
    slices with a number that isn't finite. All processes make all plans, with the BLAS and the threads that the first
    process has chosen.

    With `bitwise`, a BLAS that isn't given is numpy's, on one thread: which one is fastest may differ from run to run,
    and so would the bits.
    """

    def __init__(self, settings: TrainerSettings, formulas: Runner) -> None:
        self.settings, self._formulas = settings, formulas
        slicing, blas, threads = settings.slicing, settings.blas, settings.threads
        self._group = slicing.group
        choice = Choice(blas or "numpy", threads or 1) if slicing.bitwise else Choice(blas, threads)
        self.plans = Plans(choice, settings.loop_threads, is_silent=self._group.rank > 0)
        self.num_rows = 0
        self._is_compiled = False
        self._kept = KeptForBuffers(settings.model)
        #: What the plans of a slice fill in, where it is watched.
        self._recorded: Recording | None = None
        self._boundaries = Boundaries(copy_grads=False, kept=self._kept)

    def prepare(self, examples: Examples, batch_size: int) -> Choice:
        """Make the plans of whole batches, if the choice of BLAS and threads needs them; returns the choice. All
        processes call it.
        """
        self.num_rows = min(batch_size, len(examples.input))
        if None in self.plans.choice and self.num_rows:
            batch = [array[:batch_size] for array in examples]
            parts = parts_of(self.settings.loss, batch[1], self.settings.slicing.num_slices)
            self.begin(parts, batch[0], batch[1], None)
        return self.plans.choice

    def begin(self, parts: Sequence[BatchPart], input: Array, target: Array, watch: Watch | None) -> None:
        """See Runner. It makes the plans that are missing."""
        self._is_compiled, self._recorded = False, None if watch is None else watch.recorded
        if len(input) != self.num_rows:
            return
        settings = self.settings
        own = settings.model, settings.loss, settings.optimizer
        if not settings.check_every:  # else no setting may change
            self.plans.renew(settings_of(*own, settings.clipping, settings.lr_scheduler))
        wanted: dict[Any, Callable[..., Plan]] = {}
        for part in parts:
            batch = np.ascontiguousarray(input[part.rows]), np.ascontiguousarray(target[part.rows])
            wanted[_shapes(part, input, target)] = functools.partial(compile_slice, *own, *batch, observe=self._observe)
        wanted[UPDATE] = functools.partial(compile_update, *own, settings.clipping)
        self._is_compiled = all(self._made(key, make) is not None for key, make in wanted.items())

    def _made(self, key: Any, make: Callable[..., Plan]) -> Plan | None:
        """The plan of this key, made by the first process first: the others take its choice of BLAS and threads, and
        its machine code where they share a disk.
        """
        if key not in self.plans:
            if self._group.rank == 0:
                self.plans.of(key, make)
            self.plans.choice = Choice(*self._group.gather(list(self.plans.choice))[0])
        return self.plans.of(key, make)

    @contextmanager
    def _observe(self, model: Sequential, loss: Loss) -> Iterator[Callable[[Sequence[Any]], Mapping[str, Array]]]:
        if not self.settings.check_every:
            yield self._kept.arrays
            return
        with self._boundaries.observe(model, loss) as arrays:
            yield arrays

    def slice(
        self,
        part: BatchPart,
        input: Array,
        target: Array,
        filled: Filled | None = None,
        evaluated: Evaluated | None = None,
    ) -> OneSlice:
        """See Runner."""
        model = self.settings.model
        if not self._is_compiled:
            return self._formulas.slice(part, input, target, filled, evaluated)
        plan = self.plans[_shapes(part, input, target)]
        # Copies: what is recorded may be views of these, and a layer or a loss may write into them.
        inputs, targets = (array[np.newaxis, part.rows].copy() for array in (input, target))
        noise = noise_of(model, inputs.shape[1:], model.num_steps) if takes_noise(plan) else {}
        done = plan.run(inputs, targets, noise)
        if not done.num_steps:  # a number isn't finite: the formulas themselves show where it comes from
            return self._formulas.slice(part, input, target, filled, evaluated)
        kept, recorded = list[Any](), self._recorded
        if self._kept.is_needed or recorded is not None:
            results = plan.results(inputs, targets, noise)
            kept, parts = self._kept.of(results)
            if recorded is not None:
                self._boundaries.fill(recorded, results, input[part.rows], target[part.rows], parts)
        if filled is not None:
            filled(-1)
        return OneSlice(float(done.losses[0]), model, kept)

    def kept(self, part: BatchPart, input: Array, target: Array) -> OneSlice:
        """See Runner."""
        if not self._is_compiled:
            return self._formulas.kept(part, input, target)
        return self.slice(part, input, target)

    def update(self, clipping: Clipping | None) -> None:
        """See Runner. The plan was made with this clipping."""
        if not self._is_compiled:
            self._formulas.update(clipping)
            return
        optimizer = self.settings.optimizer
        coefficients = {
            f"{i}.{name}": value.reshape(1)
            for i, part in enumerate(optimizer.parts)
            for name, value in part.rounded_coefficients(optimizer.num_steps + 1).items()
        }
        self.plans[UPDATE].run(_NO_BATCH, _NO_BATCH, coefficients)
        optimizer.num_steps += 1


#: Stands for one batch where a plan takes none.
_NO_BATCH = np.zeros((1, 0))


def _shapes(part: BatchPart, input: Array, target: Array) -> tuple[Any, ...]:
    return input[part.rows].shape, target[part.rows].shape
