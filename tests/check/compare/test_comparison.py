"""Many arrays compared at once, or one in full: the same differences, and never a pass for what is no number."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nn_manual.arrays import BLOCK_SIZE, DTYPES
from nn_manual.check.compare.comparison import Pair, Quantity, compare, relative, ulps
from nn_manual.check.compare.worst import FEW, differences_of, within, worst_differences
from nn_manual.check.twin.model import as_tensor

QUANTITY = Quantity("0.grad_weight", "0 (Linear)", 1e-5)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(
    st.lists(
        st.sampled_from([(), (1,), (3, 2), (2, 1, 2), (FEW,), (2, FEW), (2, BLOCK_SIZE // 2 + 1)]),
        min_size=1,
        max_size=5,
    ),
    st.sampled_from(sorted(DTYPES)),
    st.integers(0, 100),
)
def test_all_at_once_is_what_each_gives_alone(shapes: list[tuple[int, ...]], dtype: str, seed: int) -> None:
    generator = np.random.default_rng(seed)
    ours = [np.asarray(generator.standard_normal(shape), dtype) for shape in shapes]
    references = [torch.from_numpy(np.asarray(generator.standard_normal(shape), dtype)) for shape in shapes]
    absolute, scale = differences_of([Pair(QUANTITY, *pair) for pair in zip(ours, references, strict=True)])
    flat_ours, flat_references = (
        np.concatenate(list(arrays), axis=None) for arrays in (ours, map(np.asarray, references))
    )
    own, theirs = ([flat, 2 * flat] for flat in (flat_ours, flat_references))
    of_vectors = worst_differences(own, theirs, [array.size for array in ours], num_steps=1)
    assert np.array_equal([found[0] for found in of_vectors], [[*absolute, *(2 * absolute)], [*scale, *(2 * scale)]])
    for i, (array, reference) in enumerate(zip(ours, references, strict=True)):
        full = compare(QUANTITY, array, reference)
        assert full.absolute == absolute[i] == np.abs(array - reference.numpy()).max()
        assert full.scale == scale[i] == np.abs(reference.numpy()).max()
        assert full.ours == array[full.index]
        assert full.reference == reference.numpy()[full.index]
        assert abs(full.ours - full.reference) == pytest.approx(full.absolute, rel=1e-6)


@pytest.mark.parametrize("size", [3, FEW, BLOCK_SIZE + 1])
def test_arrays_whose_memory_torch_cannot_share(size: int) -> None:
    array = np.arange(size, dtype=np.float32)
    read_only = array.copy()
    read_only.flags.writeable = False
    for ours in (array[::-1], read_only, np.broadcast_to(np.float32(1), (size,))):
        absolute, scale = differences_of([Pair(QUANTITY, ours, torch.from_numpy(ours + np.float32(1)))])
        assert (absolute[0], scale[0]) == (1, ours.max() + 1)
    assert np.shares_memory(as_tensor(array).numpy(), array)


@pytest.mark.parametrize("place", [1, -1])
@pytest.mark.parametrize("size", [3, FEW, BLOCK_SIZE + 1])
@pytest.mark.parametrize(
    ("ours", "reference"),
    [(np.nan, 1.0), (1.0, np.nan), (np.nan, np.nan), (np.inf, 1.0), (1.0, np.inf), (np.inf, np.inf), (-np.inf, np.inf)],
)
def test_what_is_not_finite_never_passes(ours: float, reference: float, size: int, place: int) -> None:
    left, right = np.ones(size, np.float32), np.ones(size, np.float32)
    left[place], right[place] = ours, reference
    absolute, scale = differences_of([Pair(QUANTITY, left, torch.from_numpy(right))])
    assert not within(absolute, scale, np.array([1e-5])).any()
    full = compare(QUANTITY, left, torch.from_numpy(right))
    assert not full.passed
    assert full.index == (place % size,)


@pytest.mark.parametrize("size", [3, FEW, BLOCK_SIZE, BLOCK_SIZE + 1, 3 * BLOCK_SIZE])
def test_the_worst_difference_is_found_wherever_it_is(size: int) -> None:
    for place in (0, size // 2, size - 1):
        ours, reference = np.ones(size, np.float32), np.ones(size, np.float32)
        ours[place], reference[place] = 5, -3
        expected = [[8], [3]]
        assert np.array_equal(differences_of([Pair(QUANTITY, ours, torch.from_numpy(reference))]), expected)
        own = Pair(QUANTITY, ours, torch.from_numpy(reference), scale=100.0)
        assert np.array_equal(differences_of([own]), [[8], [100]])


def test_passed_is_within_the_tolerance_of_the_largest_magnitude() -> None:
    reference = torch.tensor([1e-9, -4.0])
    assert compare(QUANTITY, np.array([3e-5, -4], np.float32), reference).passed
    failed = compare(QUANTITY, np.array([5e-5, -4], np.float32), reference)
    assert not failed.passed
    assert (failed.index, failed.scale) == ((0,), 4.0)
    assert failed.relative == pytest.approx(1.25e-5, rel=1e-3)
    assert failed.ulps == pytest.approx(5e-5 / 2**-21, rel=1e-3)


def test_zero_equals_zero_and_nothing_else() -> None:
    zero = torch.zeros(2)
    assert compare(QUANTITY, np.zeros(2, np.float32), zero).passed
    assert not compare(QUANTITY, np.array([0, 1e-45], np.float32), zero).passed
    assert (relative(0, 0), relative(1, 0), relative(1, 4)) == (0, float("inf"), 0.25)


def test_ulps_are_counted_at_the_largest_magnitude() -> None:
    assert ulps(2**-23, 1.0, np.dtype(np.float32)) == 1
    assert ulps(2**-52, 1.0, np.dtype(np.float64)) == 1
    assert ulps(2**-22, 2.5, np.dtype(np.float32)) == 1
    assert np.isnan(ulps(1.0, np.inf, np.dtype(np.float32)))
