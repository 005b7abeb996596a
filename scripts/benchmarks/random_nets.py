"""Training runs drawn at random, in which nothing is wrong: every mismatch that the check reports is a false alarm."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from dataclasses import fields
from itertools import count, groupby, islice
from typing import Any

import numpy as np

from benchmarks.proven import proven
from benchmarks.random_layers import extended, random_layers, random_ties, reshaped
from nn_manual import Embedding, Flatten, Linear, Loss, Sequential, Trainer
from nn_manual.arrays import DTYPES, Array, Padded
from nn_manual.data import Examples
from nn_manual.layers import Layer, LayerWithLengths
from nn_manual.layers.composite import descendants, shapes_of_chain
from nn_manual.losses.base import takes_numbers
from nn_manual.optim import Optimizer, ReduceLROnPlateau, Scheduler
from nn_manual.optim.scheduling import check_schedule
from nn_manual.registry import components, examples
from nn_manual.step.slices.cut import ONE_SLICE, Slicing
from nn_manual.step.slices.sync_batch_norm import has_batch_norm
from nn_manual.trainer.steps import Step

BATCH_SIZES = (1, 2, 3, 7, 32, 64)
#: A net learns few batches by heart, until the loss has no digit left.
NUM_BATCHES = (1, 4, 16)
#: Into how many slices batches are cut.
NUM_SLICES = (2, 3, 4, 5)
#: A net in slices has learned when its losses are this part of the first ones.
LEARNED = 1e-3
#: How many times each of them comes in an epoch whose steps are proven together.
NUM_TIMES = 20
#: Each example of each loss that takes any prediction, by its number; the example itself depends on the number of
#: outputs.
LOSSES: tuple[tuple[type[Loss], int], ...] = tuple(
    (loss_class, number)
    for loss_class in components(Loss).values()
    for number, example in enumerate(loss_class.examples())
    if example.domain == "real"
)
#: The nets have biases.
OPTIMIZERS: tuple[type[Any], ...] = tuple(each for each in components(Optimizer).values() if each.num_dims is None)
#: Their steps have no end.
SCHEDULERS: tuple[Scheduler, ...] = tuple(
    each for each in examples(components(Scheduler)) if each.last_count == math.inf
)


def random_run(seed: int) -> Iterator[Step]:
    """The checked steps, without end, of a net, a loss, an optimizer, a schedule and data, all drawn from `seed`. Each
    step is proven at once.
    """
    trainer, batches = drawn(seed)
    for epoch in count():
        trainer.start_epoch(epoch)
        for batch in batches:
            step = trainer.train_step(*batch)
            yield step
        trainer.observe(step.loss)


def random_run_in_slices(seed: int) -> Iterator[Step]:
    """The checked steps of such a net, whose batches are cut into slices, until the losses are the part LEARNED of the
    first ones.
    """
    trainer, batches = drawn(seed, in_slices=True)
    at_first = None
    for epoch in count():
        trainer.start_epoch(epoch)
        total = 0.0
        for batch in batches:
            step = trainer.train_step(*batch)
            yield step
            total += step.loss
        trainer.observe(step.loss)
        at_first = total if at_first is None else at_first
        if 0 <= total < LEARNED * at_first:  # a loss that may be below 0 has no end
            return


def random_run_together(seed: int, num_steps: int) -> Iterator[Step]:
    """So many checked steps of the same net on the same batches, each once it is proven. Batches of the same size come
    one after the other, several times each, so that many steps are proven together.
    """
    trainer, batches = drawn(seed)
    yield from proven(trainer, islice(_by_size(trainer, batches), num_steps))


def _by_size(trainer: Trainer, batches: list[Examples]) -> Iterator[Step]:
    """The steps as `trainer.epoch` makes them; it takes only batches of one size."""
    for epoch in count():
        trainer.start_epoch(epoch)
        for _, same in groupby(sorted(batches, key=size_of_batch), size_of_batch):
            for batch in list(same) * NUM_TIMES:
                step = trainer.steps.one(*batch, together=True)
                yield step
        trainer.observe(step.loss)


def size_of_batch(batch: Examples) -> int:
    """How many examples it has."""
    return len(batch.input)


def drawn(seed: int, *, in_slices: bool = False, **settings: Any) -> tuple[Trainer, list[Examples]]:
    """The trainer of a net, with more `settings`, and its batches."""
    generator = np.random.default_rng(seed)
    loss_class, number = LOSSES[generator.integers(len(LOSSES))]
    others = np.random.default_rng([seed, 1])
    layers = extended(random_layers(generator, loss_class), others)
    layers = _with_times(reshaped(layers, np.random.default_rng([seed, 2])))
    tied = random_ties(layers, others)
    model = Sequential(*layers, seed=seed, dtype=str(generator.choice(list(DTYPES))), tied=tied)
    loss = loss_class.examples(_sizes(model)[1])[number]
    optimizer = _optimizer(generator, model)
    slicing = _slicing(np.random.default_rng([seed, 3])) if in_slices else ONE_SLICE
    max_norm = [None, 1.0][generator.integers(2)]
    schedule = _schedule(generator.spawn(1)[0], optimizer)
    trainer = Trainer(model, loss, optimizer, clip_grad_norm=max_norm, slicing=slicing, **schedule, **settings)
    return trainer, _batches(generator, model, loss, _smallest_batch(model, slicing))


def _takes(optimizer: Optimizer, scheduler: Scheduler) -> bool:
    """Whether an optimizer has the momentum that a schedule moves, if it moves one."""
    try:
        check_schedule(optimizer, scheduler)
    except ValueError:
        return False
    return True


def _slicing(generator: np.random.Generator) -> Slicing:
    """Slices whose batch normalization has their own statistics, or those of the batch."""
    return Slicing(int(generator.choice(NUM_SLICES)), sync_batch_norm=bool(generator.integers(2)))


def _smallest_batch(model: Sequential, slicing: Slicing) -> int:
    """How many examples a batch must have. Numbers that are normalized over one example have no variance. Over two
    examples they become -1 and 1, apart from eps. Then no layer before has a gradient: what torch computes is rounding,
    which our reruns of torch hardly move.
    """
    if not has_batch_norm(layer for _, layer in descendants(model)):
        return 1
    return 3 if slicing.sync_batch_norm else 3 * slicing.num_slices


def _sizes(model: Sequential) -> tuple[int, int]:
    """How many numbers a net takes, and how many it returns."""
    linear = [layer for layer in model.layers if isinstance(layer, Linear)]
    return linear[0].in_features, linear[-1].out_features


def _schedule(generator: np.random.Generator, optimizer: Optimizer) -> dict[str, Any]:
    """No schedule, as often as a schedule of any one class that the optimizer takes, asked once an epoch or a step."""
    if generator.random() < 0.5:
        return {}
    taken = [scheduler for scheduler in SCHEDULERS if _takes(optimizer, scheduler)]
    scheduler = copy.deepcopy(taken[generator.integers(len(taken))])
    by_step = generator.random() < 0.5 and not isinstance(scheduler, ReduceLROnPlateau)
    return {"lr_scheduler": scheduler, "lr_step": "step" if by_step else "epoch"}


def _optimizer(generator: np.random.Generator, model: Sequential) -> Optimizer:
    """An optimizer of any class, with those of these settings that the class has; the biases may have no weight decay.
    """
    drawn: dict[str, Any] = {
        "lr": 10 ** generator.uniform(-3, 0.5),
        "momentum": generator.choice([0, 0.5, 0.9, 0.99]),
        "weight_decay": generator.choice([0, 0, 1e-4, 0.01]),
    }
    others = generator.spawn(1)[0]
    drawn |= {
        "betas": (others.choice([0, 0.5, 0.9]), others.choice([0.5, 0.9, 0.999])),
        "amsgrad": others.random() < 0.3,
    }
    optimizer_class = OPTIMIZERS[others.integers(len(OPTIMIZERS))]
    own = {name: drawn[name] for name in optimizer_class.setting_names() if name in drawn}
    has_bias = any(name.endswith(".bias") for name in model.parameter_shapes())
    has_groups = has_bias and others.random() < 0.3 and "weight_decay" in own
    groups = [{"parameters": "*.bias", "weight_decay": 0.0}] if has_groups else []
    optimizer: Optimizer = optimizer_class(model, **own, groups=groups)
    return optimizer


def _batches(
    generator: np.random.Generator, model: Sequential, loss: Loss, smallest: int
) -> list[Examples]:
    """Inputs of any scale, or indices, and the targets that a linear map makes of them, with noise or without. Where a
    layer heeds lengths, they are drawn beside the inputs.
    """
    in_features, out_features = _sizes(model)
    scale = 10 ** generator.uniform(-3, 3) if generator.random() < 1 / 3 else 1.0
    noise = generator.integers(2)
    teacher = generator.standard_normal((in_features, out_features))
    sizes = [size for size in BATCH_SIZES if size >= smallest]
    first, batches = model.layers[0], list[Examples]()
    for _ in range(generator.choice(NUM_BATCHES)):
        size = generator.choice(sizes)
        if isinstance(first, Embedding):
            input = generator.integers(first.num_embeddings, size=size)
            output = teacher[input % in_features]
        else:
            input = scale * generator.standard_normal((size, in_features))
            output = input @ teacher
        output = output + noise * generator.standard_normal(output.shape)
        target = output.argmax(axis=1)
        if takes_numbers(loss):
            target = loss.as_target(output.astype(model.dtype))
        input = input if isinstance(first, Embedding) else input.astype(model.dtype)
        batches.append(Examples(_with_lengths(model, input, generator), target))
    return batches


def _with_times(layers: list[Layer]) -> list[Layer]:
    """The layers; where one heeds lengths, behind two that make their input of sequences with as many times as this one
    gets. Another one that gets other times becomes the same without lengths.
    """
    if not any(isinstance(layer, LayerWithLengths) for layer in layers):
        return layers
    first = next(layer for layer in layers if isinstance(layer, Linear))
    shapes = shapes_of_chain({str(index): layer for index, layer in enumerate(layers)}, (3, first.in_features))
    own = list(zip(layers, shapes.values(), strict=True))
    time = next(shape[1] for layer, shape in own if isinstance(layer, LayerWithLengths))
    same = [
        _without_lengths(layer) if isinstance(layer, LayerWithLengths) and shape[1] != time else layer
        for layer, shape in own
    ]
    return [Flatten(), Linear(time, first.in_features), *same]


def _without_lengths(layer: LayerWithLengths) -> Layer:
    """The same layer for sequences of one length."""
    settings: Any = layer
    plain: type[Layer] = components(Layer)[type(layer).__name__.removeprefix("Padded")]
    return plain(**{field.name: getattr(layer, field.name) for field in fields(settings) if field.init})


def _with_lengths(model: Sequential, input: Array, generator: np.random.Generator) -> Array | Padded:
    """The input, (batch, time, 1) with lengths if a layer heeds some."""
    if not model.lengths_heeded_by:
        return input
    return Padded(input[:, :, np.newaxis], generator.integers(1, input.shape[1], len(input), endpoint=True))
