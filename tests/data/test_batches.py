"""Batches: every example once, in an order of (seed, epoch) alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nn_manual.data import Examples, batches, num_batches


def numbered(num_examples: int) -> Examples:
    number = np.arange(num_examples)
    return Examples(np.repeat(number, 3).reshape(-1, 3).astype(np.float32), number)


def order(num_examples: int, batch_size: int, seed: int, epoch: int) -> list[int]:
    return [
        int(number) for batch in batches(numbered(num_examples), batch_size, seed, epoch) for number in batch.target
    ]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 100), st.integers(1, 120), st.integers(0, 2**40), st.integers(0, 1000))
def test_each_example_once_and_only_the_last_batch_smaller(
    num_examples: int, batch_size: int, seed: int, epoch: int
) -> None:
    found = list(batches(numbered(num_examples), batch_size, seed, epoch))
    sizes = [len(batch.input) for batch in found]
    assert len(found) == num_batches(num_examples, batch_size)
    assert all(size == batch_size for size in sizes[:-1])
    assert all(1 <= size <= batch_size for size in sizes[-1:])
    assert sum(sizes) == num_examples
    assert sorted(number for batch in found for number in batch.target.tolist()) == list(range(num_examples))
    for batch in found:
        assert np.array_equal(batch.input[:, 0], batch.target)
        assert batch.input.shape[1:] == (3,)
        assert batch.input.flags.c_contiguous
        assert batch.input.dtype == np.float32
        assert batch.target.dtype == np.int64


def test_order_is_determined_by_seed_and_epoch() -> None:
    assert order(50, 8, seed=3, epoch=4) == order(50, 8, seed=3, epoch=4)
    assert order(50, 8, seed=3, epoch=4) == order(50, 7, seed=3, epoch=4)
    orders = {tuple(order(50, 8, seed, epoch)) for seed in range(3) for epoch in range(3)}
    assert len(orders) == 9
    assert tuple(range(50)) not in orders


def test_full_batch_is_the_examples_themselves() -> None:
    examples = numbered(10)
    assert [batch is examples for batch in batches(examples, 10, 0, 0)] == [True]
    assert [batch is examples for batch in batches(examples, 11, 0, 0)] == [True]


def test_batches_are_copies() -> None:
    examples = numbered(10)
    for batch in batches(examples, 4, 0, 0):
        assert not np.shares_memory(batch.input, examples.input)
        assert not np.shares_memory(batch.target, examples.target)


@pytest.mark.parametrize(("num_examples", "batch_size", "expected"), [(0, 4, 0), (8, 4, 2), (9, 4, 3), (3, 4, 1)])
def test_num_batches(num_examples: int, batch_size: int, expected: int) -> None:
    assert num_batches(num_examples, batch_size) == expected


@pytest.mark.parametrize("batch_size", [0, -1])
def test_batch_size_below_1_is_refused_at_the_call(batch_size: int) -> None:
    with pytest.raises(ValueError, match=rf"^batch_size must be at least 1, not {batch_size}$"):
        batches(numbered(4), batch_size, 0, 0)
