"""Mistakes in a training whose steps are proven together: the verdict must be the same as for steps that are proven one
by one.

The first step of a training is right, since the checker proves it alone. From the second step on the class is wrong,
and the steps wait for their proof.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

from benchmarks.mutation.subjects import MOMENTUM, SEED, batch, layer_nets, loss_net
from nn_manual import Trainer
from nn_manual.arrays import DTYPES, Array, Shape
from nn_manual.check.catalogue.input_kinds import KINDS
from nn_manual.errors import GradientMismatch, NotFiniteError
from nn_manual.layers import Layer
from nn_manual.losses import Loss, MSELoss
from nn_manual.model import Sequential
from nn_manual.optim import Optimizer

#: A smaller tolerance is one of float64.
FLOAT32 = 1e-8
#: Steps of each training: not enough to fill a ring with a group of them.
NUM_STEPS = 4


class Training(NamedTuple):
    """What is trained, and the object in it whose class is mutated."""

    net: Sequential
    loss: Loss
    optimizer: Callable[..., Optimizer]
    input_shape: Shape
    mutated: Callable[[Trainer], Any]


class Verdict(NamedTuple):
    """What ended a training: the number of the step, and the label and the tensor of what was called wrong, each empty
    if there is none; the whole message; and how many steps could be proven together. `is_small` says that float32
    doesn't show the mistake: it was found in float64, by chance, where rounding asked for that.
    """

    step: int
    label: str
    tensor: str
    words: str
    most: int
    is_small: bool = False

    @property
    def place(self) -> str:
        """The label, also where the step ended before it was compared, at a loss that isn't finite."""
        return "loss" if self.label.startswith("the loss is ") else self.label

    def is_same(self, other: Verdict, *, is_stale: bool = False) -> bool:
        """Whether both name the same step and place. A formula that reads memory that nobody has written to computes
        other numbers each time. It may be called not deterministic, without a tensor, or wrong by another number, but
        in the same step and the same place. A stale formula reads what an earlier run left, and the two ways run it
        another number of times: the same place is all that they can agree on. Where a number that it reads makes the
        loss infinite, one of them may end at that loss.
        """
        if is_stale:
            return self.place == other.place
        same_tensor = self.tensor == other.tensor or not (self.tensor and other.tensor)
        return (self.step, self.label) == (other.step, other.label) and same_tensor


class Verdicts(NamedTuple):
    """For a wrong class: in how many trainings it was, in how many of these steps were proven together, and in how many
    a step was called wrong. `differ` has both messages if they don't name the same. `num_small` trainings have a
    mistake that float32 doesn't show, which was found in one of the two ways alone.
    """

    num_trainings: int
    num_together: int
    num_caught: int
    differ: list[tuple[str, str]]
    num_small: int


def verdicts(changed: type[Any], number: int, *, is_stale: bool = False) -> Verdicts:
    """Train with a layer, a loss or an optimizer of a wrong class, in one dtype and on inputs of one kind. The mutant's
    `number` decides both, so that many mutants meet all of them.
    """
    num_together, num_caught, num_small, differ = 0, 0, 0, []
    dtype, kind = list(DTYPES)[number % 2], list(KINDS)[number // 2 % len(KINDS)]
    examples = range(len(changed.examples()))
    with np.errstate(all="ignore"), _unwritten_memory_is_wrong():  # a mistake may overflow or divide by zero
        for example in examples:
            alone = _verdict(changed, dtype, example, kind, memory=0)
            together = _verdict(changed, dtype, example, kind, memory=10**6)
            num_together += together.most > 1
            num_caught += bool(alone.words)
            if alone.is_same(together, is_stale=is_stale):
                continue
            found = [verdict for verdict in (alone, together) if verdict.words]
            if len(found) == 1 and found[0].is_small:
                num_small += 1
            else:
                differ.append((alone.words, together.words))
    return Verdicts(len(examples), num_together, num_caught, differ, num_small)


@contextmanager
def _unwritten_memory_is_wrong() -> Iterator[None]:
    """In this context new arrays have a number where nobody writes. What lies there otherwise may be the right numbers,
    of an earlier array, in one of the two ways alone.
    """
    of_shape, of_array = partial(_filled, np.empty), partial(_filled, np.empty_like)
    with patch.object(np, "empty", of_shape), patch.object(np, "empty_like", of_array):
        yield


def _filled(make: Callable[..., Array], *arguments: Any, **keywords: Any) -> Array:
    array = make(*arguments, **keywords)
    if array.dtype.kind == "f":
        array.fill(7)
    return array


def trainings(owner: type[Any], dtype: str) -> Iterator[Training]:
    """What each example of a class is trained in."""
    if issubclass(owner, Layer):
        for net, place, shape in layer_nets(owner, dtype):
            yield Training(net, MSELoss(), MOMENTUM, shape, partial(_layer, place=place))
    elif issubclass(owner, Loss):
        for loss in owner.examples(num_outputs=3):
            yield Training(loss_net(loss, dtype), loss, MOMENTUM, (3, 3), lambda trainer: trainer.loss)
    else:
        optimizer_class: Callable[..., Optimizer] = owner
        for settings in owner.examples():
            net, make = loss_net(MSELoss(), dtype), partial(optimizer_class, **settings)
            yield Training(net, MSELoss(), make, (6, 3), lambda trainer: trainer.optimizer)


def _layer(trainer: Trainer, place: int) -> Layer:
    return trainer.model.layers[place]


def _verdict(owner: type[Any], dtype: str, example: int, kind: str, *, memory: int) -> Verdict:
    """What ends the training of an example on inputs of one kind."""
    training = next(itertools.islice(trainings(owner, dtype), example, None))
    net, loss = training.net, training.loss
    try:
        optimizer = training.optimizer(net, lr=0.1)
    except Exception as error:  # a wrong optimizer may not even be made
        words = f"{type(error).__name__}: {error}"
        return Verdict(0, words, "", words, 0)
    trainer = Trainer(net, loss, optimizer, check_memory=memory)
    generator, mutated = np.random.default_rng(SEED), training.mutated(trainer)
    step, label, tensor, words, report = 0, "", "", "", None
    try:
        for number in range(NUM_STEPS):
            mutated.__class__ = owner if number else owner.__mro__[1]
            one = batch(net, loss, training.input_shape, kind, generator)
            trainer.steps.one(*one, together=True)
        trainer.flush()
        if not memory:  # steps that are proven together end with a closer look at the last one
            assert trainer.steps.checker is not None  # every step is checked
            report = trainer.steps.checker.look_closely()
            step, words = (trainer.num_steps, str(report)) if report.failures else (0, "")
    except GradientMismatch as error:
        step, words, report = trainer.num_steps, f"step {trainer.num_steps}: {error}", error.report
    except NotFiniteError as error:
        step, label, words = trainer.num_steps, str(error), f"step {trainer.num_steps}: {error}"
    except Exception as error:  # whatever the mutant raises
        label = words = f"{type(error).__name__}: {error}"
    is_small = False
    if step and report is not None:
        label = report.problem.partition(":")[0] if report.problem else report.failures[0].layer
        tensor = "" if report.problem else report.failures[0].name
        is_small = dtype == "float32" and bool(report.failures) and report.failures[0].tolerance < FLOAT32
    assert trainer.prover is not None  # every step is checked
    return Verdict(step, label, tensor, words, trainer.prover.groups.most, is_small)
