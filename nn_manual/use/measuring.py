"""What only a step of a run can show: its multiplications, its memory, and how many steps are proven together."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import NamedTuple

from nn_manual.arrays import Array
from nn_manual.compile.program import program
from nn_manual.config import RunConfig
from nn_manual.data import Split, batches, num_batches
from nn_manual.errors import NNManualError
from nn_manual.run.loading import load
from nn_manual.run.needed_memory import TORCH_ITSELF
from nn_manual.run.training_run import TrainingRun
from nn_manual.trace.step import trace_step
from nn_manual.trace.step_cost import num_multiplications, peak_memory
from nn_manual.trace.trace import CannotTrace
from nn_manual.trainer.trainer import Trainer


class FirstStep(NamedTuple):
    """A trainer that has made no step, the steps of an epoch, and the batch of the first one."""

    trainer: Trainer
    num_steps: int
    input: Array
    target: Array


def measured(config: RunConfig, split: Split | None) -> Iterator[str]:
    """What the first step of a run takes, and how it is checked: sentences, each with its subject before a colon.
    `split` has the config's data, if they have been read.
    """
    step = _first_step(config, split)
    yield from _costs(config, step)
    yield f"gradient check: {_how_checked(config, step)}"


def steps_checked(config: RunConfig) -> str:
    """Which steps of a run are checked, in words."""
    every = config.gradient_check.every
    if not every:
        return "none"
    return "every step" if every == 1 else f"1 step of {every:,}"


def _first_step(config: RunConfig, split: Split | None) -> FirstStep | NNManualError:
    """What the run's first step is made with, or why there is none."""
    try:
        split, model = load(config, split)
        # Nothing is compiled yet.
        plain = dataclasses.replace(config, compiled=False, blas=None, threads=None, loop_threads=None)
        trainer = TrainingRun(plain, split, model).trainer
        num_steps = num_batches(len(split.train.input), config.batch_size)
        return FirstStep(trainer, num_steps, *next(batches(split.train, config.batch_size, config.seed, epoch=0)))
    except NNManualError as error:
        return error


def _costs(config: RunConfig, step: FirstStep | NNManualError) -> Iterator[str]:
    """What a step on such a batch keeps in memory and multiplies, by its trace, and which part of it isn't compiled."""
    if isinstance(step, NNManualError):
        yield f"training step: what it takes isn't known: {_first_line(step)}"
        return
    model, loss, optimizer = step.trainer.model, step.trainer.loss, step.trainer.optimizer
    try:
        trace = trace_step(model, loss, optimizer, step.input, step.target, step.trainer.clipping)
    except CannotTrace as refusal:
        yield f"training step: what it takes isn't known: {refusal}"
        return
    yield (
        f"training step: a batch of {len(step.input):,} takes {num_multiplications(trace):,} multiplications in "
        f"products, and {_megabytes(peak_memory(trace))} beside model, optimizer and batch"
    )
    if config.compiled:
        reasons = "; ".join(f"{each.place}: {each.reason}" for each in program(trace).external)
        yield f"compiled: all but what NumPy runs: {reasons}" if reasons else "compiled: the whole step"


def _how_checked(config: RunConfig, step: FirstStep | NNManualError) -> str:
    """Which steps of a run are checked, and how many are proven together: a step on the first batch shows it."""
    steps = steps_checked(config)
    if not config.gradient_check.every:
        return steps
    if (config.slices or 1) > 1:
        proven = "proven as one batch" if config.sync_batch_norm else "each proven by itself"
        return f"{steps}, its {config.slices} slices {proven}, and their sum"
    try:
        if isinstance(step, NNManualError):
            raise step
        from nn_manual.check.many_steps.capacity import capacity  # torch

        assert step.trainer.checker is not None  # steps are checked
        with step.trainer.checker.recording():
            step.trainer.step(step.input, step.target)
        found = capacity(step.trainer.checker, config.gradient_check.num_bytes)
    except NNManualError as error:
        return f"{steps}; how many are proven together isn't known: {_first_line(error)}"
    if found.reason:
        taken = f"{_megabytes(found.of_each)}, and torch itself {_megabytes(TORCH_ITSELF)}"
        return f"{steps}, each proven by itself in {taken}: {found.reason}"
    said = f"{steps}, up to {found.num_steps} proven together in {_megabytes(found.num_steps * found.of_each)}"
    of_epoch = step.num_steps // config.gradient_check.every
    if 0 < of_epoch < found.num_steps:
        said += f", those of an epoch in {_megabytes(of_epoch * found.of_each)}"
    return said


def _megabytes(num_bytes: int) -> str:
    """Two digits, or all before the point."""
    megabytes = num_bytes / 1e6
    return f"{megabytes:,.0f} MB" if megabytes >= 10 else f"{megabytes:.2g} MB"


def _first_line(error: NNManualError) -> str:
    return str(error).partition("\n")[0]
