"""Compiled steps of whole batches: a plan runs many of them in one call."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator
from itertools import repeat
from typing import Any

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.compile.blas import Choice
from nn_manual.compile.boundaries import Boundaries
from nn_manual.compile.compile_step import compile_step
from nn_manual.compile.gathering import Rows
from nn_manual.compile.plan import Plan
from nn_manual.compile.plans import Plans, noise_of, settings_of, takes_noise
from nn_manual.compile.stacked_batches import StackedBatches
from nn_manual.compile.step_copies import Copies
from nn_manual.data import Examples, num_batches
from nn_manual.data.batches import shuffled
from nn_manual.optim import Optimizer
from nn_manual.step.watch import Watch
from nn_manual.trainer.steps import Step, Steps
from nn_manual.trainer.trainer_settings import TrainerSettings

#: About how many seconds a call takes at most. Between two calls, signals are heard and progress is shown.
SECONDS_OF_CALL = 0.2
#: The most bytes that the batches of a call, and the random numbers for them, take.
LARGEST_CALL = 64_000_000


class CompiledSteps:
    """Runs the steps of epochs by a plan, many in a call where that can be. `steps` makes the steps whose batch is of
    another size than most, and counts those that are made alone.

    Raises NoNumba where numba isn't installed, NoBlas and ConfigError for a BLAS and threads that aren't there.
    """

    def __init__(self, settings: TrainerSettings, steps: Steps) -> None:
        self.settings, self.steps = settings, steps
        self.plans = Plans(Choice(settings.blas, settings.threads), settings.loop_threads)
        self._seconds = 0.0
        #: Whether checked steps may run many in a call: not where the plan can't copy what the check needs.
        self._keeps = True
        self._boundaries = Boundaries(copy_grads=settings.clipping is not None)

    def prepare(self, examples: Examples, batch_size: int) -> Choice:
        """Make the plan of whole batches, if the choice of BLAS and threads needs it; returns the choice. Where the
        step can't be traced, the choice stays as it was.
        """
        if None in self.plans.choice and len(examples.input):
            self._plan(Examples(*(array[:batch_size] for array in examples)))
        return self.plans.choice

    def epoch(self, examples: Examples, batch_size: int, *, seed: int, epoch: int, first: int) -> Iterator[Step]:
        """The steps of one epoch, from the batch with the index `first` on."""
        num_examples = len(examples.input)
        is_one = 0 < num_examples <= batch_size
        batch_size = min(batch_size, num_examples)
        stacked = StackedBatches(examples, None if is_one else shuffled(num_examples, seed, epoch), batch_size)
        index, count = first, num_batches(num_examples, batch_size) if num_examples else 0
        while index < count:
            num_whole = num_examples // batch_size - index
            num_steps = min(num_whole, self._most()) if num_whole else 0
            num_kept = 0 if num_steps else self._most_kept((batch_size, *examples.input.shape[1:]), num_whole - 1)
            one = stacked.batch(index)
            plan = self._plan(one) if num_whole else None
            if plan is None:
                yield from self.steps.each([one])
                index += 1
            elif num_kept and (kept := self._kept(plan, stacked, index, num_kept)):
                yield from kept
                index += len(kept)
            elif not num_steps:
                yield from self.steps.each([one], functools.partial(self._observed, plan))
                index += 1
            else:
                rows = stacked.rows(index, num_steps) if plan.may_gather(examples.input) else None
                inputs = stacked.inputs(index, num_steps) if rows is None else rows
                done, _ = self._run(plan, inputs, stacked.targets(index, num_steps))
                yield from done
                index += len(done)
                if len(done) < num_steps:  # a number isn't finite: the formulas themselves say which
                    self.settings.model.grad_arena[...] = 0  # else what the plan has found counts as the last step's
                    yield from self.steps.each([stacked.batch(index)])
                    index += 1

    def _most(self) -> int:
        """How many steps the next call may have: at least one, however long it takes, but 0 where the next step is
        checked. The first call has one step, because nobody knows yet how long it takes.
        """
        settings, number = self.settings, self.settings.model.num_steps
        most = max(1, round(SECONDS_OF_CALL / self._seconds)) if self._seconds else 1
        if settings.check_every:
            most = min(most, settings.check_every - 1 - number % settings.check_every)
        if settings.stop_every:
            most = min(most, settings.stop_every - number % settings.stop_every)
        return most

    def _most_kept(self, input_shape: Shape, num_left: int) -> int:
        """How many steps the next call may have where every step is checked; 0 where the next step is made alone. The
        last step before a checkpoint, the last one of an epoch and the one that fills the ring are made alone, because
        they are recorded.
        """
        settings, prover = self.settings, self.steps.prover
        if prover is None or settings.check_every != 1 or settings.lr_step == "step" or not self._keeps:
            return 0
        most = min(prover.room(input_shape), num_left, round(SECONDS_OF_CALL / (self._seconds or 1e-3)))
        if settings.stop_every:
            most = min(most, settings.stop_every - 1 - settings.model.num_steps % settings.stop_every)
        return most if most > 1 else 0

    def _kept(self, plan: Plan, stacked: StackedBatches, first: int, num_steps: int) -> list[Step]:
        """The steps of one call, from the batch with the index `first` on. All of them wait for their proof. There are
        none where they can't be kept, or where the first one isn't finite.
        """
        prover, loss = self.steps.prover, self.settings.loss
        assert prover is not None
        copies = Copies(*prover.copies())
        self._keeps = plan.may_copy(copies)
        targets = stacked.targets(first, num_steps)
        if not self._keeps or not all(map(loss.has_value, loss.denominators(targets))):
            return []
        inputs = stacked.inputs(first, num_steps)
        done, of_steps = self._run(plan, inputs, targets, copies)
        given = {"input": inputs, "target": targets, **of_steps}
        checks = prover.keep(given, np.array([step.loss for step in done]))
        return [step._replace(check=check) for step, check in zip(done, checks, strict=True)]

    def _observed(self, plan: Plan, input: Array, target: Array, watch: Watch | None) -> float:
        """Make a checked step by the plan; returns the loss. The step is counted already. The formulas make a step that
        isn't finite.
        """
        settings, checker = self.settings, self.steps.checker
        assert checker is not None
        # Copies: what is recorded may be views of these, and a layer or a loss may write into them.
        inputs, targets = input[np.newaxis].copy(), target[np.newaxis].copy()
        of_steps = self._coefficients(plan, 1) | self._noise(plan, input.shape, 1, settings.model.num_steps)
        done = plan.run(inputs, targets, of_steps)
        if not done.num_steps:
            settings.model.grad_arena[...] = 0
            return self.steps.make(input, target, watch)
        settings.optimizer.num_steps += 1
        self._boundaries.fill(checker.recorded, plan.results(inputs, targets, of_steps), input, target)
        return float(done.losses[0])

    def _plan(self, batch: Examples) -> Plan | None:
        """The plan for batches of this shape; None where the step can't be traced."""
        settings = self.settings
        observe = self._boundaries.observe if settings.check_every else None
        own = settings.model, settings.loss, settings.optimizer
        if not settings.check_every:  # else no setting may change
            self.plans.renew(settings_of(*own, settings.clipping, settings.lr_scheduler))
        compiled = functools.partial(compile_step, *own, *batch, settings.clipping, observe=observe)
        return self.plans.of((batch.input.shape, batch.target.shape), compiled)

    def _run(
        self, plan: Plan, inputs: Array | Rows, targets: Array, copies: Copies | None = None
    ) -> tuple[list[Step], dict[str, Array]]:
        """Make one call. Returns its steps, up to the first that isn't finite, and by name the arrays that they got
        beside the batches.
        """
        model, optimizer, (num_steps, size) = self.settings.model, self.settings.optimizer, targets.shape[:2]
        batch, given = (inputs.examples, inputs.order) if isinstance(inputs, Rows) else (inputs[0], inputs)
        before = model.num_steps
        lrs = range(before, before + num_steps) if self.settings.lr_step == "step" else None
        start = time.perf_counter()
        of_steps = self._coefficients(plan, num_steps, lrs)
        of_steps |= self._noise(plan, (size, *batch.shape[1:]), num_steps, before + 1)
        done = plan.run(inputs, targets, of_steps, copies)
        if done.num_steps:
            self._seconds = (time.perf_counter() - start) / done.num_steps
            num_bytes = sum(array.nbytes for array in (given, targets, *of_steps.values()))
            self._seconds = max(self._seconds, SECONDS_OF_CALL * num_bytes / num_steps / LARGEST_CALL)
        numbers = range(before + 1, before + done.num_steps + 1)
        model.num_steps = before + done.num_steps
        optimizer.num_steps += done.num_steps
        denominators = self.settings.loss.denominators(targets[: done.num_steps])
        parts = zip(numbers, done.losses.tolist(), repeat(size), denominators, repeat(None), strict=False)
        steps = list(map(tuple.__new__, repeat(Step), parts))  # Step's own __new__ takes twice as long
        return steps, of_steps

    def _coefficients(self, plan: Plan, num_steps: int, lrs: range | None = None) -> dict[str, Array]:
        """The coefficients of the updates by name, (num_steps,) each. `lrs` has the counts with which a schedule of
        steps is asked.
        """
        optimizer = self.settings.optimizer
        members, numbers = optimizer.members, range(optimizer.num_steps + 1, optimizer.num_steps + num_steps + 1)
        if lrs is None:
            of_members = [_of_steps(member, numbers) for member in members]
        else:
            of_members = [[] for _ in members]
            for count, number in zip(lrs, numbers, strict=True):
                self.steps.set_scheduled(count)
                for member, of_steps in zip(members, of_members, strict=True):
                    of_steps.append(member.coefficients(number))
        return {
            f"{i}.{name}": _filled([each[name] for each in of_steps], num_steps, self.settings.model.dtype)
            for i, of_steps in enumerate(of_members)
            for name in of_steps[0]
            if f"{i}.{name}" in plan.of_steps
        }

    def _noise(self, plan: Plan, input_shape: Shape, num_steps: int, first: int) -> dict[str, Array]:
        """The random numbers of the layers by name, (num_steps, ...) each, from the step `first` on."""
        if not takes_noise(plan):
            return {}
        steps = [noise_of(self.settings.model, input_shape, first + step) for step in range(num_steps)]
        return {name: np.stack([of_step[name] for of_step in steps]) for name in steps[0]}


def _of_steps(member: Optimizer, numbers: range) -> list[dict[str, float]]:
    """The coefficients of steps between which no setting changes, up to the step from which on they stay the same. All
    later steps have the last ones: to ask for those, too, takes a tenth of the time of a small net's step.
    """
    last = int(min(max(member.settles_at, numbers.start), numbers[-1]))
    return [member.coefficients(number) for number in range(numbers.start, last + 1)]


def _filled(values: list[float], count: int, dtype: np.dtype[Any]) -> Array:
    """An array of `count` numbers: the values, and then the last one in all further places."""
    array = np.full(count, values[-1], dtype)
    array[: len(values)] = values
    return array
