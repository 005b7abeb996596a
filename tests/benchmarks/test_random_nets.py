"""A sample of `scripts/benchmark.py check random`: runs in which nothing is wrong, and nothing is called so."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from benchmarks import random_layers, random_nets

from nn_manual import (
    GELU,
    GRU,
    LSTM,
    RNN,
    SGD,
    Adadelta,
    CrossEntropyLoss,
    Dropout,
    Embedding,
    EmbeddingBag,
    Layer,
    Linear,
    MSELoss,
    NotFiniteError,
    Padded,
    PaddedEmbeddingBag,
    PaddedLSTM,
    ReLU,
    Sequential,
    Tanh,
    TraceLoss,
)
from nn_manual.layers.recurrent import Recurrent
from nn_manual.optim import Optimizer
from nn_manual.registry import components
from nn_manual.step.slices.cut import Slicing
from nn_manual.trainer.steps import Step


@pytest.mark.parametrize("seed", range(20))
def test_no_false_alarm_in_a_random_net(seed: int) -> None:
    assert num_checked_steps(seed, 80) > 3


@pytest.mark.parametrize("seed", [*range(7), *range(8, 21)])  # net 7 overflows before its first group is proven
def test_no_false_alarm_where_steps_are_proven_together(seed: int) -> None:
    num_proven = 0
    with contextlib.suppress(NotFiniteError), np.errstate(all="ignore"):  # some of them diverge
        for step in random_nets.random_run_together(seed, 80):
            assert step.check is not None
            assert step.check.proven
            num_proven += 1
    assert num_proven > 3


@pytest.mark.parametrize("seed", [*range(16), *range(17, 21)])  # net 16 overflows after three steps
def test_no_false_alarm_in_slices(seed: int) -> None:
    assert num_checked_steps(seed, 20, random_nets.random_run_in_slices) > 3


def test_a_net_in_slices_ends_where_it_has_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random_nets, "LEARNED", 2)
    drawn = ((seed, *random_nets.drawn(seed, in_slices=True)) for seed in range(100))
    # Of a loss that is never below 0.
    seed, batches = next((seed, batches) for seed, net, batches in drawn if isinstance(net.loss, CrossEntropyLoss))
    assert num_checked_steps(seed, len(batches) + 5, random_nets.random_run_in_slices) == len(batches)


def test_slices_of_every_number_aredrawn_with_statistics_of_both_kinds() -> None:
    drawn = {random_nets._slicing(np.random.default_rng([seed, 3])) for seed in range(200)}
    assert drawn == {Slicing(num, sync_batch_norm=sync) for num in (2, 3, 4, 5) for sync in (False, True)}


def test_no_layer_takes_the_examples_of_a_batch_for_times() -> None:
    """In slices they would be other sequences than in the whole batch."""
    recurrent = [layer for layer, _ in random_layers.SHAPED if isinstance(layer, Recurrent)]
    assert {type(layer) for layer in recurrent} >= {LSTM, GRU, RNN}
    assert all(layer.batch_first for layer in recurrent)


@pytest.mark.parametrize("optimizer", [Adadelta, SGD])
def test_schedules_that_an_optimizer_takes_aredrawn_and_no_others(optimizer: type[Optimizer]) -> None:
    """Adadelta has no momentum that a schedule could move."""
    made = optimizer(Sequential(Linear(2, 2), seed=0))
    if isinstance(made, SGD):
        made.momentum = 0.9
    drawn = [random_nets._schedule(np.random.default_rng(seed), made) for seed in range(400)]
    schedulers = [each["lr_scheduler"] for each in drawn if each]
    assert any(each.moves_momentum for each in schedulers) == (optimizer is SGD)
    assert {type(each) for each in schedulers} == {type(each) for each in random_nets.SCHEDULERS}


def drawn_from(
    monkeypatch: pytest.MonkeyPatch, activations: tuple[type[Layer], ...], num_cross_entropies: int
) -> None:
    """Draw nets as it was done when a seed was found."""
    losses = [*((CrossEntropyLoss, number) for number in range(num_cross_entropies))]
    monkeypatch.setattr(random_nets, "LOSSES", [*losses, (MSELoss, 0), (MSELoss, 1), (TraceLoss, 0)])
    monkeypatch.setattr(random_layers, "ACTIVATIONS", activations)
    monkeypatch.setattr(random_layers, "RESHAPED", 0)
    monkeypatch.setattr(random_layers, "NARROWEST", 2)


def test_no_false_alarm_in_a_net_that_is_saturated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its float32 activations are saturated where those of the same step in float64 are not: false alarms were raised
    against the latter, late in the run.
    """
    drawn_from(monkeypatch, (ReLU, Tanh), 3)
    monkeypatch.setattr(random_nets, "OPTIMIZERS", (SGD,))
    for name in ("NORMALIZED", "RESIDUAL", "EMBEDDED", "TIED"):
        monkeypatch.setattr(random_layers, name, 0)
    assert num_checked_steps(618, 400) == 400


@pytest.mark.parametrize(
    ("seed", "num_steps"),
    [
        (59, 60),  # GELU's density has three digits left below the smallest normal number
        (120, 30),  # a batch of two that is almost one: a mean of two is rounded, or never
        (252, 70),  # the mean of the values is rounded in float64, and not in torch's float32, which adds in float64
        (526, 40),  # a single number shows rounding, in few of many draws
    ],
)
def test_no_false_alarm_where_rounding_hardly_shows(
    monkeypatch: pytest.MonkeyPatch, seed: int, num_steps: int
) -> None:
    drawn_from(monkeypatch, (GELU, ReLU, Tanh, Dropout), 5)
    assert num_checked_steps(seed, num_steps) == num_steps


@pytest.mark.parametrize("random_run", [random_nets.random_run, random_nets.random_run_in_slices])
def test_no_false_alarm_with_lengths(
    random_run: Callable[[int], Iterator[Step]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(random_layers, "RESHAPED", 1)
    monkeypatch.setattr(random_layers, "SHAPED", [(PaddedLSTM(3, 2), (4, 5, 3))])
    for seed in range(3):
        _, batches = random_nets.drawn(seed)
        assert any(isinstance(batch.input, Padded) for batch in batches)
        assert num_checked_steps(seed, 20, random_run) > 3


def test_a_layer_of_every_class_is_drawn() -> None:
    """But bags of indices: a random net gets an index for each example."""
    drawn = {type(layer) for layer, _ in random_layers.SHAPED}
    others = {Embedding, EmbeddingBag, PaddedEmbeddingBag, Sequential}
    assert drawn | others == set(components(Layer).values()) | {Sequential}


def num_checked_steps(
    seed: int, num_steps: int, random_run: Callable[[int], Iterator[Step]] = random_nets.random_run
) -> int:
    """How many steps were checked before the net diverged."""
    num_checked = 0
    with contextlib.suppress(NotFiniteError), np.errstate(all="ignore"):  # some of them diverge
        for step in itertools.islice(random_run(seed), num_steps):
            assert step.check is not None
            num_checked += 1
    return num_checked
