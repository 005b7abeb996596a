"""Training in which nothing is wrong: what the check calls wrong all the same, and what it must judge again."""

from __future__ import annotations

import functools
import itertools
import unittest.mock
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np

from benchmarks.processes import ROOT, on_all_cores
from benchmarks.proven import proven
from benchmarks.random_nets import random_run_in_slices, random_run_together
from benchmarks.wrapped import wrapped
from nn_manual import Adam, BatchNorm1d, CrossEntropyLoss, Dropout, Linear, ReLU, Residual, Sequential, Trainer
from nn_manual.arrays import DTYPES, size_of
from nn_manual.check.judge.judge import Judge
from nn_manual.check.step.plan import Plan
from nn_manual.config import RunConfig, load_config
from nn_manual.data import Digits
from nn_manual.errors import DataError, GradientMismatch, NotFiniteError
from nn_manual.run.loading import load
from nn_manual.trainer.steps import Step

#: The runs that are searched for false alarms.
CONFIGS = sorted((ROOT / "config").glob("*.yaml"))
#: How many elements must be compared in the training of each config, in each dtype, with no false alarm.
NUM_ELEMENTS = 10_000_000
SEEDS = (0, 1, 2)
#: Beside the config's own batch size. An odd one leaves a smaller last batch.
BATCH_SIZES = (1, 7)

#: How many random nets are trained, and for how many steps each.
NUM_NETS, STEPS_OF_A_NET = 1_000, 400
#: The same for nets whose batches are cut into slices; a net that has learned ends before.
NUM_NETS_IN_SLICES, STEPS_IN_SLICES = 200, 5_000

#: The part of all steps that may be beyond the tolerance by rounding, each of which costs several reruns.
FEW_APPEALS = 0.01
NUM_STEPS_OF_APPEALS = 2_000


@dataclass
class Tally:
    """Sums over checked steps."""

    num_steps: int = 0
    num_elements: int = 0
    num_mismatches: int = 0
    num_rounding: int = 0
    num_diverged: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


def false_alarms() -> bool:
    """Training runs of every config in which nothing is wrong, on all cores."""
    print(f"{'false alarms':22} {'dtype':8} {'steps':>8} {'elements':>12} {'mismatches':>11} {'rounding':>9}")
    num_mismatches = 0
    for of_a_config, words in on_all_cores(_false_alarms, itertools.product(CONFIGS, DTYPES)):
        num_mismatches += of_a_config.num_mismatches
        print(words, flush=True)
    print(f"{num_mismatches} mismatches; rounding: beyond the tolerance by rounding, as float64 says\n")
    return num_mismatches == 0


def _false_alarms(config_and_dtype: tuple[Path, str]) -> tuple[Tally, str]:
    """The training runs of a config in one dtype: their line, below the words of each false alarm."""
    path, dtype = config_and_dtype
    tally, words = Tally(), list[str]()
    try:
        _train(path, dtype, tally, words)
    except DataError as error:
        return tally, wrapped(f"{path.stem}, {dtype}: skipped, {error}")
    note = f"  {tally.num_diverged} runs diverged" if tally.num_diverged else ""
    words.append(
        f"{path.stem:22} {dtype:8} {tally.num_steps:8,} {tally.num_elements:12,} "
        f"{tally.num_mismatches:11,} {tally.num_rounding:9,}{note}"
    )
    return tally, "\n".join(words)


def _train(path: Path, dtype: str, tally: Tally, words: list[str]) -> None:
    """Train, over seeds and batch sizes in turn, until enough elements are compared. Raises DataError."""
    own_size = load_config(path).batch_size
    runs = [(seed, batch_size) for batch_size in (own_size, *BATCH_SIZES) for seed in SEEDS]
    for number, (seed, batch_size) in enumerate(runs, start=1):
        config = load_config(path, [f"dtype={dtype}", f"seed={seed}", f"batch_size={batch_size}"])
        wanted = NUM_ELEMENTS * number // len(runs)
        try:
            for num_elements, num_rounding in _checked_steps(config, wanted - tally.num_elements):
                tally.num_steps += 1
                tally.num_elements += num_elements
                tally.num_rounding += num_rounding
        except GradientMismatch as mismatch:
            tally.num_mismatches += 1
            words.append(str(mismatch))
        except NotFiniteError:  # the next run makes up for the elements
            tally.num_diverged += 1


def _checked_steps(config: RunConfig, num_wanted: int) -> Iterator[tuple[int, int]]:
    """For each step of a training, how many elements were compared, and how many tensors were beyond the tolerance by
    rounding; it ends when `num_wanted` are compared. It runs long after the loss has settled, when gradients are
    small differences of large numbers.
    """
    split, model = load(config)
    trainer = Trainer(model, config.loss, config.optimizer(model), config.clip_grad_norm, config.new_scheduler())
    epochs = (
        trainer.epoch(split.train, config.batch_size, seed=config.seed, epoch=epoch) for epoch in itertools.count()
    )
    steps = _with_elements(itertools.chain.from_iterable(epochs), model.num_parameters, num_wanted)
    for step in proven(trainer, steps):
        assert step.check is not None  # the trainer checks every step
        yield _num_elements(step.check.plan, model.num_parameters), len(step.check.rounding)


def _with_elements(steps: Iterator[Step], num_parameters: int, num_wanted: int) -> Iterator[Step]:
    """The first steps, until they have so many elements together; at least one step."""
    num_elements = 0
    for step in steps:
        yield step
        assert step.check is not None  # the trainer checks every step
        num_elements += _num_elements(step.check.plan, num_parameters)
        if num_elements >= num_wanted:
            return


def random_alarms(nets: range | None = None, *, only_slices: bool = False) -> bool:
    """Training runs of random nets in which nothing is wrong, on whole batches and in slices, on all cores. `nets` are
    the numbers of the nets to run, or None for all.
    """
    passed = only_slices or _alarms_of("random nets", _steps_together, nets or range(NUM_NETS))
    return _alarms_of("random nets in slices", _steps_in_slices, nets or range(NUM_NETS_IN_SLICES)) and passed


def _steps_together(seed: int) -> Iterator[Step]:
    return random_run_together(seed, STEPS_OF_A_NET)


def _steps_in_slices(seed: int) -> Iterator[Step]:
    return itertools.islice(random_run_in_slices(seed), STEPS_IN_SLICES)


def _alarms_of(kind: str, steps_of: Callable[[int], Iterator[Step]], nets: range) -> bool:
    tally = Tally()
    for of_a_net, words in on_all_cores(functools.partial(_alarm, steps_of), nets):
        tally += of_a_net
        if words:
            print(words, flush=True)
    print(
        f"{kind}: {len(nets):,} of them, {tally.num_steps:,} steps, {tally.num_mismatches:,} mismatches, "
        f"{tally.num_rounding:,} rounding, {tally.num_diverged:,} diverged\n",
        flush=True,
    )
    return tally.num_mismatches == 0


def _alarm(steps_of: Callable[[int], Iterator[Step]], seed: int) -> tuple[Tally, str]:
    """The steps of one of the nets, and the words of its false alarm."""
    tally = Tally()
    with np.errstate(all="ignore"):  # some of them diverge
        try:
            for step in steps_of(seed):
                assert step.check is not None  # the trainer checks every step
                tally.num_steps += 1
                tally.num_rounding += len(step.check.rounding)
        except GradientMismatch as mismatch:
            tally.num_mismatches += 1
            return tally, f"seed {seed}: {mismatch}"
        except NotFiniteError:
            tally.num_diverged += 1
    return tally, ""


def appeals() -> bool:
    """How many steps the judge must judge again, in the training of a net on the digits in which gradients cancel."""
    passed = True
    for dtype in DTYPES:
        steps = _normalized_training(dtype, NUM_STEPS_OF_APPEALS)
        with unittest.mock.patch.object(Judge, "judge", autospec=True, side_effect=Judge.judge) as judge:
            num_steps = sum(1 for _ in steps)
        passed &= judge.call_count < FEW_APPEALS * num_steps
        print(f"appeals, {dtype}: {judge.call_count} of {num_steps:,} steps", flush=True)
    print(f"fewer than {FEW_APPEALS:.0%} wanted\n")
    return passed


def _normalized_training(dtype: str, num_steps: int) -> Iterator[Step]:
    """So many steps of a net with Linears before batch normalization, so that the gradient of their bias is zero in
    theory, with Dropout, a Residual and Adam.

    Dropout keeps the net from learning the data by heart: a loss that is almost zero would have few digits left.
    """
    model = Sequential(
        Linear(64, 64),
        BatchNorm1d(64),
        ReLU(),
        Dropout(0.5),
        Residual(Linear(64, 32), BatchNorm1d(32), ReLU(), Linear(32, 64)),
        Dropout(0.5),
        Linear(64, 10),
        dtype=dtype,
    )
    train = Digits().load(0, model.dtype).train
    trainer = Trainer(model, CrossEntropyLoss(), Adam(model))
    epochs = (trainer.epoch(train, 64, seed=0, epoch=epoch) for epoch in itertools.count())
    yield from proven(trainer, itertools.islice(itertools.chain.from_iterable(epochs), num_steps))


def _num_elements(plan: Plan, num_parameters: int) -> int:
    """A lower bound for the number of elements in the tensors of a plan: what a composite gives to its children isn't
    counted.
    """
    inputs, outputs = ({name: size_of(shapes[i]) for name, shapes in plan.shapes.items()} for i in range(2))
    grad_inputs = [name.removesuffix(".grad_input") for name in plan.tensors if name.endswith(".grad_input")]
    num_vectors = 1 + len(plan.clipping) + bool(plan.update)  # the gradient, clipped, and the parameters
    grad_prediction = outputs[plan.chain[-1].name]
    num_values = sum(outputs.values()) + 1 + grad_prediction + sum(inputs[name] for name in grad_inputs)
    return num_values + num_vectors * num_parameters
