"""What the gradient check is worth: the mutants that it catches, the smallest error, and false alarms in training."""

from __future__ import annotations

import itertools
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from benchmarks.mutation.score import Score, score
from benchmarks.mutation.smallest import ERRORS, smallest, tensors
from benchmarks.mutation.subjects import subjects
from benchmarks.mutation.survivors import SURVIVORS
from benchmarks.processes import ROOT
from benchmarks.random_nets import random_run
from nn_manual.arrays import DTYPES, size_of
from nn_manual.check.step.plan import Plan
from nn_manual.config import RunConfig, load_config
from nn_manual.errors import DataError, GradientMismatch, NotFiniteError
from nn_manual.layers import Layer
from nn_manual.losses import Loss
from nn_manual.model import Sequential
from nn_manual.running.run import load
from nn_manual.running.trainer import Trainer

#: The smallest relative error that must be caught always.
SMALLEST = {"float32": 1e-4, "float64": 1e-10}

#: The runs that are searched for false alarms.
CONFIGS = sorted((ROOT / "config").glob("*.yaml"))
#: How many elements must be compared in the training of each config, in each dtype, with no false alarm.
NUM_ELEMENTS = 10_000_000
SEEDS = (0, 1, 2)
#: Beside the config's own batch size. An odd one leaves a smaller last batch.
BATCH_SIZES = (1, 7)

#: How many random nets are trained, and for how many steps each.
NUM_NETS, STEPS_OF_A_NET = 1_000, 400

WIDTH = 80


def main(parts: Sequence[str] = ()) -> int:
    """Run the parts asked for, by default all: 0, or 1 where a figure is missed."""
    unknown = set(parts) - set(PARTS)
    if unknown:
        print(f"unknown part {', '.join(sorted(unknown))}; known: {', '.join(PARTS)}")
        return 2
    torch.set_num_threads(1)  # with a dozen elements, a second thread takes longer to start than the work
    passed = [PARTS[part]() for part in parts or PARTS]
    return 0 if all(passed) else 1


def mutants() -> bool:
    """The mutation score of each class."""
    print(f"{'mutants':20} {'all':>6} {'by hand':>8} {'caught':>7} {'named':>6} {'same':>6} {'raise':>6} {'time':>8}")
    scores = []
    for subject in subjects():
        start, made = time.monotonic(), list(subject.mutants())
        result = score(subject, made)
        scores.append(result)
        num_by_hand = sum(mutant.operator == "by hand" for mutant in made)
        print(
            f"{result.owner:20} {len(made):6} {num_by_hand:8} {result.num_caught:7} "
            f"{result.num_caught - len(result.misnamed):6} {len(result.survivors):6} {len(result.raised):6} "
            f"{time.monotonic() - start:6.0f} s",
            flush=True,
        )
    num_caught, num_missed = sum(s.num_caught for s in scores), sum(len(s.missed) for s in scores)
    num_named = num_caught - sum(len(s.misnamed) for s in scores)
    print(f"\ncaught {num_caught} of {num_caught + num_missed} that compute something else: ", end="")
    print(f"{num_caught / (num_caught + num_missed):.1%}; named right {num_named / num_caught:.1%}")
    print("same: passed, and proven to compute the same. raise: an error of their own before there is a gradient.\n")
    for result in scores:
        _print_details(result)
    return all(result.passed for result in scores)


def _print_details(result: Score) -> None:
    for mutant in result.survivors:
        proof = SURVIVORS[f"{result.owner}.{mutant.method}", mutant.line, mutant.mutated]
        _print_wrapped(f"same: {mutant}")
        _print_wrapped(f"because {proof}", indent="    ")
    for mutant in result.missed:
        _print_wrapped(f"MISSED: {mutant}")
    for mutant in result.wrongly_proven:
        _print_wrapped(f"CAUGHT, though proven to compute the same: {mutant}")
    for mutant, words in result.misnamed:
        _print_wrapped(f"NAMED WRONG: {mutant}")
        _print_wrapped(f"it said: {words}", indent="    ")


def _print_wrapped(text: str, indent: str = "") -> None:
    print(textwrap.fill(text, WIDTH, initial_indent=indent, subsequent_indent=f"{indent}    "))


def smallest_errors() -> bool:
    """The smallest relative error of each gradient that is caught wherever it is made."""
    print(f"{'smallest error always caught':36} " + " ".join(f"{dtype:>9} {'made':>6}" for dtype in ERRORS))
    passed = True
    for owner in (subject.owner for subject in subjects()):
        if owner is Sequential or not issubclass(owner, Layer | Loss):  # which have no gradient of their own
            continue
        for tensor in tensors(owner):
            found = {dtype: smallest(owner, tensor, dtype) for dtype in ERRORS}
            passed &= all(found[dtype].error <= SMALLEST[dtype] for dtype in ERRORS)
            name = f"{owner.__name__}.{tensor}"
            print(f"{name:36} " + " ".join(f"{s.error:9.0e} {s.num_errors:6}" for s in found.values()), flush=True)
    print(f"at least: {' '.join(f'{dtype} {bound:.0e}' for dtype, bound in SMALLEST.items())}\n")
    return passed


@dataclass
class Tally:
    """What the checked steps of one config in one dtype add up to."""

    num_steps: int = 0
    num_elements: int = 0
    num_mismatches: int = 0
    num_rounding: int = 0
    num_diverged: int = 0


def false_alarms() -> bool:
    """Training runs of every config in which nothing is wrong."""
    print(f"{'false alarms':22} {'dtype':8} {'steps':>8} {'elements':>12} {'mismatches':>11} {'rounding':>9}")
    num_mismatches = 0
    for path in CONFIGS:
        for dtype in DTYPES:
            tally = Tally()
            try:
                _train(path, dtype, tally)
            except DataError as error:
                _print_wrapped(f"{path.stem}, {dtype}: skipped, {error}")
                continue
            num_mismatches += tally.num_mismatches
            note = f"  {tally.num_diverged} runs diverged" if tally.num_diverged else ""
            print(
                f"{path.stem:22} {dtype:8} {tally.num_steps:8,} {tally.num_elements:12,} "
                f"{tally.num_mismatches:11,} {tally.num_rounding:9,}{note}",
                flush=True,
            )
    print(f"{num_mismatches} mismatches; rounding: beyond the tolerance by rounding, as float64 says\n")
    return num_mismatches == 0


def _train(path: Path, dtype: str, tally: Tally) -> None:
    """Train, over seeds and batch sizes in turn, until enough elements are compared. Raises DataError."""
    own_size = load_config(path).batch_size
    runs = [(seed, batch_size) for batch_size in (own_size, *BATCH_SIZES) for seed in SEEDS]
    for number, (seed, batch_size) in enumerate(runs, start=1):
        config = load_config(path, [f"dtype={dtype}", f"seed={seed}", f"batch_size={batch_size}"])
        try:
            for num_elements, num_rounding in _checked_steps(config):
                tally.num_steps += 1
                tally.num_elements += num_elements
                tally.num_rounding += num_rounding
                if tally.num_elements >= NUM_ELEMENTS * number // len(runs):
                    break
        except GradientMismatch as mismatch:
            tally.num_mismatches += 1
            print(mismatch)
        except NotFiniteError:  # the next run makes up for the elements
            tally.num_diverged += 1


def _checked_steps(config: RunConfig) -> Iterator[tuple[int, int]]:
    """For each step of a training without end, how many elements were compared, and how many tensors were beyond the
    tolerance by rounding. It runs long after the loss has settled, where gradients are small differences of large
    numbers.
    """
    split, model = load(config)
    trainer = Trainer(model, config.loss, config.optimizer(model), config.clip_grad_norm, config.new_scheduler())
    for epoch in itertools.count():
        for step in trainer.epoch(split.train, config.batch_size, seed=config.seed, epoch=epoch):
            assert step.check is not None  # the trainer checks every step
            yield _num_elements(step.check.plan, model.num_parameters), len(step.check.rounding)


def random_alarms() -> bool:
    """Training runs of random nets in which nothing is wrong."""
    tally = Tally()
    with np.errstate(all="ignore"):  # some of them diverge
        for seed in range(NUM_NETS):
            try:
                for step in itertools.islice(random_run(seed), STEPS_OF_A_NET):
                    assert step.check is not None  # the trainer checks every step
                    tally.num_steps += 1
                    tally.num_rounding += len(step.check.rounding)
            except GradientMismatch as mismatch:
                tally.num_mismatches += 1
                print(f"seed {seed}: {mismatch}", flush=True)
            except NotFiniteError:
                tally.num_diverged += 1
    print(
        f"random nets: {NUM_NETS:,} of them, {tally.num_steps:,} steps, {tally.num_mismatches:,} mismatches, "
        f"{tally.num_rounding:,} rounding, {tally.num_diverged:,} diverged\n"
    )
    return tally.num_mismatches == 0


def _num_elements(plan: Plan, num_parameters: int) -> int:
    """How many elements the tensors of a plan have at least: what a composite gives to its children isn't counted."""
    inputs, outputs = ({name: size_of(shapes[i]) for name, shapes in plan.shapes.items()} for i in range(2))
    grad_inputs = [name.removesuffix(".grad_input") for name in plan.tensors if name.endswith(".grad_input")]
    num_vectors = 1 + len(plan.clipping) + bool(plan.update)  # the gradient, clipped, and the parameters
    grad_prediction = outputs[plan.chain[-1].name]
    num_values = sum(outputs.values()) + 1 + grad_prediction + sum(inputs[name] for name in grad_inputs)
    return num_values + num_vectors * num_parameters


PARTS: dict[str, Callable[[], bool]] = {
    "mutants": mutants,
    "smallest": smallest_errors,
    "alarms": false_alarms,
    "random": random_alarms,
}
