"""Buckets: the whole arena, its end first, each on its way when backward has filled it."""

from __future__ import annotations

import numpy as np
import pytest

from nn_manual import CrossEntropyLoss, Dropout, Embedding, Flatten, Linear, ReLU, Sequential
from nn_manual.step.slices.buckets import Bucket, buckets_of
from nn_manual.step.slices.gradient_sum import _ready, pieces_of


def test_buckets_cover_the_arena_from_its_end() -> None:
    model = Sequential(Linear(3, 4), ReLU(), Linear(4, 2))  # 16 and 10 parameters
    buckets = buckets_of(model, size=10)
    assert buckets == [Bucket(slice(20, 26), 2), Bucket(slice(10, 20), 0), Bucket(slice(0, 10), 0)]


def test_a_bucket_with_a_shared_parameter_waits_for_the_end() -> None:
    layers = Embedding(5, 4), Flatten(), Linear(8, 4), Linear(4, 5, bias=False)
    model = Sequential(*layers, tied=[("0.weight", "3.weight")])
    assert [bucket.layer for bucket in buckets_of(model, size=20)] == [2, 2, -1]


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_backward_has_filled_a_bucket_when_it_goes(size: int) -> None:
    """Each number that a bucket has when it may go is the one that it has at the end."""
    model = Sequential(Linear(3, 4), ReLU(), Linear(4, 2), seed=1, dtype="float64")
    loss, buckets = CrossEntropyLoss(), buckets_of(model, size)
    prediction, saved = model.forward(np.ones((2, 3)))
    model.grad_arena.fill(np.nan)
    sent: list[np.ndarray] = []

    def filled(layer: int) -> None:
        sent.extend(model.grad_arena[bucket.where].copy() for bucket in _ready(buckets, len(sent), layer))

    model.backward_parameters(saved, loss.backward(loss.forward(prediction, np.array([0, 1]))[1]), filled)
    assert np.array_equal(np.concatenate(sent[::-1]), model.grad_arena)


def test_pieces_cover_a_bucket() -> None:
    assert pieces_of(slice(5, 12), 3) == [slice(5, 8), slice(8, 10), slice(10, 12)]


def test_a_slice_draws_what_the_whole_batch_draws_there() -> None:
    """A Dropout behind a layer that makes 3 rows of each example, too."""
    model = Sequential(Dropout(0.5), Flatten(start_dim=0, end_dim=1), Dropout(0.5), seed=3)
    input = np.ones((8, 3, 4), np.float32)
    whole, _ = model.forward(input)
    model.first_row = 5
    assert np.array_equal(model.forward(input[5:7])[0], whole[15:21])
    model.first_row = 0
    assert not np.array_equal(model.forward(input[5:7])[0], whole[15:21])
