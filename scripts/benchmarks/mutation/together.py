"""Mistakes in training whose steps are proven together: the verdict must be that of steps proven one by one.

The first step of a training is right, since the checker proves it alone. From the second step on the class is the
wrong one, and the steps wait for their proof.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.mutation.subjects import MOMENTUM, SEED, batch, layer_nets, loss_net
from nn_manual import Trainer
from nn_manual.arrays import DTYPES, Shape
from nn_manual.check.kinds import KINDS
from nn_manual.errors import GradientMismatch, NotFiniteError
from nn_manual.layers import Layer
from nn_manual.losses import Loss, MSELoss
from nn_manual.model import Sequential
from nn_manual.optim import Optimizer

#: Of each training: enough that a group of them fills no ring.
NUM_STEPS = 4


class Training(NamedTuple):
    """What is trained, and the object in it that is of the mutated class."""

    net: Sequential
    loss: Loss
    optimizer: Callable[..., Optimizer]
    input_shape: Shape
    mutated: Callable[[Trainer], Any]


class Verdicts(NamedTuple):
    """Of a wrong class: in how many trainings it was, in how many of them steps were proven together, and in how many
    one was called wrong; `differ` has the words of both where they are not the same.
    """

    num_trainings: int
    num_together: int
    num_caught: int
    differ: list[tuple[str, str]]


def verdicts(changed: type[Any], number: int) -> Verdicts:
    """Train with a layer, a loss or an optimizer of a wrong class, in one dtype and on inputs of one kind, that of its
    `number`: many of them meet all.
    """
    num_together, num_caught, differ = 0, 0, []
    dtype, kind = list(DTYPES)[number % 2], list(KINDS)[number // 2 % len(KINDS)]
    examples = range(len(changed.examples()))
    with np.errstate(all="ignore"):  # a mistake may overflow or divide by zero
        for example in examples:
            alone, _ = _verdict(changed, dtype, example, kind, memory=0)
            together, most = _verdict(changed, dtype, example, kind, memory=10**6)
            num_together += most > 1
            num_caught += bool(alone)
            if alone != together:
                differ.append((alone, together))
    return Verdicts(len(examples), num_together, num_caught, differ)


def trainings(owner: type[Any], dtype: str) -> Iterator[Training]:
    """What each example of a class is trained in."""
    if issubclass(owner, Layer):
        for net, place, shape in layer_nets(owner, dtype):
            yield Training(net, MSELoss(), MOMENTUM, shape, partial(_layer, place=place))
    elif issubclass(owner, Loss):
        for loss in owner.examples(num_outputs=3):
            yield Training(loss_net(dtype), loss, MOMENTUM, (3, 3), lambda trainer: trainer.loss)
    else:
        optimizer_class: Callable[..., Optimizer] = owner
        for settings in owner.examples():
            net, make = loss_net(dtype), partial(optimizer_class, **settings)
            yield Training(net, MSELoss(), make, (6, 3), lambda trainer: trainer.optimizer)


def _layer(trainer: Trainer, place: int) -> Layer:
    return trainer.model.layers[place]


def _verdict(owner: type[Any], dtype: str, example: int, kind: str, *, memory: int) -> tuple[str, int]:
    """What ends the training of an example on inputs of one kind, and in which step; "" where nothing does. And how
    many steps can be proven together.
    """
    training = next(itertools.islice(trainings(owner, dtype), example, None))
    net, loss = training.net, training.loss
    trainer = Trainer(net, loss, training.optimizer(net, lr=0.1), check_memory=memory)
    generator, mutated = np.random.default_rng(SEED), training.mutated(trainer)
    words = ""
    try:
        for step in range(NUM_STEPS):
            mutated.__class__ = owner if step else owner.__mro__[1]
            one = batch(net, loss, training.input_shape, kind, generator)
            trainer._train_step(*one, one, together=True)
        trainer.flush()
    except (GradientMismatch, NotFiniteError) as error:
        words = f"step {trainer.num_steps}: {error}"
    except Exception as error:  # whatever the mutant raises
        words = f"{type(error).__name__}: {error}"
    assert trainer.prover is not None  # every step is checked
    return words, trainer.prover.most
