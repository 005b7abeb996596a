from __future__ import annotations

import itertools
import math
import re

import numpy as np
import pytest
from work import most_bytes, num_calls

from nn_manual.arrays import Array
from nn_manual.streams import RowGenerator, Stream, generator

#: Addresses that differ in one thing each, or have two of them swapped: (seed, layer, step).
ADDRESSES = [*((seed, 0, 0) for seed in (0, 1, 2**32, 2**64, 2**200)), (0, 1, 0), (0, 0, 1), (0, 2, 1), (0, 1, 2)]


def test_streams_are_independent() -> None:
    draws = {generator(0, stream).integers(2**63) for stream in Stream}
    draws |= {generator(0, Stream.SHUFFLE, epoch).integers(2**63) for epoch in range(3)}
    draws |= {np.random.default_rng(0).integers(2**63), generator(1, Stream.SPLIT).integers(2**63)}
    assert len(draws) == len(Stream) + 3 + 2


@pytest.mark.parametrize("row", [(), (1,), (3,), (8,), (16,), (5, 7), (513,), (0,)])
def test_a_part_of_a_batch_draws_what_the_whole_batch_draws_there(row: tuple[int, ...]) -> None:
    """Whatever the width of a row: the counter's step of 8 numbers is none of its divisors in most of these."""
    whole = RowGenerator(3, 1, 4)
    arrays = [whole.random((64, *row)), whole.random((64, 2)), whole.random((64, *row))]
    for start, stop in [(0, 64), (32, 64), (1, 2), (63, 64), (7, 7)]:
        part = RowGenerator(3, 1, 4, first_row=start)
        for array in arrays:
            np.testing.assert_array_equal(part.random((stop - start, *array.shape[1:])), array[start:stop])


def test_numbers_have_one_form_whatever_the_shape() -> None:
    array = RowGenerator(0, 0, 0).random((6, 4))
    assert array.dtype == np.float32
    np.testing.assert_array_equal(RowGenerator(0, 0, 0).random((24,)).reshape(6, 4), array)
    np.testing.assert_array_equal(array * 2**24 % 1, 0)
    assert RowGenerator(0, 0, 0).random((0, 4)).shape == (0, 4)


@pytest.mark.parametrize("address", ADDRESSES)
def test_numbers_are_uniform(address: tuple[int, int, int]) -> None:
    """Of 2**20 numbers, the standard error of the mean is 1 / sqrt(12 * 2**20) = 2.8e-4, that of the variance
    sqrt((1/80 - 1/144) / 2**20) = 7.3e-5. Chi-square over 256 cells has mean 255 and standard deviation 22.6. The
    bounds are five of each.
    """
    numbers = RowGenerator(*address).random((1024, 1024)).astype(np.float64)
    assert numbers.min() >= 0
    assert 1 - 1e-4 < numbers.max() < 1
    assert abs(numbers.mean() - 1 / 2) < 5 * 2.8e-4
    assert abs(numbers.var() - 1 / 12) < 5 * 7.3e-5
    assert chi_square(numbers * 256) < 255 + 5 * 22.6
    assert chi_square(numbers * 2**24 % 256) < 255 + 5 * 22.6  # the lowest of the 24 bits


def chi_square(values: Array) -> float:
    """How far the numbers in [0, 256) are from falling equally often between any two whole ones."""
    counts = np.bincount(values.astype(int).ravel(), minlength=256)
    expected = values.size / 256
    return float(((counts - expected) ** 2 / expected).sum())


def test_addresses_and_arrays_are_independent() -> None:
    """Two arrays and the same one a place, a row or a count of 8 further on: pairs of numbers fall equally often into
    each of 16 * 16 cells. With 741 pairs of arrays, 5.5 standard deviations are exceeded by one of 2,000 seeds.
    """
    arrays = [drawn.random((256, 256)) for drawn in (RowGenerator(*address) for address in ADDRESSES) for _ in range(4)]
    arrays += [np.roll(arrays[0], places) for places in (1, 8, 256)]
    assert len(arrays) == 39
    for first, second in itertools.combinations(arrays, 2):
        assert chi_square(np.floor(first * 16) * 16 + np.floor(second * 16)) < 255 + 5.5 * 22.6


@pytest.mark.parametrize("name", ["seed", "layer", "step", "first_row"])
def test_addresses_begin_at_0(name: str) -> None:
    address = {"seed": 0, "layer": 0, "step": 0} | {name: -1}
    with pytest.raises(ValueError, match=f"^{name} must be at least 0, not -1$"):
        RowGenerator(**address)


def test_a_shape_without_rows_is_refused() -> None:
    message = "random numbers are drawn in rows: the shape () has none"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        RowGenerator(0, 0, 0).random(())


def test_numbers_are_drawn_all_at_once() -> None:
    """However many rows there are, and into 4 bytes each. `scripts/benchmark.py mask` measures what that takes: 1.6
    times as long as numpy's fastest generator.
    """
    drawn = RowGenerator(0, 0, 0, first_row=1)
    drawn.random((1, 8))  # the first one imports
    few, many = (num_calls(lambda: drawn.random(shape)) for shape in ((1, 8), (128, 512)))  # noqa: B023 - called at once
    assert few == many
    # Beside the numbers: some objects of Python's, and the 7 numbers at most that are skipped.
    assert most_bytes(lambda: drawn.random((128, 512))) < 4 * 128 * 512 + 10_000


def test_normal_numbers_are_normal_and_addressed_by_row() -> None:
    whole = RowGenerator(0, 3, 7).standard_normal((40_000, 4))
    part = RowGenerator(0, 3, 7, first_row=100).standard_normal((50, 4))
    np.testing.assert_array_equal(part, whole[100:150])
    assert whole.dtype == np.float32
    # 160,000 numbers: four standard deviations of each moment's estimate.
    moments = [float(np.mean(whole.astype(np.float64) ** power)) for power in (1, 2, 3, 4)]
    deviations = [math.sqrt(variance / whole.size) for variance in (1, 2, 15, 96)]
    np.testing.assert_array_less(np.abs(np.subtract(moments, (0, 1, 0, 3))), 4 * np.array(deviations))
    assert np.abs(whole).max() < 5.5


def test_the_ends_are_no_infinities(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = np.array([0, 1 - 2.0**-24], np.float32)
    monkeypatch.setattr(RowGenerator, "random", lambda self, shape: ends)  # noqa: ARG005
    np.testing.assert_allclose(RowGenerator(0, 0, 0).standard_normal((2,)), [-5.42, 5.42], atol=0.01)


def test_a_number_of_the_batch_is_that_of_its_first_row() -> None:
    """Whatever the part that draws it, and beside other arrays."""
    whole = RowGenerator(3, 1, 4).random((64,))
    for first_row in (0, 1, 63):
        part = RowGenerator(3, 1, 4, first_row=first_row)
        assert part.random_of_batch() == whole[0]
        assert part.random_of_batch() != whole[0]
